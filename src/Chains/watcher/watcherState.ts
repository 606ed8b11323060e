/**
 * A watcher's state in addition to the database, and the chain's health on /readyz derived from it. The functions that
 * change a `State` are called by its watcher alone; `chainHealthOf` only reads.
 */
import { Deferred, Duration, Effect, FiberId } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import { waitAtMost } from "../../lib/waiting.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { ProviderHealth } from "../providers/providerHealth.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { type Activity, intervalOf, youngSpan } from "./interval.ts"
import type { TickOutcome } from "./tick.ts"

/**
 * How long a watcher may receive no response and finish nothing: four deadlines of an RPC call, so that readiness does
 * not flap while a provider is slow, or is replaced by another one. Milliseconds.
 */
const longestSilence = Duration.toMillis("20 seconds")
/** The same in poll intervals, where these are long. */
const missedPolls = 3
/** Silence from which the health mentions it, while the chain still counts as ready. Milliseconds. */
const notedSilence = Duration.toMillis("3 seconds")
/** How long one tick may take while responses arrive: a part of a long catch-up, or maintenance with many calls. */
const longestTick = Duration.toMillis("2 minutes")

/** Milliseconds since `at`; infinite where `at` is in the future, since the clock was set back. */
export const age = (at: number, now: number): number => (at > now ? Number.POSITIVE_INFINITY : now - at)

/** The health of a network, as /readyz and the metrics show it. */
export interface ChainHealth extends Network {
  /** The first head is stored, the watcher makes progress, and the tags that policies require are known. */
  readonly ready: boolean
  /** Every block up to this number has been read. */
  readonly head?: number
  /** Blocks from `head` to the chain's head. */
  readonly lagBlocks?: number
  /** By how much the last head's time was ahead of this machine's clock when it was read; negative by the head's age. */
  readonly headAheadSeconds?: number
  /** For how long no other provider has responded, where one of several decides alone. */
  readonly decidesAloneSeconds?: number
  /** Why the chain is not read, or what else is wrong. */
  readonly reason?: string
  /** Each provider of the chain, by its host; the reason says why it is unhealthy. */
  readonly providers: ReadonlyArray<ProviderHealth>
}

/** How long the creation of a payment waits at most for a look at its chain. */
const lookPatience = Duration.seconds(2)

/** Opens at the end of each look of a watcher at its chain's head. The creation of a payment waits for one. */
export class LookLatch {
  #ended: Deferred.Deferred<void> | undefined

  /** Waits for the end of the look under way or of the next one, for two seconds at most. */
  readonly wait: Effect.Effect<void> = Effect.suspend(() => {
    this.#ended ??= Deferred.unsafeMake(FiberId.none)
    return Effect.asVoid(waitAtMost(Deferred.await(this.#ended), lookPatience))
  })

  /** Notes that a look has ended, successful or not. */
  end(): void {
    if (this.#ended !== undefined) Deferred.unsafeDone(this.#ended, Effect.void)
    this.#ended = undefined
  }
}

/** The state of one watcher, which alone changes it. */
export interface State {
  /** Errors since the last good tick. */
  failures: number
  activity: Activity
  /** Until when payments of the chain are young, or looked at. Unix milliseconds. */
  hotUntil: number
  scanned: number | undefined
  newest: number | undefined
  /** Blocks by which the head had moved at the last tick but one, and at the last. */
  steps: readonly [number, number]
  /** When the head last moved, or was compared with another provider's. Unix milliseconds. */
  movedAt: number
  /** Whether the last tick succeeded; undefined before the first success. */
  good: boolean | undefined
  /** When a read or maintenance was last finished. Unix milliseconds. */
  progressAt: number
  /** When the tick under way began, or last received a response; undefined between two ticks. */
  busySince: number | undefined
  readonly look: LookLatch
  reason: string | undefined
  /** The last reason that was logged as a warning; undefined once the chain is read again. */
  warned: string | undefined
}

/** Notes that a tick begins, or has received a response. */
export const busy = (state: State, now: number): void => {
  state.busySince = now
}

/** Notes that the tick has ended, successful or not. */
export const rest = (state: State): void => {
  state.busySince = undefined
}

/** Notes that blocks were read: the watcher is at the head, or on its way there. */
export const noteLook = (state: State, { _tag }: TickOutcome, now: number): void => {
  if (_tag === "CaughtUp" || _tag === "More") state.progressAt = now
}

/** Notes the outcome of a tick. */
export const note = (state: State, outcome: TickOutcome, now: number): void => {
  state.newest = outcome.newest
  state.scanned = outcome.scanned
  state.failures = 0
  state.warned = outcome._tag === "Waiting" ? outcome.reason : undefined
  state.reason = undefined
  noteLook(state, outcome, now)
  if (outcome._tag === "Waiting") state.reason = outcome.reason
  else if (outcome._tag === "Behind") state.reason = outcome.error.summary
  else state.good = true
  if (state.reason !== undefined) noteBad(state)
}

/** Notes that the tick has read nothing. */
export const noteBad = (state: State): void => {
  if (state.good !== undefined) state.good = false
}

/** Before the first tick. */
export const startState = (now: number): State => ({
  failures: 0,
  activity: "hot",
  // Payments that were created before this process started may be young.
  hotUntil: now + youngSpan,
  steps: [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  scanned: undefined,
  newest: undefined,
  movedAt: Number.NEGATIVE_INFINITY,
  good: undefined,
  progressAt: Number.NEGATIVE_INFINITY,
  busySince: undefined,
  look: new LookLatch(),
  reason: undefined,
  warned: undefined
})

/**
 * Whether the watcher has finished nothing for too long, or the tick under way receives no response. A tick after a
 * successful one has more time as long as responses arrive; the pause between two ticks does not count.
 */
const isStalled = (chain: ChainSettings, state: State, now: number): boolean => {
  const { activity, busySince, good, progressAt } = state
  const poll = Duration.toMillis(chain.pollInterval)
  const limit = Math.max(missedPolls * poll, longestSilence)
  if (busySince !== undefined && age(busySince, now) > limit) return true
  const pause = Math.max(0, intervalOf(chain, activity) - poll)
  const isAnswered = busySince !== undefined && good === true
  return age(progressAt, now) > pause + (isAnswered ? Math.max(limit, longestTick) : limit)
}

const lasting = (what: string, millis: number, from: number): string | undefined =>
  millis >= from && Number.isFinite(millis) ? `${what} for ${Math.floor(millis / 1000)} seconds` : undefined

/** Why a chain is not ready although its last tick succeeded, or may not be soon; undefined before that is known. */
const silenceReason = ({ busySince, progressAt }: State, stalled: boolean, now: number): string | undefined =>
  (stalled ? lasting("nothing has been finished", age(progressAt, now), longestSilence) : undefined) ??
  (busySince === undefined ? undefined : lasting("a provider has not responded", age(busySince, now), notedSilence))

/** The health of a chain at `now`, Unix milliseconds. */
export const chainHealthOf = (watch: WatchContext, state: State, now: number): ChainHealth => {
  const { good, newest, scanned } = state
  const stalled = isStalled(watch.chain, state, now)
  const reason = state.reason ?? watch.troubles.reason ?? silenceReason(state, stalled, now)
  const aloneSince = watch.providers.aloneSince(now)
  return {
    ...watch.network,
    ready: scanned !== undefined && good !== undefined && !stalled && watch.troubles.areHarmless,
    ...(scanned === undefined ? {} : { head: scanned }),
    ...(scanned === undefined || newest === undefined ? {} : { lagBlocks: Math.max(0, newest - scanned) }),
    ...(aloneSince === undefined ? {} : { decidesAloneSeconds: Math.floor((now - aloneSince) / 1000) }),
    ...(reason === undefined ? {} : { reason }),
    providers: watch.providers.health(now)
  }
}
