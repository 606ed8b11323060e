/** Minimum calls per second, however often a provider refuses: fewer could not follow a chain. */
const slowest = 10
/** After each interval without a refusal the rate is raised by this factor, to find the provider's limit. */
const tryMoreMillis = 60_000
const tryMore = 1.25
/** Calls per second above which the limit is dropped. */
const fastest = 5_000
/** Burst: unused calls of the last milliseconds that may be made at once. */
const creditMillis = 1_000
/** A refusal may come this many seconds after its call: the deadline of a response. */
const secondsBack = 6
/** The maximum wait of a call, in milliseconds, also where the clock was set. */
const longestWait = 60_000

const unlimited = Number.POSITIVE_INFINITY

/**
 * The rate limiter of one provider's client. Calls are not delayed until the provider refuses one as too many; from
 * then on the rate is half of the busiest second before that, and rises slowly. So a long catch-up stays below the
 * provider's limit, without repeated cooldowns. Times are Unix milliseconds.
 */
export class RateLimiter {
  #perSecond = unlimited
  /** The time up to which the calls reserved so far use up the rate. */
  #paidAt = 0
  #changedAt = 0
  /** Calls of the last seconds, by second. */
  readonly #made = new Map<number, number>()

  /** Calls a second; infinite without a limit. */
  get perSecond(): number {
    return this.#perSecond
  }

  /** Whether a refusal cannot lower it. */
  get isSlowest(): boolean {
    return this.#perSecond <= slowest
  }

  /** Reserves some calls, and returns for how many milliseconds they have to wait. */
  reserve(calls: number, now: number): number {
    this.#count(calls, now)
    this.#resetIfSetBack(now)
    this.#grow(now)
    if (this.#perSecond === unlimited) return 0
    const start = Math.max(now, this.#paidAt)
    this.#paidAt = Math.max(now - creditMillis, this.#paidAt) + this.#cost(calls)
    return Math.min(start - now, longestWait)
  }

  /** Cancels the reservation of calls that will not be made. */
  giveBack(calls: number): void {
    if (this.#perSecond !== unlimited) this.#paidAt -= this.#cost(calls)
  }

  /** Lowers the rate: the provider has refused a call because of its rate limit. */
  refused(now: number): void {
    this.#resetIfSetBack(now)
    // Calls that were sent together are refused together: they lower the rate once.
    if (this.#perSecond !== unlimited && now - this.#changedAt < creditMillis) return
    const busiest = Math.max(0, ...this.#made.values())
    this.#perSecond = Math.max(slowest, Math.min(this.#perSecond, busiest) / 2)
    this.#changedAt = now
    this.#paidAt = Math.max(this.#paidAt, now)
    this.#made.clear()
  }

  #cost(calls: number): number {
    return (calls * 1000) / this.#perSecond
  }

  /** Starts again after the clock was set back, so that no call waits for a time far ahead. */
  #resetIfSetBack(now: number): void {
    if (now >= this.#changedAt) return
    this.#changedAt = now
    this.#paidAt = now
    this.#made.clear()
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
    this.#made.set(second, (this.#made.get(second) ?? 0) + calls)
    for (const old of this.#made.keys()) if (old <= second - secondsBack) this.#made.delete(old)
  }
}
