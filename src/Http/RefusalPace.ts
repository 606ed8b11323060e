import { BoundedMap } from "../Domain/BoundedMap.ts"

/** Refusals that a key may have at once. */
const burst = 50
/** Milliseconds after which it may have one more: 10 a second. */
const interval = 100
/** The longest delay of a refusal, in milliseconds. */
const longestWait = 5_000
/** Keys in memory. */
const capacity = 10_000

/**
 * A token bucket for the refusals of a key that goes on beyond its rate limit, or of a network that floods. Those beyond 10 a
 * second are delayed by up to five seconds, so that they take no time from others.
 */
export class RefusalPace {
  /** By key, when the refusals it has had are paid for at the rate, Unix milliseconds. */
  readonly #ends = new BoundedMap<string, number>(capacity)

  /** Counts a refusal at `now`, Unix milliseconds. Returns by how many milliseconds it has to be delayed. */
  wait(key: string, now: number): number {
    // Bounded, so that no delay is longer than `longestWait` even if the clock was set back.
    const owed = Math.min(Math.max(now, this.#ends.get(key) ?? now), now + burst * interval + longestWait)
    const end = owed + interval
    this.#ends.set(key, end)
    return Math.min(longestWait, Math.max(0, end - now - burst * interval))
  }
}
