import { Layer, Redacted } from "effect"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import type { Block } from "../sim/Block.ts"
import { HandChain } from "../sim/HandChain.ts"
import type { View } from "../sim/node.ts"
import { hashOf, type Log, type Transaction, transaction, transferLog } from "../sim/transactions.ts"

export { capped, cappedInUnknownWords, cut, type LogCap } from "../sim/node.ts"

/** Something to put into a block. The same transaction, put into two blocks, keeps its hash. */
export type ModelTransaction = Transaction

/** An event of another kind, which names the same addresses. */
const otherEvent = (log: Log): Log => ({ ...log, topics: [hashOf("another event"), ...log.topics.slice(1)] })

let transactions = 0
/** A transfer of the coin, or of the token whose contract is given. */
export const coin = (
  to: string,
  value: bigint,
  { token, ...over }: Partial<Transaction> & { readonly token?: string | undefined } = {}
): ModelTransaction => {
  const receiver = to.toLowerCase()
  const name = `${transactions++}`
  if (token === undefined) return transaction(name, { to: receiver, value, ...over })
  const log = transferLog(token, receiver, value)
  return transaction(name, { to: token, logs: [otherEvent(log), log], ...over })
}
export const token = (contract: string, to: string, value: bigint): ModelTransaction =>
  coin(to, value, { token: contract })

/** A chain of coins and tokens. Its node calls no contracts, and traces nothing. */
export class ModelChain extends HandChain {
  /** The oldest block that this node has states of. */
  oldestState = 0
  override readonly unserved = new Set(["eth_call", "debug_traceTransaction"])
  #lastBranch: ReadonlyArray<Block> = []

  constructor(height: number, blocks: Array<Block> = []) {
    super(blocks)
    this.mineMany(height + 1)
  }

  /** Another node of the same chain, with faults of its own. */
  twin(): ModelChain {
    return new ModelChain(-1, this.blocks)
  }

  mine(...transactions: ReadonlyArray<ModelTransaction>): Block {
    const block = this.next(transactions)
    this.blocks.push(block)
    return block
  }

  /** Mines `count` empty blocks. */
  mineMany(count: number): void {
    for (let i = 0; i < count; i++) this.mine()
  }

  override rollback(depth: number): ReadonlyArray<Block> {
    this.#lastBranch = super.rollback(depth)
    return this.#lastBranch
  }

  /** The branch that was taken back last becomes the chain again, and grows past what it replaces. */
  returnToLastBranch(): void {
    const [first] = this.#lastBranch
    const { height } = this
    if (first === undefined || this.blocks[first.number - 1] !== first.parent) return
    this.blocks.splice(first.number, Number.POSITIVE_INFINITY, ...this.#lastBranch)
    this.branch++
    do this.mine()
    while (this.height <= height)
  }

  override get view(): View {
    const view = super.view
    return { ...view, stateDepth: view.head.number - this.oldestState }
  }
}

/** The model chains in place of providers, by URL. */
export const modelRpc = (chains: Readonly<Record<string, ModelChain>>) =>
  Layer.succeed(Rpc, {
    client: (url) => {
      const chain = chains[Redacted.value(url)]
      if (chain === undefined) throw new Error("no such model chain")
      return chain.client
    }
  })
