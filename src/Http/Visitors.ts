import { createHash } from "node:crypto"
import { BoundedMap } from "../Domain/BoundedMap.ts"
import type { Sharer } from "./LoopShare.ts"

/** Those in memory. */
const capacity = 10_000

/** A person who has signed in has as much as so many networks of strangers: a flood by these must not end their work. */
const knownWeight = 100

const hashOf = (cookies: string): string => createHash("sha256").update(cookies).digest("base64url")

/** A network without a known person. */
export const stranger = (network: string): Sharer => ({ name: network, weight: 1 })

/**
 * Whose requests without a key are whose: those of one network, unless a page has recognised somebody by their cookies,
 * who then owns theirs, wherever they come from. A cookie that was not verified counts for nothing. A network from
 * which somebody was recognised has the weight of a known one, so that its people can sign in again.
 */
export class Visitors {
  readonly #known = new BoundedMap<string, string>(capacity)
  readonly #networks = new BoundedMap<string, true>(capacity)

  recognised(cookies: string | undefined, network: string, who: string | undefined): void {
    this.#networks.set(network, true)
    if (cookies !== undefined && who !== undefined) this.#known.set(hashOf(cookies), who)
  }

  /** A known network is another owner than before, so that what strangers there have used counts for none of its people. */
  ownerOf(cookies: string | undefined, network: string): Sharer {
    const who = cookies === undefined ? undefined : this.#known.get(hashOf(cookies))
    if (who !== undefined) return { name: who, weight: knownWeight }
    return this.#networks.get(network) ? { name: `known ${network}`, weight: knownWeight } : stranger(network)
  }
}
