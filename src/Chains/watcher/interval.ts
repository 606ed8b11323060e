/** How often a watcher looks at its chain. */
import { Duration } from "effect"
import type { ChainSettings } from "../../Settings.ts"

/** Interval between ticks while no payment of the mode is open. */
const idleInterval = Duration.minutes(4)
/** While payments are open on other chains only: a transfer here would be one on the wrong chain. */
const elsewhereInterval = Duration.minutes(2)
/** While nothing can be read yet, so that reading starts soon after it can. Milliseconds. */
export const waitingInterval = Duration.toMillis("1 minute")

/**
 * `busy`: a payment is open on this chain, or a reorg may undo one. `elsewhere`: payments are open on other chains of
 * the mode only. `idle`: none is open.
 */
export type Activity = "busy" | "elsewhere" | "idle"

/** Milliseconds from one tick to the next. */
export const intervalOf = ({ pollInterval }: ChainSettings, activity: Activity): number => {
  const poll = Duration.toMillis(pollInterval)
  if (activity === "busy") return poll
  return Math.max(poll, Duration.toMillis(activity === "idle" ? idleInterval : elsewhereInterval))
}
