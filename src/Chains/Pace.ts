/** However often a provider refuses, it takes so many calls a second: fewer would not follow a chain. */
const slowest = 10
/** What a provider takes is found by trying a little more from time to time. */
const tryMoreMillis = 60_000
const tryMore = 1.25
/** Above, there is nothing to hold back. */
const fastest = 5_000
/** Calls that were not made for so long may be made at once. */
const creditMillis = 1_000

/**
 * How many calls a second a provider takes. Nothing is held back until it refuses some as too many; from then on as many
 * as half of what it was asked in that second, and slowly more. So a long catch-up, or several chains of one plan, stay
 * below its limit and are not put aside over and over. Times are Unix milliseconds.
 */
export class Pace {
  #perSecond = Number.POSITIVE_INFINITY
  /** When all calls so far are paid for. */
  #paidAt = 0
  #changedAt = 0
  /** Calls in the second that began then, and in the one before. */
  #second = 0
  #calls = 0
  #callsBefore = 0

  get perSecond(): number {
    return this.#perSecond
  }

  /** Makes room for some calls, and tells for how many milliseconds they have to wait. */
  reserve(calls: number, now: number): number {
    this.#count(calls, now)
    if (this.#perSecond === Number.POSITIVE_INFINITY) return 0
    if (now < this.#changedAt) {
      // The clock was set back.
      this.#changedAt = now
      this.#paidAt = now
    }
    while (now - this.#changedAt >= tryMoreMillis && this.#perSecond < fastest) {
      this.#perSecond *= tryMore
      this.#changedAt += tryMoreMillis
    }
    if (this.#perSecond >= fastest) {
      this.#perSecond = Number.POSITIVE_INFINITY
      return 0
    }
    const start = Math.max(now, this.#paidAt)
    this.#paidAt = Math.max(now - creditMillis, this.#paidAt) + (calls * 1000) / this.#perSecond
    return start - now
  }

  /** The provider has refused a call as one too many. */
  refused(now: number): void {
    // What was sent together is refused together.
    if (this.#perSecond !== Number.POSITIVE_INFINITY && Math.abs(now - this.#changedAt) < creditMillis) return
    const asked = Math.max(this.#calls, this.#callsBefore)
    this.#perSecond = Math.max(slowest, Math.min(this.#perSecond, asked) / 2)
    this.#changedAt = now
    this.#paidAt = Math.max(this.#paidAt, now)
  }

  #count(calls: number, now: number): void {
    const second = Math.floor(now / 1000)
    if (second !== this.#second) {
      this.#callsBefore = second === this.#second + 1 ? this.#calls : 0
      this.#calls = 0
      this.#second = second
    }
    this.#calls += calls
  }
}
