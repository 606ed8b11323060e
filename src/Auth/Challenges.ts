import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { BoundedMap } from "../lib/BoundedMap.ts"

/** Lifetime of a challenge, milliseconds. */
const lifetime = 5 * 60_000
const nonceBytes = 16
const timeBytes = 8
/** Answered challenges in memory: more than passkeys can be checked within the lifetime of one. */
const mostAnswered = 100_000

/**
 * Challenges for passkeys. One is answered once, within five minutes, and for the purpose that it was made for: signing
 * in, or something within one session. A challenge proves itself (random bits, time, HMAC with a key of this process),
 * and only correctly answered ones are remembered: a client that requests challenges endlessly takes no memory, and
 * evicts no others. After a restart, a person who is signing in has to start again.
 */
export class Challenges {
  readonly #key = randomBytes(32)
  readonly #answered = new BoundedMap<string, true>(mostAnswered)

  #proof(issued: Uint8Array, purpose: string): Buffer {
    return createHmac("sha256", this.#key).update(issued).update(purpose).digest()
  }

  /** A new one, in base64url. `now` in Unix milliseconds. */
  issue(purpose: string, now: number): string {
    const issued = randomBytes(nonceBytes + timeBytes)
    issued.writeDoubleBE(now, nonceBytes)
    return Buffer.concat([issued, this.#proof(issued, purpose)]).toString("base64url")
  }

  /** Whether a challenge was made for this purpose, and may still have its answer. */
  isOpen(challenge: string, purpose: string, now: number): boolean {
    const bytes = Buffer.from(challenge, "base64url")
    const issued = bytes.subarray(0, nonceBytes + timeBytes)
    const given = bytes.subarray(issued.length)
    const proof = this.#proof(issued, purpose)
    if (given.length !== proof.length || !timingSafeEqual(given, proof)) return false
    return now - issued.readDoubleBE(nonceBytes) < lifetime && !this.#answered.has(bytes.toString("base64url"))
  }

  /** Accepts the right answer to a challenge; false when it is not open, since a concurrent one was faster. */
  answer(challenge: string, purpose: string, now: number): boolean {
    if (!this.isOpen(challenge, purpose, now)) return false
    this.#answered.set(Buffer.from(challenge, "base64url").toString("base64url"), true)
    return true
  }
}
