import { createHash } from "node:crypto"
import { BoundedMap } from "../lib/BoundedMap.ts"
import type { Sharer } from "./LoopShare.ts"

/** Those in memory. */
const capacity = 10_000

/** The weight of a signed-in person, in networks of strangers: a flood by these must not end their work. */
const knownWeight = 100

const hashOf = (cookies: string): string => createHash("sha256").update(cookies).digest("base64url")

/** A network without a known person. */
export const stranger = (network: string): Sharer => ({ name: network, weight: 1 })

/**
 * The owner of a request without a key: its network, or the person whom a page has recognised by their cookies, from
 * any network. A cookie that was not verified counts for nothing. A network from which somebody was recognised has the
 * weight of a known one, so that its people can sign in again.
 */
export class Visitors {
  readonly #known = new BoundedMap<string, string>(capacity)
  readonly #networks = new BoundedMap<string, true>(capacity)

  recognised(cookies: string | undefined, network: string, who: string | undefined): void {
    this.#networks.set(network, true)
    if (cookies !== undefined && who !== undefined) this.#known.set(hashOf(cookies), who)
  }

  /** A network that becomes known is a new owner: what strangers there have used does not count against it. */
  ownerOf(cookies: string | undefined, network: string): Sharer {
    const who = cookies === undefined ? undefined : this.#known.get(hashOf(cookies))
    if (who !== undefined) return { name: who, weight: knownWeight }
    return this.#networks.get(network) ? { name: `known ${network}`, weight: knownWeight } : stranger(network)
  }
}
