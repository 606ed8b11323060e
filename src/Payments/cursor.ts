import { Redacted } from "effect"
import type { ChainName } from "../Domain/Chain.ts"
import type { Owner } from "../Domain/Owner.ts"
import type { StatusFilter } from "../Domain/Payment.ts"
import type { SecretsShape } from "../Secrets.ts"
import type { Cursor } from "./PaymentsRepo.ts"

interface Filters {
  readonly status?: StatusFilter | undefined
  readonly chain?: ChainName | undefined
}

/** The cursors of the list of payments as opaque texts, which merchants send back. */
export interface Cursors {
  readonly encode: (cursor: Cursor, owner: Owner, filters: Filters) => string
  /** Undefined for a text that `encode` did not make, or made for another list. */
  readonly decode: (text: string, owner: Owner, filters: Filters) => Cursor | undefined
}

const listOf = ({ account, mode }: Owner, { chain, status }: Filters): string =>
  `cursor of ${account} ${mode} ${status ?? ""} ${chain ?? ""}`

/** Sealed, because a payment's sequence number reveals how many payments all accounts have together. */
export const makeCursors = ({ open, seal }: Pick<SecretsShape, "open" | "seal">): Cursors => ({
  encode: ({ createdAt, sequence }, owner, filters) =>
    Buffer.from(seal(`${createdAt}/${sequence}`, listOf(owner, filters))).toString("base64url"),
  decode: (text, owner, filters) => {
    const sealed = Buffer.from(text, "base64url")
    // Base64url has more than one spelling, of which this is the one.
    if (sealed.toString("base64url") !== text) return undefined
    try {
      const place = Redacted.value(open(sealed, listOf(owner, filters))).split("/")
      return { createdAt: Number(place[0]), sequence: Number(place[1]) }
    } catch {
      return undefined
    }
  }
})
