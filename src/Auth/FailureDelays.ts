import { BoundedMap } from "../lib/BoundedMap.ts"

/** Failures without a delay, for typos. */
const free = 5
const firstDelay = 250
const longestDelay = 5_000
/** After this long without a failure the count of a network starts again. */
const memory = 60_000
/** Maximum hold of an attempt, milliseconds: beyond it too many of its network are waiting. */
const longestHold = 3 * longestDelay
/** Networks in memory. */
const capacity = 10_000

interface Failures {
  readonly count: number
  /** Of the last one, Unix milliseconds. */
  readonly at: number
  /** When the last booked attempt may be checked, Unix milliseconds. */
  readonly bookedUntil: number
}

/** The delay of the failure that is the `count`th in a row, in milliseconds. */
const delayOf = (count: number): number =>
  count <= free ? 0 : Math.min(longestDelay, firstDelay * 2 ** Math.min(count - free - 1, 10))

/**
 * Delays after failed authentications, by the client's network: an IPv4 address, or an IPv6 /64. They grow with each failure.
 * An unguessable secret (a key) is delayed after it has failed, so that a valid key never is, however many others have
 * failed. A guessable one (a password) is held before it is checked, one attempt after the other.
 */
export class FailureDelays {
  readonly #failures = new BoundedMap<string, Failures>(capacity)

  #of(network: string, now: number): Failures {
    const before = this.#failures.get(network)
    const isFresh = before !== undefined && now >= before.at && now - before.at < memory
    return isFresh ? before : { count: 0, at: now, bookedUntil: now }
  }

  /** Counts a failure at `now`, Unix milliseconds. Returns the delay of its reply in milliseconds. */
  failed(network: string, now: number): number {
    const before = this.#of(network, now)
    const count = before.count + 1
    this.#failures.set(network, { ...before, count, at: now })
    return delayOf(count)
  }

  /**
   * Books the next attempt of a network at `now`, Unix milliseconds. Returns the milliseconds for which it has to be held;
   * undefined when too many are being held already.
   */
  book(network: string, now: number): number | undefined {
    const before = this.#of(network, now)
    const delay = delayOf(before.count + 1)
    if (delay === 0) return 0
    const bookedUntil = Math.max(now, before.bookedUntil) + delay
    if (bookedUntil - now > longestHold) return undefined
    this.#failures.set(network, { ...before, bookedUntil })
    return bookedUntil - now
  }
}
