/** Failures that are answered at once: whoever mistypes a key is not made to wait. */
const free = 5
const firstDelay = 250
const longestDelay = 5_000
/** After this long without a failure a network is as good as any. */
const memory = 60_000
/** Networks remembered; the one that has failed least recently gives way. */
const capacity = 10_000

interface Failures {
  readonly count: number
  /** Unix milliseconds. */
  readonly at: number
}

/**
 * Failed authentications by the client's network: an IPv4 address, or an IPv6 /64. Repeated ones are answered later and
 * later; nobody is ever locked out, since a valid key is never asked how often another one has failed.
 */
export class FailedAttempts {
  readonly #failures = new Map<string, Failures>()

  /** Notes a failure at `now`, Unix milliseconds, and gives for how many milliseconds its answer is to wait. */
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
