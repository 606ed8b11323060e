import { Duration } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { NextTick } from "./NextTick.ts"
import type { TickOutcome } from "./tick.ts"

/** Pace while no payment of the mode is open. */
export const idleInterval = Duration.minutes(4)
/** While payments are open, and all of them on other chains: only money gone astray can come. */
const elsewhereInterval = Duration.minutes(2)
/** Where nothing can be read yet, so that what is missing is soon seen. */
export const waitingInterval = Duration.toMillis("1 minute")
/**
 * How long a watcher may hear and finish nothing: four deadlines of an RPC call, so that a provider which is slow but
 * answers, or gives way to another one, does not make a chain ready and not ready by turns.
 */
const longestSilence = Duration.toMillis("20 seconds")
/** The same in polls, where these are long. */
const missedPolls = 3
/** How long one tick may take while it is answered: the part of a long catch-up, or chores with many questions. */
const longestTick = Duration.toMillis("2 minutes")

/** Milliseconds since `at`. What the clock says is yet to come is of unknown age: the clock was set back. */
export const age = (at: number, now: number): number => (at > now ? Number.POSITIVE_INFINITY : now - at)

export interface ChainHealth extends Network {
  /** The first head is stored, the watcher does not stand still, and the tags that policies require are known. */
  readonly ready: boolean
  /** Every block up to this number has been read. */
  readonly head?: number
  /** Blocks that the chain is ahead of that. */
  readonly lagBlocks?: number
  /** Why the chain is not read, or what is not as it should be. */
  readonly reason?: string
  /** Each provider of the chain, by its host; the reason is why it is put aside. */
  readonly providers: ReadonlyArray<{ readonly host: string; readonly healthy: boolean; readonly reason?: string }>
}

/** Whether a payment is open on this chain, or a reorg may undo one; whether one is open on another of the mode; or none. */
export type Activity = "busy" | "aside" | "idle"

/** Milliseconds from tick to tick. */
export const intervalOf = ({ pollInterval }: ChainSettings, activity: Activity): number => {
  const poll = Duration.toMillis(pollInterval)
  if (activity === "idle") return Duration.toMillis(idleInterval)
  return activity === "busy" ? poll : Math.max(poll, Duration.toMillis(elsewhereInterval))
}

/** What a watcher knows besides the store. It belongs to one watcher, which alone changes it. */
export interface State {
  /** Errors since the last good tick. */
  failures: number
  activity: Activity
  scanned: number | undefined
  newest: number | undefined
  /** Blocks by which the head had moved when it was last looked at. */
  step: number
  /** When the head was seen to move, or compared with another provider's. */
  movedAt: number
  /** Whether the last tick was a good one; undefined before the first good one. */
  good: boolean | undefined
  /** When the chain was last read or looked after, Unix milliseconds. */
  progressAt: number
  /** When the tick under way began, or was last answered; undefined between two ticks. */
  busySince: number | undefined
  readonly look: NextTick
  reason: string | undefined
  /** What keeps the chain's payments from their end, though it is read. */
  unfit: boolean
  /** The last reason that the log was warned of, until the chain is read again. */
  warned: string | undefined
}

/** A tick begins, or has been answered. */
export const busy = (state: State, now: number): void => {
  state.busySince = now
}

/** The tick has ended, well or not. */
export const rest = (state: State): void => {
  state.busySince = undefined
}

/** A look, and what it led to, has ended: the chain is read up to its head, or on the way there. */
export const noteLook = (state: State, { _tag }: TickOutcome, now: number): void => {
  if (_tag === "CaughtUp" || _tag === "More") state.progressAt = now
}

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

/** The tick has read nothing. */
export const noteBad = (state: State): void => {
  if (state.good !== undefined) state.good = false
}

/** Before the first tick. */
export const startState = (): State => ({
  failures: 0,
  activity: "busy",
  step: Number.POSITIVE_INFINITY,
  scanned: undefined,
  newest: undefined,
  movedAt: Number.NEGATIVE_INFINITY,
  good: undefined,
  progressAt: Number.NEGATIVE_INFINITY,
  busySince: undefined,
  look: new NextTick(),
  reason: undefined,
  unfit: false,
  warned: undefined
})

/**
 * Whether the watcher has finished nothing for too long, or the tick under way is not answered. A tick after a good one has
 * more time as long as it is answered; between two, a watcher that looks seldom may rest.
 */
const standsStill = (chain: ChainSettings, state: State, now: number): boolean => {
  const { activity, busySince, good, progressAt } = state
  const poll = Duration.toMillis(chain.pollInterval)
  const limit = Math.max(missedPolls * poll, longestSilence)
  if (busySince !== undefined && age(busySince, now) > limit) return true
  const rests = Math.max(0, intervalOf(chain, activity) - poll)
  const isAnswered = busySince !== undefined && good === true
  return age(progressAt, now) > rests + (isAnswered ? Math.max(limit, longestTick) : limit)
}

/** Why a chain is not ready whose last tick had nothing to complain of; undefined where no tick has had its time yet. */
const stillFor = ({ busySince, progressAt }: State, now: number): string | undefined => {
  const silence = age(Number.isFinite(progressAt) ? progressAt : (busySince ?? now), now)
  return silence >= longestSilence && Number.isFinite(silence)
    ? `nothing has been finished for ${Math.floor(silence / 1000)} seconds`
    : undefined
}

/** What there is to be said of a chain at `now`, Unix milliseconds. */
export const chainHealthOf = (watch: WatchContext, state: State, now: number): ChainHealth => {
  const { good, newest, scanned, unfit } = state
  const isStill = standsStill(watch.chain, state, now)
  const reason = state.reason ?? (isStill ? stillFor(state, now) : undefined)
  return {
    ...watch.network,
    ready: scanned !== undefined && good !== undefined && !isStill && !unfit,
    ...(scanned === undefined ? {} : { head: scanned }),
    ...(scanned === undefined || newest === undefined ? {} : { lagBlocks: Math.max(0, newest - scanned) }),
    ...(reason === undefined ? {} : { reason }),
    providers: watch.providers.health(now)
  }
}
