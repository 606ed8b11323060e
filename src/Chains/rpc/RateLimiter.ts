/** However often a provider refuses, it takes so many calls a second: fewer would not follow a chain. */
const slowest = 10
/** What a provider takes is found by trying a little more from time to time. */
const tryMoreMillis = 60_000
const tryMore = 1.25
/** Above, there is nothing to hold back. */
const fastest = 5_000
/** Calls that were not made for so long may be made at once. */
const creditMillis = 1_000
/** A refusal may come so many seconds after its call: as long as an answer may take. */
const secondsBack = 6
/** Nobody waits longer, whatever the clock says. */
const longestWait = 60_000

const unlimited = Number.POSITIVE_INFINITY

/**
 * How many calls a second a provider takes. Nothing is held back until it refuses some as too many; from then on as many
 * as half of what it was asked in the busiest second before that, and slowly more. So a long catch-up stays below its
 * limit, and the provider is not put aside over and over. Times are Unix milliseconds.
 */
export class RateLimiter {
  #perSecond = unlimited
  /** When all calls so far are paid for. */
  #paidAt = 0
  #changedAt = 0
  /** Calls of the last seconds, by second. */
  readonly #asked = new Map<number, number>()

  get perSecond(): number {
    return this.#perSecond
  }

  /** Makes room for some calls, and tells for how many milliseconds they have to wait. */
  reserve(calls: number, now: number): number {
    this.#count(calls, now)
    this.#heal(now)
    this.#grow(now)
    if (this.#perSecond === unlimited) return 0
    const start = Math.max(now, this.#paidAt)
    this.#paidAt = Math.max(now - creditMillis, this.#paidAt) + this.#cost(calls)
    return Math.min(start - now, longestWait)
  }

  /** Calls that had room will not be made. */
  giveBack(calls: number): void {
    if (this.#perSecond !== unlimited) this.#paidAt -= this.#cost(calls)
  }

  /** The provider has refused a call as one too many. */
  refused(now: number): void {
    this.#heal(now)
    // What was sent together is refused together.
    if (this.#perSecond !== unlimited && now - this.#changedAt < creditMillis) return
    const busiest = Math.max(0, ...this.#asked.values())
    this.#perSecond = Math.max(slowest, Math.min(this.#perSecond, busiest) / 2)
    this.#changedAt = now
    this.#paidAt = Math.max(this.#paidAt, now)
    this.#asked.clear()
  }

  #cost(calls: number): number {
    return (calls * 1000) / this.#perSecond
  }

  /** A clock that was set back leaves nothing to wait for. */
  #heal(now: number): void {
    if (now >= this.#changedAt) return
    this.#changedAt = now
    this.#paidAt = now
    this.#asked.clear()
  }

  #grow(now: number): void {
    while (this.#perSecond < fastest && now - this.#changedAt >= tryMoreMillis) {
      this.#perSecond *= tryMore
      this.#changedAt += tryMoreMillis
    }
    if (this.#perSecond >= fastest) this.#perSecond = unlimited
  }

  #count(calls: number, now: number): void {
    const second = Math.floor(now / 1000)
    this.#asked.set(second, (this.#asked.get(second) ?? 0) + calls)
    for (const old of this.#asked.keys()) if (old <= second - secondsBack) this.#asked.delete(old)
  }
}
