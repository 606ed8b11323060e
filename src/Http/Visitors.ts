import { createHash } from "node:crypto"
import { BoundedMap } from "../lib/BoundedMap.ts"

/** Those in memory. */
const capacity = 10_000

const hashOf = (cookies: string): string => createHash("sha256").update(cookies).digest("base64url")

/** Whose a request without a key is: visitors take turns, the known ones first. */
export interface Requester {
  readonly name: string
  readonly isKnown: boolean
}

/** A network without a known person. */
export const stranger = (network: string): Requester => ({ name: network, isKnown: false })

/**
 * The visitor of a request without a key: its network, or the person whom a page has recognised by their cookies, from
 * any network. A cookie that was not verified counts for nothing. A network from which somebody was recognised is a known
 * one, so that its people can sign in again.
 */
export class Visitors {
  readonly #known = new BoundedMap<string, string>(capacity)
  readonly #networks = new BoundedMap<string, true>(capacity)

  recognised(cookies: string | undefined, network: string, who: string | undefined): void {
    this.#networks.set(network, true)
    if (cookies !== undefined && who !== undefined) this.#known.set(hashOf(cookies), who)
  }

  of(cookies: string | undefined, network: string): Requester {
    const who = cookies === undefined ? undefined : this.#known.get(hashOf(cookies))
    if (who !== undefined) return { name: who, isKnown: true }
    return { name: network, isKnown: this.#networks.get(network) === true }
  }
}
