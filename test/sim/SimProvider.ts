import { Clock, Effect, Predicate } from "effect"
import { makeBatching } from "../../src/Chains/rpc/batching.ts"
import { badStatus, methodsOf, resultsInOrder } from "../../src/Chains/rpc/batchResponse.ts"
import type { RpcClient, RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { type Block, blockAt } from "./Block.ts"
import type { Dice } from "./Dice.ts"
import { type Lie, together } from "./Lie.ts"
import { answer, capped, cut, type LogCap, Refusal, type View } from "./node.ts"
import { errorsOf, nodeClient, replies } from "./nodeClient.ts"
import type { SimChain } from "./SimChain.ts"

/** What may go wrong with a provider for a while. */
export const faultKinds = [
  // Nothing answers; nothing answers in time; too many requests.
  "down",
  "hang",
  "tooMany",
  // It is some blocks behind; each call may meet a node that is; it stays where it is, on a branch that may be gone.
  "behind",
  "balancer",
  "stuck",
  // Logs are omitted, or mixed with those of orphaned blocks; blocks have a hash of no branch; a response matches no call.
  "emptyLogs",
  "partialLogs",
  "removedLogs",
  "wrongHash",
  "garbage",
  // Small ranges only; no state but that of the last blocks; another chain.
  "rangeLimit",
  "pruned",
  "wrongChain"
] as const

/** What may go wrong in the kinds of seeds that `kinds.ts` names, and in no other. */
export const namedFaults = [
  // Logs are numbered otherwise; many logs are cut off without a word; nothing answers, whatever others do.
  "renumbers",
  "cutsLogs",
  "gone",
  // Every call but those for logs is answered.
  "refusesLogs",
  // It takes no batches, or up to three calls; it refuses some calls of a batch as too many.
  "noBatches",
  "callRates",
  // Each answer comes at the last moment.
  "slow"
] as const
export type FaultKind = (typeof faultKinds)[number] | (typeof namedFaults)[number]

/** Faults in which a provider reports less than the truth, and its reports look right. */
export const lies: ReadonlySet<FaultKind> = new Set(["emptyLogs", "partialLogs", "balancer", "cutsLogs"])

/** So many logs are an answer where they are capped or cut. */
export const logCap = 1_000

interface Fault {
  readonly kind: FaultKind
  /** Blocks: how far it is behind, how many are a range, how deep the state. */
  readonly size: number
  /** Unix milliseconds. */
  readonly until: number
  /** The head when it began. */
  readonly head: Block
}

export interface Traits extends Pick<View, "overrides" | "traces" | "tags" | "stateDepth" | "layer2"> {
  readonly host: string
  readonly chainId: number
  /** Milliseconds that an answer takes at most. */
  readonly latency: number
  /** Many logs are refused. */
  readonly capsLogs?: boolean
}

const isLog = (value: unknown): value is { readonly transactionHash: string } =>
  Predicate.isRecord(value) && typeof value.transactionHash === "string"

/** A provider of a chain, with its faults. */
export class SimProvider {
  readonly traits: Traits
  readonly #chain: SimChain
  readonly #elsewhere: SimChain
  readonly #dice: Dice
  /** Transactions with a log that it has left out at some time. */
  readonly withheld = new Set<string>()
  /** Numbers of the blocks whose logs it has answered with, or all receipts. */
  readonly read = new Set<number>()
  /** The head behind its last answer; undefined before the first, and where that is of no block. */
  shown: Block | undefined
  /** Calls answered, by method. */
  readonly calls = new Map<string, number>()
  /** Lies, by their names, that no answer has shown yet, of a story that must tell them. */
  readonly untold = new Map<Lie, string>()
  #faults: Array<Fault> = []
  #lies: Array<{ readonly lie: Lie; readonly until: number }> = []
  #lie: Lie | undefined

  /** `elsewhere`: what it serves while it serves another chain. */
  constructor(traits: Traits, chain: SimChain, elsewhere: SimChain, dice: Dice) {
    this.traits = traits
    this.#chain = chain
    this.#elsewhere = elsewhere
    this.#dice = dice
  }

  /** `until` in Unix milliseconds. */
  breaks(kind: FaultKind, size: number, until: number): void {
    this.#faults.push({ kind, size, until, head: this.#chain.head })
  }

  /** Tells this lie until then, Unix milliseconds, in addition to its other lies. */
  tells(lie: Lie, until: number): void {
    this.#lies.push({ lie, until })
    this.#lie = together(this.#lies.map((one) => one.lie))
  }

  heal(): void {
    this.#faults = []
    this.#lies = []
    this.#lie = undefined
  }

  #forget(now: number): void {
    this.#faults = this.#faults.filter(({ until }) => until > now)
    if (this.#lies.every(({ until }) => until > now)) return
    this.#lies = this.#lies.filter(({ until }) => until > now)
    this.#lie = together(this.#lies.map((one) => one.lie))
  }

  /** What a life of the daemon reaches it by, by the time that it is. A dead process gets no responses. */
  client(isAlive: () => boolean, time: () => number): RpcClient {
    const batching = makeBatching((calls) =>
      Effect.gen(this, function* () {
        if (this.traits.latency > 0) yield* Clock.sleep(this.#dice.below(this.traits.latency))
        if (!isAlive()) return yield* Effect.never
        const now = time()
        this.#chain.mineUntil(now)
        this.#elsewhere.mineUntil(now)
        this.#forget(now)
        if (this.#fault("slow")) yield* Clock.sleep("4900 millis")
        return yield* this.#reply(calls)
      })
    )
    return nodeClient(this.traits.host, batching.sendEach)
  }

  /** What a provider answers to a batch that it does not take, in one of four forms; undefined where it takes it. */
  #refusal(calls: ReadonlyArray<RpcRequest>) {
    const { size: form } = this.#fault("noBatches") ?? { size: undefined }
    if (form === undefined || calls.length <= (form === 3 ? 3 : 1)) return undefined
    const failed = errorsOf(this.traits.host, calls)
    const all = { error: { code: -32_600, message: form === 3 ? "a few at a time" : "invalid request" } }
    if (form === 1) return badStatus(400, JSON.stringify(all), all, undefined, methodsOf(calls), failed)
    if (form === 2) return badStatus(403, "Forbidden", undefined, undefined, methodsOf(calls), failed)
    return resultsInOrder(calls, all, failed)
  }

  #fault(kind: FaultKind): Fault | undefined {
    return this.#faults.find((fault) => fault.kind === kind)
  }

  #reply(calls: ReadonlyArray<RpcRequest>) {
    const failed = errorsOf(this.traits.host, calls)
    if (this.#fault("down") || this.#fault("gone")) return failed("unreachable", "ECONNREFUSED")
    if (this.#fault("hang")) return Effect.zipRight(Clock.sleep("5 seconds"), failed("timeout", "no answer within 5s"))
    if (this.#fault("tooMany") && this.#dice.chance(0.7)) {
      return failed("rate_limited", "HTTP 429: Too Many Requests", { retryAfter: this.#dice.pick([0, 1_000, 7_000]) })
    }
    return (
      this.#refusal(calls) ??
      replies(this.traits.host, calls, (call) => {
        const isOneTooMany = calls.length > 1 && this.#fault("callRates") && this.#dice.chance(0.2)
        if (isOneTooMany) throw new Refusal("later", this.#dice.pick([429, -32_005]))
        return this.#distort(call, this.#result(call))
      })
    )
  }

  #head(lie: Lie | undefined): Block {
    const stuck = this.#fault("stuck")
    if (stuck) return stuck.head
    const head = lie?.head(this.#chain.head) ?? this.#chain.head
    const behind = this.#fault("behind")?.size ?? 0
    const drawn = this.#fault("balancer") && this.#dice.chance(0.5) ? this.#dice.between(1, 4) : 0
    return blockAt(head, Math.max(1, head.number - behind - drawn)) ?? head
  }

  get #cap(): LogCap | undefined {
    if (this.#fault("cutsLogs")) return cut(logCap)
    return this.traits.capsLogs ? capped(logCap) : undefined
  }

  /** Of uneven size by transaction. */
  get #logNumbers(): View["logNumbers"] {
    const { size = 0 } = this.#fault("renumbers") ?? {}
    return size % 2 === 0 ? size : "byTransaction"
  }

  #result(call: RpcRequest): unknown {
    this.calls.set(call.method, (this.calls.get(call.method) ?? 0) + 1)
    const limit = this.#fault("rangeLimit")?.size
    const [filter] = call.params
    if (limit !== undefined && call.method === "eth_getLogs" && Predicate.isRecord(filter)) {
      const blocks = Number(filter.toBlock) - Number(filter.fromBlock) + 1
      if (blocks > limit) throw new Refusal(`ranges over ${limit} blocks are not supported on freetier (35)`)
    }
    if (call.method === "eth_getLogs" && this.#fault("refusesLogs")) throw new Refusal("internal error", -32_603)
    const view = this.#view(this.#lie)
    const { head } = view
    if (call.method === "eth_getLogs" && Predicate.isRecord(filter)) this.#leavesOut(head, Number(filter.toBlock))
    for (const lie of this.untold.keys()) if (this.#shows(lie, call)) this.untold.delete(lie)
    this.shown = this.#chain.byHash.get(head.hash)
    const result = answer(view, call)
    if (call.method === "eth_getLogs" && Predicate.isRecord(filter)) this.#noteRead(filter, head)
    if (call.method === "eth_getBlockReceipts" && result !== null) this.read.add(Number(filter))
    return result
  }

  #view(lie: Lie | undefined): View {
    const { chainId, layer2, overrides, stateDepth, tags, traces } = this.traits
    const isElsewhere = this.#fault("wrongChain") !== undefined
    return {
      layer2,
      overrides,
      tags,
      traces,
      chain: isElsewhere ? this.#elsewhere : this.#chain,
      chainId: isElsewhere ? chainId + 1 : chainId,
      head: isElsewhere ? this.#elsewhere.head : this.#head(lie),
      stateDepth: this.#fault("pruned")?.size ?? stateDepth,
      lie: isElsewhere ? undefined : lie,
      cap: this.#cap,
      logNumbers: this.#logNumbers
    }
  }

  /** Whether the answer would be another one without the lie. */
  #shows(lie: Lie, call: RpcRequest): boolean {
    const said = (told: Lie | undefined) => {
      try {
        return JSON.stringify(answer(this.#view(told), call))
      } catch (refusal) {
        return String(refusal)
      }
    }
    return said(this.#lie) !== said(together(this.#lies.flatMap((one) => (one.lie === lie ? [] : [one.lie]))))
  }

  #noteRead({ blockHash, fromBlock, toBlock }: Readonly<Record<string, unknown>>, head: Block): void {
    const one = this.#chain.byHash.get(String(blockHash))?.number
    const last = one ?? Math.min(Number(toBlock), head.number)
    for (let number = one ?? Number(fromBlock); number <= last; number++) this.read.add(number)
  }

  /** Blocks above its head that a node is asked for have no logs to it, and nothing in the answer tells. */
  #leavesOut(head: Block, to: number): void {
    for (let number = head.number + 1; number <= to; number++) {
      for (const { hash, logs } of this.#chain.at(number)?.transactions ?? []) {
        if (logs.length > 0) this.withheld.add(hash)
      }
    }
  }

  /** What a node answers for blocks that a reorg has taken from it, where it still knows them. */
  #removed([filter]: ReadonlyArray<unknown>): ReadonlyArray<unknown> {
    if (!Predicate.isRecord(filter) || filter.blockHash !== undefined) return []
    const { chainId, ...traits } = this.traits
    return [...this.#chain.byHash.values()]
      .filter(({ number }) => number >= Number(filter.fromBlock) && number <= Number(filter.toBlock))
      .filter((block) => this.#chain.at(block.number) !== block)
      .flatMap((head) => {
        const only = { ...filter, fromBlock: undefined, toBlock: undefined, blockHash: head.hash }
        const view = { ...traits, chainId, chain: this.#chain, head }
        return answer(view, { method: "eth_getLogs", params: [only] }) as ReadonlyArray<object>
      })
      .map((log) => ({ ...log, removed: true }))
  }

  #distort({ method, params }: RpcRequest, result: unknown): unknown {
    if (this.#fault("garbage") && this.#dice.chance(0.2)) {
      return this.#dice.pick([null, "0xzz", {}, [{ topics: 7 }], "0x"])
    }
    if (method === "eth_getLogs" && this.#fault("removedLogs") && Array.isArray(result)) {
      return [...result, ...this.#removed(params)]
    }
    if (method === "eth_getLogs" && Array.isArray(result)) {
      const hides = this.#fault("emptyLogs") ? 1 : this.#fault("partialLogs") ? 0.5 : 0
      return result.filter((log) => {
        if (hides === 0 || !this.#dice.chance(hides)) return true
        if (isLog(log)) this.withheld.add(log.transactionHash)
        return false
      })
    }
    const isWrong = this.#fault("wrongHash") && this.#dice.chance(0.3)
    if (isWrong && method === "eth_getBlockByNumber" && Predicate.isRecord(result)) {
      return { ...result, hash: `0x${"bad0".repeat(16)}` }
    }
    return result
  }
}
