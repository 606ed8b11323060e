import type { ChainName } from "../Domain/Chain.ts"
import type { StatusFilter } from "../Domain/Payment.ts"
import type { Cursor } from "./PaymentsRepo.ts"

interface Filters {
  readonly status?: StatusFilter | undefined
  readonly chain?: ChainName | undefined
}

/** The place in a list, with the filters of that list: the text that a merchant hands back as it is. */
export const encodeCursor = ({ createdAt, sequence }: Cursor, { chain, status }: Filters): string =>
  Buffer.from(`${createdAt}/${sequence}/${status ?? ""}/${chain ?? ""}`).toString("base64url")

/** Undefined for what `encodeCursor` did not make, or made for other filters. */
export const decodeCursor = (text: string, filters: Filters): Cursor | undefined => {
  const place = /^(\d{1,15})\/(\d{1,15})\//.exec(Buffer.from(text, "base64url").toString("latin1"))
  if (place === null) return undefined
  const cursor = { createdAt: Number(place[1]), sequence: Number(place[2]) }
  // Numbers and base64url have more than one spelling, of which this is the one.
  return encodeCursor(cursor, filters) === text ? cursor : undefined
}
