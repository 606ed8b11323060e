import { BoundedMap } from "../lib/BoundedMap.ts"

/** Maximum delay of a refusal, in milliseconds. */
const longestWait = 5_000
/** Keys in memory. */
const capacity = 10_000

/**
 * A token bucket for the refusals of clients that go on after many: a key beyond its rate limit, a network that floods.
 * Those beyond the rate are delayed by up to five seconds, so that they take no time from others.
 */
export class RefusalPace {
  /** By key, when its past refusals are used up at the rate, Unix milliseconds. */
  readonly #ends = new BoundedMap<string, number>(capacity)
  readonly #interval: number
  readonly #ahead: number

  /**
   * @param burst refusals that a key may have at once
   * @param perSecond how many more it may have each second
   */
  constructor(burst: number, perSecond: number) {
    this.#interval = 1_000 / perSecond
    this.#ahead = burst * this.#interval
  }

  /** Counts a refusal at `now`, Unix milliseconds. Returns by how many milliseconds it has to be delayed. */
  wait(key: string, now: number): number {
    // Bounded, so that no delay is longer than `longestWait` even if the clock was set back.
    const owed = Math.min(Math.max(now, this.#ends.get(key) ?? now), now + this.#ahead + longestWait)
    const end = owed + this.#interval
    this.#ends.set(key, end)
    return Math.min(longestWait, Math.max(0, end - now - this.#ahead))
  }
}
