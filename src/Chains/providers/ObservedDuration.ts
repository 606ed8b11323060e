import { Duration } from "effect"

/** The most that counts between two observations, since the condition may have paused. Milliseconds. */
const longestStep = Duration.toMillis("5 minutes")
/**
 * After a longer gap between observations the duration starts again: the process may have been stopped, or the clock
 * set. Receipts are asked about every ten minutes at least. Milliseconds.
 */
const longestGap = Duration.toMillis("11 minutes")

/**
 * The duration of a condition, by the times at which it was observed (Unix milliseconds). Time without observations
 * does not count: the process or the chain may have stopped, or the clock may have been set.
 */
export class ObservedDuration {
  #since = 0
  #seenAt: number | undefined
  #millis = 0

  /** The duration so far, in milliseconds. */
  get millis(): number {
    return this.#millis
  }

  /** When it was first observed, without an interruption since; undefined where it does not go on. */
  get since(): number | undefined {
    return this.#seenAt === undefined ? undefined : this.#since
  }

  /** Notes an observation at `now`. */
  seen(now: number): void {
    const step = now - (this.#seenAt ?? Number.NEGATIVE_INFINITY)
    const goesOn = step >= 0 && step <= longestGap
    if (!goesOn) this.#since = now
    this.#millis = goesOn ? this.#millis + Math.min(step, longestStep) : 0
    this.#seenAt = now
  }

  /** Notes that it is over. */
  end(): void {
    this.#seenAt = undefined
    this.#millis = 0
  }
}
