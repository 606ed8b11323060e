import { Duration } from "effect"
import type { Network } from "../Domain/Chain.ts"
import type { ChainSettings } from "../Settings.ts"
import { NextLook } from "./NextLook.ts"
import type { Outcome } from "./tick.ts"
import type { Watch } from "./watch.ts"

/** Pace while no payment of the mode is open. */
export const idleInterval = Duration.minutes(4)
/** While payments are open, and all of them on other chains: only money gone astray can come. */
const asideInterval = Duration.minutes(2)
/** Where nothing can be read yet, so that what is missing is soon seen. */
export const waitingInterval = Duration.toMillis("1 minute")
/** A chain is ready while its last good tick is no older than its pace and this. */
const patience = Duration.toMillis("30 seconds")

/** Milliseconds since `at`. What the clock says is yet to come is of unknown age: the clock was set back. */
export const age = (at: number, now: number): number => (at > now ? Number.POSITIVE_INFINITY : now - at)

export interface ChainHealth extends Network {
  /** The first head is stored, the last good tick is recent, and the tags that policies require are known. */
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

/** Whether a payment is open on this chain, on another one of the mode, or none. */
export type Activity = "busy" | "aside" | "idle"

/** Milliseconds from tick to tick. */
export const paceOf = ({ pollInterval }: ChainSettings, activity: Activity): number => {
  const poll = Duration.toMillis(pollInterval)
  if (activity === "idle") return Duration.toMillis(idleInterval)
  return activity === "busy" ? poll : Math.max(poll, Duration.toMillis(asideInterval))
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
  lastGoodTick: number | undefined
  readonly look: NextLook
  reason: string | undefined
  /** What keeps the chain's payments from their end, though it is read. */
  unfit: boolean
  /** The last reason that the log was warned of, until the chain is read again. */
  warned: string | undefined
}

export const note = (state: State, outcome: Outcome, now: number): void => {
  state.newest = outcome.newest
  state.scanned = outcome.scanned
  state.failures = 0
  state.warned = outcome._tag === "Waiting" ? outcome.reason : undefined
  state.reason = undefined
  if (outcome._tag === "Waiting") state.reason = outcome.reason
  else if (outcome._tag === "Behind") state.reason = outcome.error.summary
  else state.lastGoodTick = now
}

/** Before the first tick. */
export const startState = (): State => ({
  failures: 0,
  activity: "busy",
  step: Number.POSITIVE_INFINITY,
  scanned: undefined,
  newest: undefined,
  movedAt: Number.NEGATIVE_INFINITY,
  lastGoodTick: undefined,
  look: new NextLook(),
  reason: undefined,
  unfit: false,
  warned: undefined
})

/** What there is to be said of a chain at `now`, Unix milliseconds. */
export const healthOf = (watch: Watch, state: State, now: number): ChainHealth => {
  const { activity, lastGoodTick, newest, reason, scanned, unfit } = state
  const pace = paceOf(watch.chain, activity)
  const isRead = scanned !== undefined && lastGoodTick !== undefined && age(lastGoodTick, now) <= pace + patience
  return {
    ...watch.network,
    ready: isRead && !unfit,
    ...(scanned === undefined ? {} : { head: scanned }),
    ...(scanned === undefined || newest === undefined ? {} : { lagBlocks: Math.max(0, newest - scanned) }),
    ...(reason === undefined ? {} : { reason }),
    providers: watch.providers.health(now)
  }
}
