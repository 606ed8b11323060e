import { createHash } from "node:crypto"
import { Effect, Either } from "effect"
import type { Move } from "../../../src/Chains/rpc/balanceMethods.ts"
import { makeClient, type RpcClient, type RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"

const hex = (value: number | bigint): string => `0x${value.toString(16)}`
const hashOf = (text: string): string => `0x${createHash("sha256").update(text).digest("hex")}`

/** Somebody else, and a contract of theirs. */
export const stranger = `0x${"5".repeat(40)}`
export const contract = `0x${"c".repeat(40)}`
/** What every transaction of the model costs: one unit of gas at one wei, and one wei for the data. */
export const fee = 2n

/** One transaction, told by what it does. */
export interface Deed {
  readonly from: string
  readonly to: string
  readonly value: bigint
  /** Addresses in the calldata. */
  readonly names: ReadonlyArray<string>
  readonly fails: boolean
  /** What the called contract moves. */
  readonly moves: ReadonlyArray<Move>
}

/** Deeds: one that moves nothing, and what is made of it. */
export const nothing: Deed = { from: stranger, to: contract, value: 0n, names: [], fails: false, moves: [] }
export const direct = (to: string, value: bigint): Deed => ({ ...nothing, to, value })
export const spends = (from: string, value: bigint): Deed => ({ ...nothing, from, to: stranger, value })
/** From inside a contract; `names` what the calldata does. */
export const inside = (to: string, amount: bigint, names: ReadonlyArray<string> = []): Deed => ({
  ...nothing,
  names,
  moves: [{ from: contract, to, amount }]
})

interface ModelBlock extends BlockRef {
  readonly deeds: ReadonlyArray<Deed & { readonly hash: string }>
  readonly balances: ReadonlyMap<string, bigint>
  readonly nonces: ReadonlyMap<string, number>
}

/**
 * A chain of balances in this process, that answers as a node does. Strangers have as much as they want; others pay only
 * what they have, else their deed is left out.
 */
export class BalanceModel {
  readonly blocks: Array<ModelBlock> = []
  readonly calls: Array<RpcRequest> = []
  /** Blocks back that states are kept for. */
  states = Number.POSITIVE_INFINITY
  traces = true
  #branch = 0

  constructor(readonly seed: string) {
    this.mine([])
  }

  get head(): BlockRef {
    const { hash, number, time } = this.blocks.at(-1) ?? { hash: "", number: 0, time: 0 }
    return { hash, number, time }
  }

  mine(deeds: ReadonlyArray<Deed>, time = this.blocks.length * 10): ModelBlock {
    const before = this.blocks.at(-1)
    const number = this.blocks.length
    const balances = new Map(before?.balances)
    const nonces = new Map(before?.nonces)
    const has = (who: string) => (who === stranger || who === contract ? 10n ** 30n : (balances.get(who) ?? 0n))
    const add = (who: string, amount: bigint) => balances.set(who, has(who) + amount)
    const done: Array<Deed & { readonly hash: string }> = []
    for (const deed of deeds) {
      if (has(deed.from) < deed.value + fee) continue
      nonces.set(deed.from, (nonces.get(deed.from) ?? 0) + 1)
      add(deed.from, -fee)
      if (!deed.fails) {
        for (const move of [{ from: deed.from, to: deed.to, amount: deed.value }, ...deed.moves]) {
          add(move.from, -move.amount)
          add(move.to, move.amount)
        }
      }
      done.push({ ...deed, hash: hashOf(`${this.seed} ${number} ${this.#branch} ${done.length}`) })
    }
    const hash = hashOf(`${this.seed} ${before?.hash} ${this.#branch}`)
    const block = { number, hash, time, deeds: done, balances, nonces }
    this.blocks.push(block)
    return block
  }

  /** Takes back the last blocks; what is mined from now on is another branch. */
  rollback(depth: number): void {
    this.blocks.splice(this.blocks.length - depth)
    this.#branch++
  }

  /** What came to an address above block `after`, by block. What it sends to itself is nothing. */
  came(address: string, after: number): ReadonlyMap<number, bigint> {
    const came = new Map<number, bigint>()
    for (const { deeds, number } of this.blocks.slice(after + 1)) {
      for (const { fails, from, moves, to, value } of deeds) {
        for (const move of fails ? [] : [{ from, to, amount: value }, ...moves]) {
          if (move.to !== address || move.from === address || move.amount === 0n) continue
          came.set(number, (came.get(number) ?? 0n) + move.amount)
        }
      }
    }
    return came
  }

  readonly client: RpcClient = makeClient({
    host: "model",
    counters: { calls: 0, batches: 0, sent: 0, received: 0 },
    sendEach: (calls) =>
      Effect.sync(() => {
        this.calls.push(...calls)
        return calls.map((call): Either.Either<unknown, RpcError> => {
          const answer = this.#answer(call)
          return answer instanceof RpcError ? Either.left(answer) : Either.right(answer)
        })
      })
  })

  #answer({ method, params }: RpcRequest): unknown {
    switch (method) {
      case "eth_call":
        return this.#balances(params[0] as { readonly data: string }, params[1])
      case "eth_getBalance":
        return this.#state(params[1], (block) => hex(block.balances.get(String(params[0])) ?? 0n))
      case "eth_getTransactionCount":
        return this.#state(params[1], (block) => hex(block.nonces.get(String(params[0])) ?? 0))
      case "eth_getBlockByNumber":
        return this.#block(params[0] === "latest" ? this.head.number : Number(params[0]), params[1] === true)
      case "eth_getTransactionByHash":
        return this.#transaction(params[0])
      case "eth_getTransactionReceipt":
        return this.#receipt(params[0])
      case "debug_traceTransaction":
        return this.traces ? this.#trace(params[0]) : this.#refuse(method, "unsupported")
      default:
        return this.#refuse(method, "unsupported")
    }
  }

  #refuse(method: string, reason: RpcError["reason"]) {
    return new RpcError({ host: "model", method, reason, detail: "as the test wants" })
  }

  #state(at: unknown, read: (block: ModelBlock) => unknown): unknown {
    const block =
      typeof at === "string"
        ? this.blocks[Number(at)]
        : this.blocks.find(({ hash }) => hash === (at as { readonly blockHash: string }).blockHash)
    if (block === undefined) return this.#refuse("state", "missing")
    if (this.head.number - block.number > this.states) return this.#refuse("state", "state")
    return read(block)
  }

  /** As the reader of packed addresses answers. */
  #balances({ data }: { readonly data: string }, at: unknown): unknown {
    const addresses = (data.slice(2).match(/.{40}/g) ?? []).map((address) => `0x${address}`)
    return this.#state(
      at,
      ({ balances }) => `0x${addresses.map((one) => (balances.get(one) ?? 0n).toString(16).padStart(64, "0")).join("")}`
    )
  }

  #block(number: number, full: boolean): unknown {
    const block = this.blocks[number]
    if (block === undefined) return null
    const transactions = block.deeds.map(({ from, hash, names, to, value }, index) => ({
      hash,
      blockHash: block.hash,
      blockNumber: hex(number),
      transactionIndex: hex(index),
      from,
      to,
      value: hex(value),
      gas: "0x186a0",
      input: `0x${names.map((name) => name.slice(2)).join("")}`
    }))
    return {
      number: hex(number),
      hash: block.hash,
      parentHash: this.blocks[number - 1]?.hash ?? hashOf("nothing"),
      timestamp: hex(block.time),
      transactions: full ? transactions : transactions.map((one) => one.hash)
    }
  }

  #find(hash: unknown) {
    for (const block of this.blocks) {
      const deed = block.deeds.find((one) => one.hash === hash)
      if (deed !== undefined) return { block, deed }
    }
    return undefined
  }

  #transaction(hash: unknown): unknown {
    const block = this.#find(hash)?.block
    const full =
      block && (this.#block(block.number, true) as { readonly transactions: ReadonlyArray<{ hash: string }> })
    return full?.transactions.find((one) => one.hash === hash) ?? null
  }

  #receipt(hash: unknown): unknown {
    const found = this.#find(hash)
    return (
      found && {
        transactionHash: hash,
        blockHash: found.block.hash,
        blockNumber: hex(found.block.number),
        logs: [],
        status: found.deed.fails ? "0x0" : "0x1",
        gasUsed: "0x1",
        effectiveGasPrice: "0x1",
        l1Fee: "0x1"
      }
    )
  }

  #trace(hash: unknown): unknown {
    const deed = this.#find(hash)?.deed
    const frame = ({ amount, from, to }: Move) => ({ type: "CALL", from, to, value: hex(amount) })
    return (
      deed && {
        ...frame({ from: deed.from, to: deed.to, amount: deed.value }),
        ...(deed.fails ? { error: "execution reverted" } : {}),
        calls: deed.moves.map(frame)
      }
    )
  }
}
