import { BoundedMap } from "../Domain/BoundedMap.ts"

/** Requests that a client may make at once. */
const burst = 50
/** Milliseconds after which it may make one more: 10 requests per second. */
const interval = 100
/** The longest delay of a request, in milliseconds. */
const longestWait = 5_000
/** Clients in memory. */
const capacity = 10_000

/**
 * A token bucket for requests that need no key, by the client's network (an IPv4 address or an IPv6 /64), and for
 * requests beyond a key's rate limit, by the key. Requests beyond 10 per second are delayed by up to five seconds and
 * never refused: they take no time from clients that keep to the rate, and nobody is locked out by others in the same
 * network.
 */
export class UnauthenticatedBudget {
  /** Per client, when the requests it has made are paid for at the rate, Unix milliseconds. */
  readonly #ends = new BoundedMap<string, number>(capacity)

  /** Counts a request at `now`, Unix milliseconds. Returns by how many milliseconds it has to be delayed. */
  wait(client: string, now: number): number {
    // Bounded, so that no delay is longer than `longestWait` even if the clock was set back.
    const owed = Math.min(Math.max(now, this.#ends.get(client) ?? now), now + burst * interval + longestWait)
    const end = owed + interval
    this.#ends.set(client, end)
    return Math.min(longestWait, Math.max(0, end - now - burst * interval))
  }
}
