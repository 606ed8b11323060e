/** Requests that a client may make at once. */
const burst = 50
/** Milliseconds after which it may make one more. */
const interval = 100
/** The longest that one of them waits for its turn, in milliseconds. */
const longestWait = 5_000
/** Clients remembered; the one that has asked least recently gives way. */
const capacity = 10_000

/**
 * Requests that need no key, by the client's network: an IPv4 address, or an IPv6 /64; and those beyond a key's rate, by the
 * key. A client that asks more often than 10 times a second is answered as it always is, but in its turn, or after five
 * seconds. So it takes no time from those who keep to their rate, and nobody is locked out by a neighbour.
 */
export class UnauthenticatedBudget {
  /** When each client's turns that are given away end, Unix milliseconds. */
  readonly #ends = new Map<string, number>()

  /** Takes a turn at `now`, Unix milliseconds, and gives for how many milliseconds the request is to wait. */
  wait(client: string, now: number): number {
    // Nobody owes more than the longest wait, also where the clock was set back.
    const owed = Math.min(Math.max(now, this.#ends.get(client) ?? now), now + burst * interval + longestWait)
    const end = owed + interval
    this.#ends.delete(client)
    this.#ends.set(client, end)
    const [oldest] = this.#ends.keys()
    if (this.#ends.size > capacity && oldest !== undefined) this.#ends.delete(oldest)
    return Math.min(longestWait, Math.max(0, end - now - burst * interval))
  }
}
