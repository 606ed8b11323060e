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

/** Places in the lists of payments as texts, which merchants hand back as they are. */
export interface Cursors {
  readonly encode: (cursor: Cursor, owner: Owner, filters: Filters) => string
  /** Undefined for what `encode` did not make, or made for another list. */
  readonly decode: (text: string, owner: Owner, filters: Filters) => Cursor | undefined
}

const listOf = ({ account, mode }: Owner, { chain, status }: Filters): string =>
  `cursor of ${account} ${mode} ${status ?? ""} ${chain ?? ""}`

/** Sealed: a payment's number tells how many payments there are, those of other accounts among them. */
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
