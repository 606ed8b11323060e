import { Duration } from "effect"

/** From one sight to the next, no more than this counts: it may have been otherwise meanwhile. */
const longestStep = Duration.toMillis("5 minutes")
/**
 * After so long without a sight it begins anew: the process may have been stopped, or the clock been set. Receipts are
 * asked about every ten minutes at least.
 */
const longestGap = Duration.toMillis("11 minutes")

/**
 * For how long something has gone on, by the times at which it was seen to; Unix milliseconds. What passes while nobody
 * looks, be it that the process or the chain stood still or that the clock was set, is not time in which it was so.
 */
export class ObservedDuration {
  #seenAt: number | undefined
  #millis = 0

  /** Milliseconds. */
  get millis(): number {
    return this.#millis
  }

  /** It was seen once more. */
  seen(now: number): void {
    const step = now - (this.#seenAt ?? now)
    this.#millis = step >= 0 && step <= longestGap ? this.#millis + Math.min(step, longestStep) : 0
    this.#seenAt = now
  }

  /** It is over. */
  end(): void {
    this.#seenAt = undefined
    this.#millis = 0
  }
}
