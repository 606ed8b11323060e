import { Clock, Data, Duration, Effect, Queue, Random } from "effect"
import { type Network, networkKey } from "../Domain/Chain.ts"
import { Settlement } from "../Payments/Settlement.ts"
import type { ChainSettings } from "../Settings.ts"
import { Reader, type StoreUnavailable, Writer } from "../Sql.ts"
import { ask, getChainId } from "./calls.ts"
import { MatchSet } from "./MatchSet.ts"
import type { RpcClient, RpcError } from "./Rpc.ts"
import { makeSource } from "./range.ts"
import { Span } from "./Span.ts"
import { type Outcome, tick, type Watch } from "./tick.ts"
import * as Watched from "./WatchedRepo.ts"

/** Pace while no payment of the mode is open. */
const idleInterval = Duration.minutes(1)
/** The first wait after an error, and the longest. */
const firstBackOff = 250
const longestBackOff = 10_000
/** The gas price is asked for again after this, and not given out when it is older than `gasPriceLife`. */
const gasPriceInterval = Duration.toMillis("30 seconds")
const gasPriceLife = Duration.toMillis("2 minutes")
/** A chain is ready while its last good tick is no older than its pace and this. */
const patience = Duration.toMillis("30 seconds")

/** Milliseconds since `at`. What the clock says is yet to come is of unknown age: the clock was set back. */
const age = (at: number, now: number): number => (at > now ? Number.POSITIVE_INFINITY : now - at)

/** The provider serves another chain: nothing of it may be read. */
export class WrongChain extends Data.TaggedError("WrongChain")<{
  readonly network: Network
  readonly host: string
  readonly expected: number
  readonly found: number
}> {
  override get message() {
    const key = `chains.${networkKey(this.network)}`
    return `${this.host} serves chain ${this.found}, and ${key} is chain ${this.expected}: nothing is read from it. Remedy: check rpc_urls and chain_id of ${key}.`
  }
}

export interface ChainHealth extends Network {
  /** The first head is stored, and the last good tick is recent. */
  readonly ready: boolean
  /** Every block up to this number has been read. */
  readonly head?: number
  /** Blocks that the chain is ahead of that. */
  readonly lagBlocks?: number
  /** Why the chain is not read. */
  readonly reason?: string
}

/** What a watcher can be told. */
type Message = { readonly _tag: "Wake" }

export interface Watcher extends Network {
  /** Reads the chain until it is interrupted. */
  readonly run: Effect.Effect<never>
  /** At `now`, Unix milliseconds. */
  readonly health: (now: number) => ChainHealth
  /** Wei for a unit of gas; undefined when it is not known, or older than two minutes at `now`, Unix milliseconds. */
  readonly gasPrice: (now: number) => bigint | undefined
  /** Somebody may pay from now on: an idle watcher looks at once. */
  readonly wake: () => void
}

/** What a watcher knows besides the store. */
interface State {
  /** The chain id has been checked since the last error. */
  connected: boolean
  /** Errors since the last good tick. */
  failures: number
  idle: boolean
  gasPrice: { readonly wei: bigint; readonly at: number } | undefined
  scanned: number | undefined
  newest: number | undefined
  lastGoodTick: number | undefined
  reason: string | undefined
  /** The last reason that the log was warned of, until the chain is read again. */
  warned: string | undefined
}

const connect = Effect.fn("Watcher.connect")(function* ({ network, source: { chain, client } }: Watch) {
  const [found] = yield* ask(client, [getChainId])
  if (found === chain.chainId) return
  return yield* new WrongChain({ network, host: client.host, expected: chain.chainId, found })
})

const note = (state: State, outcome: Outcome, now: number): void => {
  state.newest = outcome.newest
  state.scanned = outcome.scanned
  if (outcome.gasPrice !== undefined) state.gasPrice = { wei: outcome.gasPrice, at: now }
  state.failures = 0
  state.warned = undefined
  if (outcome._tag === "Waiting") {
    state.reason = outcome.reason
  } else {
    state.reason = undefined
    state.lastGoodTick = now
  }
}

/** Ticks once, and gives the time of the next tick. */
const round = Effect.fn("Watcher.round")(function* (watch: Watch, state: State) {
  const started = yield* Clock.currentTimeMillis
  if (!state.connected) yield* connect(watch)
  state.connected = true
  const priceIsOld = state.gasPrice === undefined || age(state.gasPrice.at, started) >= gasPriceInterval
  const outcome = yield* tick(watch, { gasPrice: priceIsOld })
  if (state.warned !== undefined) yield* Effect.logInfo("the chain is read again")
  if (outcome._tag === "Waiting" && state.reason === undefined) {
    yield* Effect.logInfo("nothing can be read for now").pipe(Effect.annotateLogs({ reason: outcome.reason }))
  }
  note(state, outcome, yield* Clock.currentTimeMillis)
  if (outcome._tag === "More") return started
  state.idle = !(yield* Watched.anyOpen(watch.reader, watch.network.mode))
  return started + Duration.toMillis(state.idle ? idleInterval : watch.source.chain.pollInterval)
})

/** Notes why a tick failed, and gives the time of the next. */
const failed = Effect.fnUntraced(function* (state: State, error: RpcError | WrongChain | StoreUnavailable) {
  // One bad answer is daily business, and the next tick has forgotten it.
  const notable = state.failures >= 2 && state.warned !== error.message
  if (notable) state.warned = error.message
  const log = notable ? Effect.logWarning : Effect.logDebug
  yield* log("the chain cannot be read").pipe(Effect.annotateLogs({ reason: error.message }))
  const jitter = yield* Random.nextRange(0.8, 1.2)
  const pause = Math.round(Math.min(firstBackOff * 2 ** Math.min(state.failures, 10) * jitter, longestBackOff))
  state.connected = false
  state.idle = false
  state.failures++
  state.reason = error._tag === "RpcError" ? error.summary : error.message
  return (yield* Clock.currentTimeMillis) + pause
})

const healthOf = ({ network, source }: Watch, state: State, now: number): ChainHealth => {
  const { idle, lastGoodTick, newest, reason, scanned } = state
  const pace = Duration.toMillis(idle ? idleInterval : source.chain.pollInterval)
  return {
    ...network,
    ready: scanned !== undefined && lastGoodTick !== undefined && age(lastGoodTick, now) <= pace + patience,
    ...(scanned === undefined ? {} : { head: scanned }),
    ...(scanned === undefined || newest === undefined ? {} : { lagBlocks: Math.max(0, newest - scanned) }),
    ...(reason === undefined ? {} : { reason })
  }
}

/** The watcher of one chain in one mode: the one owner of its scan and its ledger. */
export const makeWatcher = Effect.fn("Watcher.make")(function* (chain: ChainSettings, client: RpcClient) {
  const matchSet = yield* MatchSet
  const watch: Watch = {
    network: { chain: chain.chain, mode: chain.mode },
    source: makeSource(client, chain, matchSet.of(chain.mode)),
    span: new Span(),
    reader: yield* Reader,
    writer: yield* Writer,
    settlement: yield* Settlement
  }
  const state: State = {
    connected: false,
    failures: 0,
    idle: false,
    gasPrice: undefined,
    scanned: undefined,
    newest: undefined,
    lastGoodTick: undefined,
    reason: undefined,
    warned: undefined
  }
  const mailbox = yield* Queue.sliding<Message>(1)
  const longestPace = Math.max(Duration.toMillis(idleInterval), Duration.toMillis(chain.pollInterval))

  const run = Effect.gen(function* () {
    const next = yield* Effect.catchAll(round(watch, state), (error) => failed(state, error))
    // Nor longer than the longest pace, should the clock be set back meanwhile.
    const left = Math.min(Math.max(0, next - (yield* Clock.currentTimeMillis)), longestPace)
    // A busy watcher looks often enough as it is: only an idle one is woken.
    yield* state.idle ? Effect.timeoutOption(Queue.take(mailbox), left) : Clock.sleep(left)
  }).pipe(Effect.forever, Effect.annotateLogs({ service: "watcher", ...watch.network }))

  const watcher: Watcher = {
    ...watch.network,
    run,
    health: (now) => healthOf(watch, state, now),
    gasPrice: (now) =>
      state.gasPrice !== undefined && age(state.gasPrice.at, now) <= gasPriceLife ? state.gasPrice.wei : undefined,
    wake: () => void mailbox.unsafeOffer({ _tag: "Wake" })
  }
  return watcher
})
