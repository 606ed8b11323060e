import { Effect, Either, Queue } from "effect"
import type { CallResult, RpcClient, RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import type { RpcError, RpcReason } from "../../src/Chains/rpc/RpcError.ts"
import { type Block, nextBlock } from "./Block.ts"
import type { Lie } from "./Lie.ts"
import { answer, find, type LogCap, type View } from "./node.ts"
import { errorsOf, nodeClient, replies } from "./nodeClient.ts"
import { hashOf, type Transaction } from "./transactions.ts"

/**
 * A chain that grows when a test says so, and one node of it. The node can hold back, lie and break: `intercept` sees
 * every batch before it is answered, `distort` every answer that is not an error.
 */
export class HandChain<A extends Block = Block> {
  /** What the node was asked. */
  readonly batches: Array<ReadonlyArray<RpcRequest>> = []
  readonly calls: Array<RpcRequest> = []
  /** The batches, for tests that wait for them. */
  readonly answered = Effect.runSync(Queue.unbounded<ReadonlyArray<RpcRequest>>())
  chainId = 77
  /** The name that distinguishes providers; to be set before the first call. */
  host = "model"
  /** What every batch fails with. */
  failure: RpcReason | undefined
  /** Blocks by which this node is behind. */
  behind = 0
  /** The block that this node calls final; it knows no such tag otherwise. */
  finalized: number | undefined
  logCap: LogCap | undefined
  /** It traces transactions. */
  traces = true
  /** Its receipts have the fee of an OP-stack chain. */
  layer2 = false
  /** Blocks back that states are kept for. */
  states = Number.POSITIVE_INFINITY
  /** Methods that this node does not serve. */
  readonly unserved = new Set<string>()
  intercept: (batch: ReadonlyArray<RpcRequest>) => void = () => {}
  /** What a response waits for: some time, or never ends. */
  delay: (batch: ReadonlyArray<RpcRequest>) => Effect.Effect<void> = () => Effect.void
  distort: (request: RpcRequest, answer: unknown) => unknown = (_, answer) => answer
  protected branch = 0
  #client: RpcClient | undefined

  /** `blocks`: those of the chain, which its nodes share; tests may put in and take out what they want. */
  constructor(
    readonly blocks: Array<A>,
    readonly seed = ""
  ) {}

  get height(): number {
    return this.blocks.length - 1
  }

  /** The block to come. Its hash tells the branch, and not what is in it. Blocks are ten seconds apart, from time 0 on. */
  protected next(transactions: ReadonlyArray<Transaction>, time = this.blocks.length * 10): Block {
    const parent = this.blocks.at(-1)
    return nextBlock(parent, hashOf(`${this.seed} ${parent?.hash} ${this.branch}`), time, transactions)
  }

  /** Takes back the last `depth` blocks; what is mined from now on is another branch. */
  rollback(depth: number): ReadonlyArray<A> {
    this.branch++
    return this.blocks.splice(this.blocks.length - depth)
  }

  get client(): RpcClient {
    this.#client ??= this.telling(undefined)
    return this.#client
  }

  /** The client of a node with this view of the chain, otherwise like the other one. */
  telling(lie: Lie | undefined): RpcClient {
    const wait = (calls: ReadonlyArray<RpcRequest>) => Effect.suspend(() => this.delay(calls))
    return nodeClient(this.host, (calls) => Effect.zipRight(wait(calls), this.#reply(calls, lie)))
  }

  #reply(calls: ReadonlyArray<RpcRequest>, lie: Lie | undefined): ReturnType<RpcClient["sendEach"]> {
    return Effect.suspend((): Effect.Effect<ReadonlyArray<CallResult>, RpcError> => {
      this.batches.push(calls)
      this.calls.push(...calls)
      this.intercept(calls)
      this.answered.unsafeOffer(calls)
      if (this.failure !== undefined)
        return errorsOf(this.host, calls)(this.failure, "as the test wants", { method: "any" })
      const view = { ...this.view, lie }
      return Effect.map(
        replies(this.host, calls, (call) => answer(view, call)),
        (all) =>
          all.map((one, i) => Either.map(one, (result) => this.distort(calls[i] ?? { method: "", params: [] }, result)))
      )
    })
  }

  /** Calls of a method so far. */
  count(method: string): number {
    return this.batches.flat().filter((call) => call.method === method).length
  }

  /** The number of the block that a state is asked of; -1 where the node has none such. */
  numberOf(at: unknown): number {
    return find(this.view, at)?.number ?? -1
  }

  /** What the node knows. */
  get view(): View {
    const known = this.behind === 0 ? this.blocks : this.blocks.slice(0, this.blocks.length - this.behind)
    const head = known.at(-1)
    if (head === undefined) throw new Error("a chain has a block")
    const has = (txHash: string) => (block: Block) => block.transactions.some(({ hash }) => hash === txHash)
    return {
      chain: {
        byHash: { get: (hash) => known.find((block) => block.hash === hash) },
        inclusions: { get: (txHash) => known.filter(has(txHash)) },
        safe: undefined,
        finalized: this.finalized
      },
      chainId: this.chainId,
      head,
      at: (number) => known[number],
      overrides: true,
      traces: this.traces,
      tags: true,
      layer2: this.layer2,
      stateDepth: this.states,
      cap: this.logCap,
      bloomless: true,
      unserved: this.unserved
    }
  }
}
