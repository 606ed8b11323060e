import { createHash } from "node:crypto"
import { Effect, Either, Layer, Queue, Redacted } from "effect"
import { classifyError } from "../../src/Chains/rpc/classifyError.ts"
import { transferTopic } from "../../src/Chains/rpc/methods.ts"
import { makeClient, Rpc, type RpcClient, type RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { RpcError } from "../../src/Chains/rpc/RpcError.ts"
import { eventLoopTurn } from "../../src/Sql/eventLoopTurn.ts"

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
  readonly fromBlock?: string
  readonly toBlock?: string
  readonly blockHash?: string
  readonly address: ReadonlyArray<string>
  readonly topics: ReadonlyArray<unknown>
}

type Answerer = (request: RpcRequest) => unknown

/** The most logs in one answer of a node, and the error that it gives instead of more; without one it cuts the answer. */
export interface LogCap {
  readonly logs: number
  readonly error?: { readonly code: number; readonly message: string }
}

/** Nethermind's words. */
export const capped = (logs: number): LogCap => ({
  logs,
  error: { code: -32_005, message: `Too many logs requested. Max logs per response is ${logs}.` }
})
/** A code that others use for rate limits, and words that nobody knows. */
export const cappedInUnknownWords = (logs: number): LogCap => ({ logs, error: { code: -32_005, message: "no more" } })
/** No error: as many logs as fit, as if there were no more. */
export const cut = (logs: number): LogCap => ({ logs })

/**
 * A chain in this process that answers as a node does. It can hold back, lie and break: `intercept` sees every batch
 * before it is answered, `distort` every answer.
 */
export class ModelChain {
  readonly blocks: Array<ModelBlock>
  readonly batches: Array<ReadonlyArray<RpcRequest>> = []
  readonly answered = Effect.runSync(Queue.unbounded<ReadonlyArray<RpcRequest>>())
  chainId = 77
  /** By which providers are told apart; to be set before the first call. */
  host = "model"
  /** What every batch fails with. */
  failure: RpcError["reason"] | undefined
  /** For tests that number their transactions themselves. */
  made = 0
  /** Lets others have their turn before each answer, so that the chain can move in the middle of a tick. */
  slow = false
  /** The block that this node calls final; it knows no such tag otherwise. */
  finalized: number | undefined
  /** Blocks by which this node is behind. */
  behind = 0
  logCap: LogCap | undefined
  /** The oldest block that this node has states of. */
  oldestState = 0
  /** Methods that this node does not serve. */
  readonly unserved = new Set<string>()
  intercept: (batch: ReadonlyArray<RpcRequest>) => void = () => {}
  /** What an answer waits for: time, or for ever. */
  delay: (batch: ReadonlyArray<RpcRequest>) => Effect.Effect<void> = () => Effect.void
  distort: (request: RpcRequest, answer: unknown) => unknown = (_, answer) => answer
  #client: RpcClient | undefined
  #branch = 0
  #lastBranch: ReadonlyArray<ModelBlock> = []

  constructor(height: number, blocks: Array<ModelBlock> = []) {
    this.blocks = blocks
    for (let i = 0; i <= height; i++) this.mine()
  }

  /** Another node of the same chain, with faults of its own. */
  twin(): ModelChain {
    return new ModelChain(-1, this.blocks)
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

  get client(): RpcClient {
    this.#client ??= makeClient({
      host: this.host,
      sendEach: (calls) =>
        Effect.suspend(() => (this.slow ? eventLoopTurn : this.delay(calls))).pipe(Effect.zipRight(this.#reply(calls))),
      counters: { calls: 0, batches: 0, sent: 0, received: 0 }
    })
    return this.#client
  }

  #reply(calls: ReadonlyArray<RpcRequest>) {
    return Effect.suspend(() => {
      this.batches.push(calls)
      this.intercept(calls)
      this.answered.unsafeOffer(calls)
      if (this.failure !== undefined) {
        return new RpcError({
          host: "model",
          method: "any",
          reason: this.failure,
          detail: "as the test wants"
        })
      }
      return Effect.succeed(calls.map((call) => Either.map(this.#answer(call), (answer) => this.distort(call, answer))))
    })
  }

  /** Calls of a method so far. */
  count(method: string): number {
    return this.batches.flat().filter((call) => call.method === method).length
  }

  /** What this node does not serve: the calls of contracts, and tags. */
  #isServed({ method, params }: RpcRequest): boolean {
    const isKnown = params[0] !== "safe" && (params[0] !== "finalized" || this.finalized !== undefined)
    return method !== "eth_call" && !this.unserved.has(method) && isKnown
  }

  #answer(request: RpcRequest): Either.Either<unknown, RpcError> {
    const { method, params } = request
    if (method === "eth_getBalance" && this.numberOf(params[1]) < this.oldestState) {
      return Either.left(new RpcError({ host: "model", method, reason: "state", detail: "missing trie node" }))
    }
    if (!this.#isServed(request)) {
      return Either.left(new RpcError({ host: "model", method, reason: "unsupported", detail: "not served" }))
    }
    const answerers: Readonly<Record<string, Answerer>> = {
      eth_chainId: () => hex(this.chainId),
      eth_gasPrice: () => "0x3b9aca00",
      eth_getBlockByNumber: ({ params: [tag, full] }) => this.#block(tag, full === true),
      eth_getBlockByHash: ({ params: [hash] }) =>
        this.#block(this.#known().find((one) => one.hash === hash)?.number, false),
      eth_getBlockReceipts: ({ params: [number] }) => {
        const block = this.#known()[Number(number)]
        return block?.transactions.map((transaction, i) => this.#receiptOf(block, transaction, i)) ?? null
      },
      eth_getLogs: ({ params: [filter] }) => this.#logs(filter as LogFilter),
      eth_getBalance: ({ params: [address, at] }) => hex(this.#balance(String(address).toLowerCase(), at)),
      eth_getTransactionCount: () => "0x0",
      eth_getTransactionReceipt: ({ params: [hash] }) => this.#receipt(hash),
      eth_getTransactionByHash: ({ params: [hash] }) => {
        const found = this.#find(hash)
        return found === undefined ? null : this.#transaction(found.block, found.transaction, found.index)
      }
    }
    const answerer = answerers[method]
    if (answerer === undefined) throw new Error(`the model does not know ${method}`)
    const answer = answerer(request)
    return method === "eth_getLogs" ? this.#capped(answer as ReadonlyArray<unknown>) : Either.right(answer)
  }

  /** The logs that the node gives of those that there are. */
  #capped(logs: ReadonlyArray<unknown>): Either.Either<ReadonlyArray<unknown>, RpcError> {
    if (this.logCap === undefined || logs.length <= this.logCap.logs) return Either.right(logs)
    const { error, logs: most } = this.logCap
    if (error === undefined) return Either.right(logs.slice(0, most))
    const method = "eth_getLogs"
    const verdict = classifyError(error.message, error.code, method)
    return Either.left(new RpcError({ host: "model", method, detail: error.message, ...verdict }))
  }

  /** Coins that reached an address: nobody spends here. */
  #balance(address: string, at: unknown): bigint {
    return this.#known()
      .slice(0, this.numberOf(at) + 1)
      .flatMap(({ transactions }) => transactions)
      .filter(({ fails, to, token }) => to === address && token === undefined && fails !== true)
      .reduce((sum, { value }) => sum + value, 0n)
  }

  /** The block that a state is asked of, by its number, its hash or a tag. */
  numberOf(at: unknown): number {
    const known = this.#known()
    const isHash = (tag: unknown): tag is { readonly blockHash: string } => typeof tag === "object" && tag !== null
    if (isHash(at)) return known.findIndex(({ hash }) => hash === at.blockHash)
    return at === "latest" ? known.length - 1 : Number(at)
  }

  #known(): ReadonlyArray<ModelBlock> {
    return this.blocks.slice(0, this.blocks.length - this.behind)
  }

  #block(tag: unknown, full: boolean): unknown {
    const known = this.#known()
    const block = tag === "latest" ? known.at(-1) : known[Number(tag === "finalized" ? this.finalized : tag)]
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
      from: `0x${"9".repeat(40)}`,
      to: transaction.token ?? transaction.to,
      value: transaction.token === undefined ? hex(transaction.value) : "0x0"
    }
  }

  /** What a transfer of a token writes; nothing for any other transaction. */
  #log(block: ModelBlock, { fails, hash, to, token, value }: ModelTransaction, index: number) {
    if (token === undefined || fails === true) return []
    return [
      {
        address: token,
        topics: [transferTopic, topic(`0x${"9".repeat(40)}`), topic(to)],
        data: word(value),
        blockNumber: hex(block.number),
        blockHash: block.hash,
        transactionHash: hash,
        logIndex: hex(index),
        removed: false
      }
    ]
  }

  #logs(filter: LogFilter): unknown {
    const receivers = Array.isArray(filter.topics[2]) ? new Set<unknown>(filter.topics[2]) : undefined
    // A node that is behind says nothing of it: it has no logs up there.
    return this.#known()
      .filter(({ hash, number }) =>
        filter.blockHash === undefined
          ? number >= Number(filter.fromBlock) && number <= Number(filter.toBlock)
          : hash === filter.blockHash
      )
      .flatMap((block) => block.transactions.flatMap((transaction, i) => this.#log(block, transaction, i)))
      .filter(({ address, topics: [, , to] }) => filter.address.includes(address) && receivers?.has(to) !== false)
  }

  /** A transaction with its block and its place there. */
  #find(hash: unknown) {
    for (const block of this.#known()) {
      const index = block.transactions.findIndex((one) => one.hash === hash)
      const transaction = block.transactions[index]
      if (transaction !== undefined) return { block, index, transaction }
    }
    return undefined
  }

  #receipt(hash: unknown): unknown {
    const found = this.#find(hash)
    return found === undefined ? null : this.#receiptOf(found.block, found.transaction, found.index)
  }

  #receiptOf(block: ModelBlock, transaction: ModelTransaction, index: number): unknown {
    return {
      transactionHash: transaction.hash,
      blockHash: block.hash,
      blockNumber: hex(block.number),
      status: transaction.fails === true ? "0x0" : "0x1",
      // Besides the transfer an event of another kind, which names the same address.
      logs: this.#log(block, transaction, index).flatMap((log) => [
        { ...log, topics: [hashOf("another event"), ...log.topics.slice(1)] },
        log
      ])
    }
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
