import type { RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { Dice } from "../../sim/Dice.ts"
import type { Block } from "../../sim/SimChain.ts"
import { payer, transferLog, word } from "../../sim/transactions.ts"
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

const hex = (value: bigint | number): string => `0x${value.toString(16)}`

const amountOf = (dice: Dice, { amounts }: Knowledge): bigint =>
  dice.chance(0.1) ? 2n ** 256n - 1n : dice.pick(amounts) + BigInt(dice.pick([0, 0, 0, 1, -1]))

const blockOf = (dice: Dice, { blocks }: Knowledge) => {
  const { hash, number } = dice.pick(blocks)
  return { blockHash: hash, blockNumber: hex(number) }
}

const log = (dice: Dice, known: Knowledge) => ({
  ...transferLog(dice.pick(known.contracts), dice.pick(known.addresses), amountOf(dice, known)),
  ...blockOf(dice, known),
  transactionHash: hexOf(dice, 64),
  logIndex: hex(dice.below(4)),
  removed: dice.chance(0.1)
})

const transaction = (dice: Dice, known: Knowledge) => ({
  hash: hexOf(dice, 64),
  ...blockOf(dice, known),
  transactionIndex: hex(dice.below(4)),
  from: payer,
  to: dice.pick(known.addresses),
  value: hex(amountOf(dice, known)),
  gas: "0x5208",
  input: "0x"
})

const receipt = (dice: Dice, known: Knowledge, hash: unknown) => ({
  transactionHash: hash,
  transactionIndex: "0x0",
  ...blockOf(dice, known),
  from: payer,
  to: dice.pick(known.addresses),
  status: dice.pick(["0x1", "0x1", "0x0", "0x2"]),
  gasUsed: "0x5208",
  effectiveGasPrice: "0x1",
  logs: Array.from({ length: dice.below(3) }, () => log(dice, known))
})

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
  const { blockHash, blockNumber } = blockOf(dice, known)
  if (value.length === 42) return dice.pick([...known.addresses, ...known.contracts])
  if (value.length === 66 && value.startsWith(`0x${"0".repeat(24)}`)) {
    return dice.chance(0.5) ? `0x${"0".repeat(24)}${dice.pick(known.addresses).slice(2)}` : word(amountOf(dice, known))
  }
  if (value.length === 66) return dice.chance(0.8) ? blockHash : hexOf(dice, 64)
  return value.length < 20 ? dice.pick([blockNumber, hex(amountOf(dice, known)), "0x0", "0x1"]) : value
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
      return { ...transaction(dice, known), hash: params[0] }
    case "eth_getBalance":
      return hex(amountOf(dice, known))
    case "eth_call":
      return otherWord(dice, result, known)
    case "debug_traceTransaction":
      return { type: "CALL", from: payer, to: payer, value: "0x0", input: "0x", calls: [transaction(dice, known)] }
    case "eth_getBlockByNumber":
      return params[1] === true && typeof result === "object"
        ? { ...result, transactions: [transaction(dice, known)] }
        : retargeted(dice, result, known)
    default:
      return anything(dice)
  }
}
