import { createHash } from "node:crypto"
import { BoundedMap } from "../Domain/BoundedMap.ts"

/** Those in memory. */
const capacity = 10_000

const hashOf = (cookies: string): string => createHash("sha256").update(cookies).digest("base64url")

/**
 * Whose requests without a key are whose: those of one network, unless a page has recognised somebody by their cookies,
 * who then owns theirs, wherever they come from. A cookie that nobody has checked counts for nothing.
 */
export class Visitors {
  readonly #known = new BoundedMap<string, string>(capacity)

  recognised(cookies: string | undefined, who: string): void {
    if (cookies !== undefined) this.#known.set(hashOf(cookies), who)
  }

  ownerOf(cookies: string | undefined, network: string): string {
    return (cookies === undefined ? undefined : this.#known.get(hashOf(cookies))) ?? network
  }
}
