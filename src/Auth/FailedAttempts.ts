/** Failures without a delay, for mistyped keys. */
const free = 5
const firstDelay = 250
const longestDelay = 5_000
/** After this long without a failure the count of a network starts again. */
const memory = 60_000
/** Networks in memory. The one whose last failure is oldest is dropped first. */
const capacity = 10_000

interface Failures {
  readonly count: number
  /** Unix milliseconds. */
  readonly at: number
}

/**
 * Failed authentications by the client's network: an IPv4 address, or an IPv6 /64. The delay of the reply grows with each
 * failure. Nobody is locked out: a request with a valid key is never delayed, however many others have failed.
 */
export class FailedAttempts {
  readonly #failures = new Map<string, Failures>()

  /** Counts a failure at `now`, Unix milliseconds. Returns the delay of its reply in milliseconds. */
  failed(network: string, now: number): number {
    const before = this.#failures.get(network)
    const isFresh = before !== undefined && now >= before.at && now - before.at < memory
    const count = (isFresh ? before.count : 0) + 1
    this.#failures.delete(network)
    this.#failures.set(network, { count, at: now })
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > capacity && oldest !== undefined) this.#failures.delete(oldest)
    return count <= free ? 0 : Math.min(longestDelay, firstDelay * 2 ** Math.min(count - free - 1, 10))
  }
}
