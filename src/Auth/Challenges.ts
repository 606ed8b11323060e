import { randomBytes } from "node:crypto"

/** Milliseconds until a challenge must have its answer. */
const lifetime = 5 * 60_000
/** Challenges in memory. The oldest is dropped first. */
const capacity = 10_000

interface Issued {
  readonly purpose: string
  /** Unix milliseconds. */
  readonly at: number
}

/**
 * Challenges for passkeys. One is answered once, within five minutes, and for the purpose that it was made for: signing in,
 * or something within one session. In memory: a restart makes whoever is signing in start again.
 */
export class Challenges {
  readonly #issued = new Map<string, Issued>()

  /** A new one, in base64url. */
  issue(purpose: string, now: number): string {
    const challenge = randomBytes(32).toString("base64url")
    this.#issued.set(challenge, { purpose, at: now })
    const [oldest] = this.#issued.keys()
    if (this.#issued.size > capacity && oldest !== undefined) this.#issued.delete(oldest)
    return challenge
  }

  /** Takes a challenge: whether it was made for this purpose, and had no answer yet. */
  take(challenge: string, purpose: string, now: number): boolean {
    const issued = this.#issued.get(challenge)
    if (issued === undefined || issued.purpose !== purpose) return false
    this.#issued.delete(challenge)
    return now - issued.at < lifetime
  }
}
