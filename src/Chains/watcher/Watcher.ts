/**
 * The watcher of one network: the only writer of its scan position and its ledger. Each tick reads new blocks from the
 * serving provider, stores transfers to watched addresses, and runs corroboration and maintenance once the head is
 * reached. It polls often while something is expected of its chain, seldom otherwise, and never ends: a failed tick is
 * logged, shown on /readyz and retried, on another provider where one can be used. `Chains` runs it, and payments use
 * `wake` and `refresh`, checkout pages `viewed`.
 */
import { Cause, Clock, type Context, Data, Duration, Effect, Queue } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { waitAtMost } from "../../lib/waiting.ts"
import { type ChainSettings, Settings } from "../../Settings.ts"
import { Reader, type StoreUnavailable, Writer } from "../../Sql.ts"
import { type Corroborator, makeCorroborator } from "../corroboration/corroborate.ts"
import { finalBlockOf } from "../corroboration/verificationPass.ts"
import { Troubles } from "../evidence/Troubles.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { Settlement } from "../ledger/SettlementTag.ts"
import { Tokens } from "../ledger/Tokens.ts"
import { WatchedAddresses } from "../ledger/WatchedAddresses.ts"
import * as Watched from "../ledger/WatchedAddressesRepo.ts"
import { WrongChain } from "../providers/chainIdentity.ts"
import { type Gas, makeGas } from "../providers/gas.ts"
import type { HeadClock } from "../providers/HeadClock.ts"
import { Heads } from "../providers/Heads.ts"
import type { Provider, Providers } from "../providers/Providers.ts"
import { providerReason } from "../providers/providerHealth.ts"
import { onAnswer, type RpcClient } from "../rpc/Rpc.ts"
import { RpcError } from "../rpc/RpcError.ts"
import { contractsOf } from "../scan/transfers.ts"
import { type ExclusiveWork, isOnlyProvider, type WatchContext } from "../scan/WatchContext.ts"
import { type Activity, endingSpan, intervalOf, viewSpan, waitingInterval, youngSpan } from "./interval.ts"
import { type Maintenance, makeMaintenance } from "./maintenance.ts"
import { type TickOutcome, tick } from "./tick.ts"
import {
  age,
  busy,
  type ChainHealth,
  chainHealthOf,
  note,
  noteBad,
  noteLook,
  rest,
  type State,
  startState
} from "./watcherState.ts"

/** A defect inside a database command: not caused by a provider. */
class StoreDefect extends Data.Error<{ readonly cause: unknown }> {}

/** The writer, with its defects marked: they end the process, whatever they are. */
export const storeDefectsAsDefects = (writer: Context.Tag.Service<Writer>): Context.Tag.Service<Writer> => ({
  write: (command) => Effect.catchAllDefect(writer.write(command), (cause) => Effect.die(new StoreDefect({ cause })))
})

/** The log message, which distinguishes this from a provider's usual failures. */
export const defectMessage = "an answer could not be handled"

/** The errors of JavaScript for a value of an unexpected type. */
const isValueError = (defect: unknown): boolean =>
  defect instanceof RangeError || defect instanceof TypeError || defect instanceof SyntaxError

/**
 * Turns defects of work on a provider's responses into errors of that provider. Every response is checked before it is
 * used. If one still breaks the code, it is logged and counts as the provider's failure: other chains and providers go
 * on.
 */
export const codeExceptionsAsErrors =
  (client: RpcClient) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | RpcError, R> =>
    Effect.catchAllDefect(work, (defect) =>
      isValueError(defect)
        ? Effect.zipRight(
            Effect.logError(defectMessage).pipe(
              Effect.annotateLogs({ provider: client.host, cause: Cause.pretty(Cause.die(defect)) })
            ),
            new RpcError({ host: client.host, method: "an answer", reason: "garbage", detail: String(defect) })
          )
        : Effect.die(defect)
    )

/** Pause after the database could not be written. */
const storeRetry = Duration.toMillis("1 second")
/** When a head has not moved for this long, another provider is asked for its own. */
const stillInterval = Duration.toMillis("15 seconds")
/** How often operators can have a chain looked at: a read must not cause calls without bound. */
const lookInterval = Duration.toMillis("5 seconds")

/** A running watcher, as the rest of the daemon uses it. */
export interface Watcher extends Network {
  /** Reads the chain until it is interrupted. */
  readonly run: Effect.Effect<never>
  /** Runs work between two ticks, with exclusive access to the rows of this network. */
  readonly exclusively: ExclusiveWork
  /** At `now`, Unix milliseconds. */
  readonly health: (now: number) => ChainHealth
  /** The cost of a transfer; undefined when unknown, or older than two minutes. */
  readonly gas: Effect.Effect<Gas | undefined>
  /** A payment of this network was created: a watcher that is not hot becomes hot at once. */
  readonly wake: () => void
  /** So it does when the page of an open payment is looked at. */
  readonly viewed: () => void
  /**
   * Reads the head before a payment is made, unless the watcher is hot: transfers older than the payment must not
   * count. Takes two seconds at most.
   */
  readonly refresh: Effect.Effect<void>
  /** The same for operators, once in five seconds however often they ask. */
  readonly look: Effect.Effect<void>
}

/** The work that follows a tick. */
interface FollowUp {
  readonly corroborator: Corroborator
  readonly maintenance: Maintenance
}

/** Runs corroboration and maintenance once the chain's head has been read. */
const afterHead = Effect.fn("Watcher.afterHead")(function* (
  { watched }: WatchContext,
  provider: Provider,
  { corroborator, maintenance }: FollowUp,
  head: BlockRef,
  activity: Activity
) {
  // Without watched addresses there are no receipts.
  if (watched.size > 0) yield* corroborator.run(provider, head)
  yield* maintenance.run(provider, head, activity === "elsewhere" || activity === "idle")
})

/** Where the head has not moved for a while: the error that another provider has a higher one, else undefined. */
const stalledHeadError = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  state: State,
  { newest }: TickOutcome,
  now: number
) {
  if (newest === state.newest && age(state.movedAt, now) < stillInterval) return undefined
  const moved = newest !== state.newest
  state.movedAt = now
  return moved ? undefined : yield* watch.heads.stands(provider, newest)
})

const activityOf = Effect.fnUntraced(function* (
  watch: WatchContext,
  { hotUntil }: State
): Effect.fn.Return<Activity, StoreUnavailable> {
  const { network, reader } = watch
  const now = yield* Clock.currentTimeMillis
  const open = yield* Watched.openChains(reader, network.mode)
  const scan = yield* Ledger.scan(reader, network)
  // A reorg may undo a confirmed payment until the new branch is final and, where there is another provider, until that
  // one has been searched for the payment's money.
  const final = scan && finalBlockOf(watch, scan.head.number, scan.finalized)
  if (final !== undefined && (yield* Watched.anyUndone(reader, network, final, !isOnlyProvider(watch)))) return "hot"
  if (!open.includes(network.chain)) return open.length > 0 ? "elsewhere" : "idle"
  if (now < hotUntil) return "hot"
  // Payments end by the chain's time, which may be ahead of this machine's.
  const time = Math.max(now, (scan?.head.time ?? 0) * 1000)
  return (yield* Watched.anyAwaited(reader, network, time + endingSpan)) ? "hot" : "open"
})

/** Ticks once, and returns the time of the next tick. Unix milliseconds. */
const round = Effect.fn("Watcher.round")(function* (
  watch: WatchContext,
  provider: Provider,
  followUp: FollowUp,
  state: State
) {
  const started = yield* Clock.currentTimeMillis
  // Where the poll interval is one and a half times the block time, the head moves by one and by two blocks in turn.
  const [likely, last] = state.steps
  const outcome = yield* tick(watch, provider, state.activity === "hot" && likely <= 1)
  if (outcome._tag !== "More") state.look.end()
  state.steps = [last, state.newest === undefined ? Number.POSITIVE_INFINITY : outcome.newest - state.newest]
  if (outcome._tag !== "Waiting") {
    if (state.warned !== undefined) yield* Effect.logInfo("the chain is read again")
  } else if (state.warned !== outcome.reason) {
    yield* Effect.logWarning("the chain cannot be read yet").pipe(Effect.annotateLogs({ reason: outcome.reason }))
  }
  if (outcome._tag === "Behind") yield* watch.providers.failed(provider, outcome.error)
  else watch.providers.succeeded(provider)
  if (outcome._tag === "CaughtUp") {
    const lagging =
      (yield* stalledHeadError(watch, provider, state, outcome, started)) ??
      (yield* watch.heads.lags(provider, outcome.head))
    if (lagging !== undefined) {
      noteBad(state)
      yield* watch.providers.failed(provider, lagging)
      return started
    }
  }
  noteLook(state, outcome, yield* Clock.currentTimeMillis)
  if (outcome._tag === "CaughtUp") {
    watch.troubles.note("clock", outcome.clock, false)
    yield* afterHead(watch, provider, followUp, outcome.head, state.activity)
  }
  const ended = yield* Clock.currentTimeMillis
  note(state, outcome, ended)
  if (outcome._tag === "More") return started
  // Another provider may have the missing blocks.
  if (outcome._tag === "Behind" && watch.providers.health(ended).some(({ healthy }) => healthy)) return started
  state.activity = yield* activityOf(watch, state)
  const interval = intervalOf(
    watch.chain,
    outcome._tag === "CaughtUp" && followUp.maintenance.hasMore() ? "hot" : state.activity
  )
  return started + (outcome._tag === "Waiting" ? Math.min(interval, waitingInterval) : interval)
})

/** Notes why a tick failed, and returns the time of the next one. Unix milliseconds. */
const failed = Effect.fnUntraced(function* (
  providers: Providers,
  state: State,
  error: RpcError | WrongChain | StoreUnavailable
) {
  // A single bad response is common, and the next tick succeeds.
  const notable = state.failures >= 2 && state.warned !== error.message
  if (notable) state.warned = error.message
  const log = notable ? Effect.logWarning : Effect.logDebug
  yield* log("the chain cannot be read").pipe(Effect.annotateLogs({ reason: error.message }))
  state.look.end()
  state.activity = "hot"
  noteBad(state)
  state.failures++
  state.reason = error._tag === "StoreUnavailable" ? error.message : providerReason(error)
  const now = yield* Clock.currentTimeMillis
  return error._tag === "StoreUnavailable" ? now + storeRetry : Math.max(now, providers.nextTry(now))
})

/** Makes the watcher of one chain in one mode. `run` starts it. */
export const makeWatcher = Effect.fn("Watcher.make")(function* (
  chain: ChainSettings,
  providers: Providers,
  headClock: HeadClock
) {
  const watchedAddresses = yield* WatchedAddresses
  const settings = yield* Settings
  const watch: WatchContext = {
    network: { chain: chain.chain, mode: chain.mode },
    chain,
    contracts: contractsOf(chain, (yield* Tokens).former(chain)),
    watched: watchedAddresses.of(chain.mode),
    providers,
    reader: yield* Reader,
    writer: storeDefectsAsDefects(yield* Writer),
    settlement: yield* Settlement,
    heads: new Heads(providers, chain.confirmations),
    headClock,
    troubles: new Troubles(),
    soleProviderPatience: Duration.toMillis(settings.payments.soleProviderPatience)
  }
  const clock = yield* Effect.clock
  const state = startState(clock.unsafeCurrentTimeMillis())
  const noteBusy = Effect.map(Clock.currentTimeMillis, (now) => busy(state, now))
  const followUp: FollowUp = {
    corroborator: makeCorroborator(watch),
    maintenance: makeMaintenance(watch, settings.payments)
  }
  const wakeUps = yield* Queue.sliding<void>(1)
  const stayHot = (span: number) => {
    state.hotUntil = Math.max(state.hotUntil, clock.unsafeCurrentTimeMillis() + span)
  }
  const exclusive = yield* Effect.makeSemaphore(1)

  const withProvider = <A, E, R>(work: (provider: Provider) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(providers.current, (provider) =>
      Effect.tapError(codeExceptionsAsErrors(provider.client)(work(provider)), (error) => {
        const cause: unknown = error
        return cause instanceof RpcError || cause instanceof WrongChain
          ? providers.failed(provider, cause)
          : Effect.void
      })
    )

  const run = Effect.gen(function* () {
    // Choosing a provider can take calls too.
    const next = yield* noteBusy.pipe(
      Effect.zipRight(withProvider((provider) => round(watch, provider, followUp, state))),
      exclusive.withPermits(1),
      Effect.catchAll((error) => failed(providers, state, error)),
      Effect.ensuring(Effect.sync(() => rest(state))),
      Effect.locally(onAnswer, noteBusy)
    )
    // Bounded by the longest interval, in case the clock is set back meanwhile.
    const longest = Math.max(waitingInterval, intervalOf(chain, state.activity))
    const left = Math.min(Math.max(0, next - (yield* Clock.currentTimeMillis)), longest)
    // A hot watcher polls often enough without being woken.
    yield* state.activity !== "hot" ? waitAtMost(Queue.take(wakeUps), left) : Clock.sleep(left)
  }).pipe(Effect.forever, Effect.annotateLogs({ service: "watcher", ...watch.network }))

  const refresh = Effect.suspend(() => {
    if (state.activity === "hot" || state.failures > 0) return Effect.void
    wakeUps.unsafeOffer()
    return state.look.wait
  })
  let lookedAt = Number.NEGATIVE_INFINITY
  const watcher: Watcher = {
    ...watch.network,
    run,
    exclusively: (work) => exclusive.withPermits(1)(withProvider((provider) => work(watch, provider))),
    health: (now) => chainHealthOf(watch, state, now),
    gas: makeGas(chain.chain, providers),
    wake: () => {
      stayHot(youngSpan)
      wakeUps.unsafeOffer()
    },
    viewed: () => {
      stayHot(viewSpan)
      if (state.activity === "open") wakeUps.unsafeOffer()
    },
    refresh,
    look: Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (age(lookedAt, now) < lookInterval) return Effect.void
      lookedAt = now
      return refresh
    })
  }
  return watcher
})
