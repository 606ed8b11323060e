import { createHash } from "node:crypto"
import { Effect, Layer, Queue, Redacted } from "effect"
import { Rpc, type RpcClient, RpcError, type RpcRequest } from "../../src/Chains/Rpc.ts"
import { transferTopic } from "../../src/Chains/transfers.ts"
import { eventLoopTurn } from "../../src/eventLoopTurn.ts"

const hex = (value: number | bigint): string => `0x${value.toString(16)}`
const hashOf = (text: string): string => `0x${createHash("sha256").update(text).digest("hex")}`
const word = (value: bigint): string => `0x${value.toString(16).padStart(64, "0")}`
const topic = (address: string): string => `0x${"0".repeat(24)}${address.slice(2).toLowerCase()}`

/** Something to put into a block. The same transaction, put into two blocks, keeps its hash. */
export interface ModelTransaction {
  readonly hash: string
  readonly to: string
  readonly value: bigint
  readonly fails?: boolean
  /** A transfer of this token instead of the coin. */
  readonly token?: string | undefined
}

interface ModelBlock {
  readonly number: number
  readonly hash: string
  readonly parentHash: string
  readonly time: number
  readonly transactions: ReadonlyArray<ModelTransaction>
}

let transactions = 0
export const coin = (to: string, value: bigint, over: Partial<ModelTransaction> = {}): ModelTransaction => ({
  hash: hashOf(`transaction ${transactions++}`),
  to: to.toLowerCase(),
  value,
  ...over
})
export const token = (contract: string, to: string, value: bigint): ModelTransaction =>
  coin(to, value, { token: contract })

interface LogFilter {
  readonly fromBlock: string
  readonly toBlock: string
  readonly address: ReadonlyArray<string>
  readonly topics: ReadonlyArray<unknown>
}

type Answerer = (request: RpcRequest) => unknown

/**
 * A chain in this process that answers as a node does. It can hold back, lie and break: `intercept` sees every batch
 * before it is answered, `distort` every answer.
 */
export class ModelChain {
  readonly blocks: Array<ModelBlock> = []
  readonly batches: Array<ReadonlyArray<RpcRequest>> = []
  readonly answered = Effect.runSync(Queue.unbounded<ReadonlyArray<RpcRequest>>())
  chainId = 77
  /** What every batch fails with. */
  failure: RpcError["reason"] | undefined
  /** For tests that number their transactions themselves. */
  made = 0
  /** Lets others have their turn before each answer, so that the chain can move in the middle of a tick. */
  slow = false
  /** Blocks by which this node is behind. */
  behind = 0
  intercept: (batch: ReadonlyArray<RpcRequest>) => void = () => {}
  distort: (request: RpcRequest, answer: unknown) => unknown = (_, answer) => answer
  #branch = 0
  #lastBranch: ReadonlyArray<ModelBlock> = []

  constructor(height: number) {
    for (let i = 0; i <= height; i++) this.mine()
  }

  get height(): number {
    return this.blocks.length - 1
  }

  /** Blocks are ten seconds apart, from time 0 on. */
  mine(...transactions: ReadonlyArray<ModelTransaction>): ModelBlock {
    const number = this.blocks.length
    const parentHash = this.blocks.at(-1)?.hash ?? hashOf("nothing")
    const block = { number, parentHash, hash: hashOf(`${parentHash} ${this.#branch}`), time: number * 10, transactions }
    this.blocks.push(block)
    return block
  }

  /** Mines `count` empty blocks. */
  mineMany(count: number): void {
    for (let i = 0; i < count; i++) this.mine()
  }

  /** Takes back the last `depth` blocks; what is mined from now on is another branch. */
  rollback(depth: number): void {
    this.#lastBranch = this.blocks.splice(this.blocks.length - depth)
    this.#branch++
  }

  /** The branch that was taken back last becomes the chain again, and grows past what it replaces. */
  returnToLastBranch(): void {
    const [first] = this.#lastBranch
    const { height } = this
    if (first === undefined || this.blocks[first.number - 1]?.hash !== first.parentHash) return
    this.blocks.splice(first.number, Number.POSITIVE_INFINITY, ...this.#lastBranch)
    this.#branch++
    do this.mine()
    while (this.height <= height)
  }

  readonly client: RpcClient = {
    host: "model",
    send: (calls) =>
      Effect.suspend(() => (this.slow ? eventLoopTurn : Effect.void)).pipe(Effect.zipRight(this.#reply(calls)))
  }

  #reply(calls: ReadonlyArray<RpcRequest>) {
    return Effect.suspend(() => {
      this.batches.push(calls)
      this.intercept(calls)
      this.answered.unsafeOffer(calls)
      if (this.failure !== undefined) {
        return new RpcError({ host: "model", method: "any", reason: this.failure, detail: "as the test wants" })
      }
      return Effect.succeed(calls.map((call) => this.distort(call, this.#answer(call))))
    })
  }

  /** Calls of a method so far. */
  count(method: string): number {
    return this.batches.flat().filter((call) => call.method === method).length
  }

  #answer(request: RpcRequest): unknown {
    const answerers: Readonly<Record<string, Answerer>> = {
      eth_chainId: () => hex(this.chainId),
      eth_gasPrice: () => "0x3b9aca00",
      eth_getBlockByNumber: ({ params: [tag, full] }) => this.#block(tag, full === true),
      eth_getLogs: ({ params: [filter] }) => this.#logs(filter as LogFilter),
      eth_getTransactionReceipt: ({ params: [hash] }) => this.#receipt(hash)
    }
    const answerer = answerers[request.method]
    if (answerer === undefined) throw new Error(`the model does not know ${request.method}`)
    return answerer(request)
  }

  #known(): ReadonlyArray<ModelBlock> {
    return this.blocks.slice(0, this.blocks.length - this.behind)
  }

  #block(tag: unknown, full: boolean): unknown {
    const known = this.#known()
    const block = tag === "latest" ? known.at(-1) : known[Number(tag)]
    if (block === undefined) return null
    const transactions = block.transactions.map((transaction, i) =>
      full ? this.#transaction(block, transaction, i) : transaction.hash
    )
    return {
      number: hex(block.number),
      hash: block.hash,
      parentHash: block.parentHash,
      timestamp: hex(block.time),
      transactions
    }
  }

  #transaction(block: ModelBlock, transaction: ModelTransaction, index: number): unknown {
    return {
      hash: transaction.hash,
      blockHash: block.hash,
      blockNumber: hex(block.number),
      transactionIndex: hex(index),
      to: transaction.token ?? transaction.to,
      value: transaction.token === undefined ? hex(transaction.value) : "0x0"
    }
  }

  #logs(filter: LogFilter): unknown {
    const receivers = filter.topics[2]
    // A node that is behind says nothing of it: it has no logs up there.
    return this.#known()
      .slice(Number(filter.fromBlock), Number(filter.toBlock) + 1)
      .flatMap((block) =>
        block.transactions.flatMap(({ hash, to, token, value, fails }, i) =>
          token !== undefined &&
          fails !== true &&
          filter.address.includes(token) &&
          (!Array.isArray(receivers) || receivers.includes(topic(to)))
            ? [
                {
                  address: token,
                  topics: [transferTopic, topic(`0x${"9".repeat(40)}`), topic(to)],
                  data: word(value),
                  blockNumber: hex(block.number),
                  blockHash: block.hash,
                  transactionHash: hash,
                  logIndex: hex(i),
                  removed: false
                }
              ]
            : []
        )
      )
  }

  #receipt(hash: unknown): unknown {
    const block = this.#known().find(({ transactions }) => transactions.some((one) => one.hash === hash))
    const transaction = block?.transactions.find((one) => one.hash === hash)
    if (block === undefined) return null
    return { transactionHash: hash, blockHash: block.hash, status: transaction?.fails === true ? "0x0" : "0x1" }
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
