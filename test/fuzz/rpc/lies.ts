import type { RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { Block } from "../../sim/Block.ts"
import type { Dice } from "../../sim/Dice.ts"
import { receiptIn, shownLog, transactionIn } from "../../sim/shapes.ts"
import { hex, payer, transaction, transferLog, word } from "../../sim/transactions.ts"
import { anything, hexOf } from "./mutations.ts"

/** What a provider that wants to invent money knows. */
export interface Knowledge {
  /** Where payments are waited for, lower case; never empty. */
  readonly addresses: ReadonlyArray<string>
  readonly contracts: ReadonlyArray<string>
  /** Base units that payments ask for. */
  readonly amounts: ReadonlyArray<bigint>
  /** The chain's last ones. */
  readonly blocks: ReadonlyArray<Block>
}

const amountOf = (dice: Dice, { amounts }: Knowledge): bigint =>
  dice.chance(0.1) ? 2n ** 256n - 1n : dice.pick(amounts) + BigInt(dice.pick([0, 0, 0, 1, -1]))

const log = (dice: Dice, known: Knowledge) => {
  const transfer = transferLog(dice.pick(known.contracts), dice.pick(known.addresses), amountOf(dice, known))
  const shown = shownLog(transfer, dice.pick(known.blocks), { hash: hexOf(dice, 64), index: 0 }, dice.below(4))
  return { ...shown, removed: dice.chance(0.1) }
}

const paying = (dice: Dice, known: Knowledge, hash: string) =>
  transaction("", { hash, to: dice.pick(known.addresses), value: amountOf(dice, known) })

const payment = (dice: Dice, known: Knowledge, hash = hexOf(dice, 64)) =>
  transactionIn(dice.pick(known.blocks), paying(dice, known, hash), dice.below(4))

const receipt = (dice: Dice, known: Knowledge, hash: unknown) => {
  const logs = Array.from({ length: dice.below(3) }, () => log(dice, known))
  return {
    ...receiptIn(dice.pick(known.blocks), paying(dice, known, String(hash)), 0, logs),
    status: dice.pick(["0x1", "0x1", "0x0", "0x2"])
  }
}

/** One more in a list, or in its place; or the list without what it had. */
const among = (dice: Dice, list: unknown, one: unknown): unknown =>
  Array.isArray(list) && dice.chance(0.7) ? [...list, one] : dice.chance(0.5) ? [one] : []

/** A leaf of a value, in its place an address, an amount or a block that means something. */
const retargeted = (dice: Dice, value: unknown, known: Knowledge): unknown => {
  if (Array.isArray(value)) {
    const at = dice.below(Math.max(1, value.length))
    return value.map((one, i) => (i === at ? retargeted(dice, one, known) : one))
  }
  if (typeof value === "object" && value !== null) {
    const names = Object.keys(value)
    const at = names[dice.below(names.length)]
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, name === at ? retargeted(dice, one, known) : one])
    )
  }
  if (typeof value !== "string") return value
  const { hash, number } = dice.pick(known.blocks)
  if (value.length === 42) return dice.pick([...known.addresses, ...known.contracts])
  if (value.length === 66 && value.startsWith(`0x${"0".repeat(24)}`)) {
    return dice.chance(0.5) ? `0x${"0".repeat(24)}${dice.pick(known.addresses).slice(2)}` : word(amountOf(dice, known))
  }
  if (value.length === 66) return dice.chance(0.8) ? hash : hexOf(dice, 64)
  return value.length < 20 ? dice.pick([hex(number), hex(amountOf(dice, known)), "0x0", "0x1"]) : value
}

/** 32-byte words of what a contract returns, one of them another amount. */
const otherWord = (dice: Dice, data: unknown, known: Knowledge): unknown => {
  if (typeof data !== "string" || data.length < 66) return word(amountOf(dice, known))
  const at = 2 + 64 * dice.below(Math.floor((data.length - 2) / 64))
  return `${data.slice(0, at)}${word(amountOf(dice, known)).slice(2)}${data.slice(at + 64)}`
}

/** A result as a node gives it, and not what is so: money that never came, or none where some did. */
export const lied = (dice: Dice, { method, params }: RpcRequest, result: unknown, known: Knowledge): unknown => {
  if (dice.chance(0.3)) return retargeted(dice, result, known)
  if (dice.chance(0.1)) return dice.pick<unknown>([null, [], "0x", "0x0"])
  switch (method) {
    case "eth_getLogs":
      return among(dice, result, log(dice, known))
    case "eth_getTransactionReceipt":
      return receipt(dice, known, params[0])
    case "eth_getBlockReceipts":
      return among(dice, result, receipt(dice, known, hexOf(dice, 64)))
    case "eth_getTransactionByHash":
      return payment(dice, known, String(params[0]))
    case "eth_getBalance":
      return hex(amountOf(dice, known))
    case "eth_call":
      return otherWord(dice, result, known)
    case "debug_traceTransaction":
      return { type: "CALL", from: payer, to: payer, value: "0x0", input: "0x", calls: [payment(dice, known)] }
    case "eth_getBlockByNumber":
      return params[1] === true && typeof result === "object"
        ? { ...result, transactions: [payment(dice, known)] }
        : retargeted(dice, result, known)
    default:
      return anything(dice)
  }
}
