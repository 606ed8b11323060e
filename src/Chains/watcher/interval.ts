/** How often a watcher looks at its chain. */
import { Duration } from "effect"
import type { ChainSettings } from "../../Settings.ts"

/** While a payment of the chain is open, and nothing is expected of it soon: money shows at most that much later. */
const openInterval = Duration.seconds(15)
/** Interval between ticks while no payment of the mode is open. */
const idleInterval = Duration.minutes(4)
/** While payments are open on other chains only: a transfer here would be one on the wrong chain. */
const elsewhereInterval = Duration.minutes(2)
/** While nothing can be read yet, so that reading starts soon after it can. Milliseconds. */
export const waitingInterval = Duration.toMillis("1 minute")

/** Milliseconds for which a chain is hot from the creation of a payment on: most money comes within them. */
export const youngSpan = Duration.toMillis("15 minutes")
/** And from a look at its checkout page on, which an open page repeats every 15 seconds at the latest. Milliseconds. */
export const viewSpan = Duration.toMillis("30 seconds")
/** And from so long before the deadline of a payment on, until it has ended: no tick is later than that. Milliseconds. */
export const endingSpan = Duration.toMillis(openInterval)

/**
 * `hot`: a payment of this chain is open and young, looked at, has money that is not final, or ends; or a reorg may undo
 * one. `open`: payments are open on this chain, of which nothing is expected soon. `elsewhere`: payments are open on other
 * chains of the mode only. `idle`: none is open.
 */
export type Activity = "hot" | "open" | "elsewhere" | "idle"

const intervals = { hot: 0, open: openInterval, elsewhere: elsewhereInterval, idle: idleInterval }

/** Milliseconds from one tick to the next. */
export const intervalOf = ({ pollInterval }: ChainSettings, activity: Activity): number =>
  Math.max(Duration.toMillis(pollInterval), Duration.toMillis(intervals[activity]))
