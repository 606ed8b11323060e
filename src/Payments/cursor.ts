import type { ChainName } from "../Domain/Chain.ts"
import type { StatusFilter } from "../Domain/Payment.ts"
import type { Cursor } from "./PaymentsRepo.ts"

interface Filters {
  readonly status?: StatusFilter | undefined
  readonly chain?: ChainName | undefined
}

const encodeFilters = ({ chain, status }: Filters): string => `${status ?? ""}/${chain ?? ""}`

/** The place in a list, with the filters of that list: the text that a merchant hands back as it is. */
export const encodeCursor = ({ createdAt, sequence }: Cursor, filters: Filters): string =>
  Buffer.from(`${createdAt}/${sequence}/${encodeFilters(filters)}`).toString("base64url")

/** Undefined for what `encodeCursor` did not make, or made for other filters. */
export const decodeCursor = (text: string, filters: Filters): Cursor | undefined => {
  const [, createdAt, sequence, made] =
    /^(\d{1,15})\/(\d{1,15})\/(.*)$/.exec(Buffer.from(text, "base64url").toString("latin1")) ?? []
  if (createdAt === undefined || sequence === undefined || made !== encodeFilters(filters)) return undefined
  const cursor = { createdAt: Number(createdAt), sequence: Number(sequence) }
  // base64url is read leniently: only the one spelling counts.
  return encodeCursor(cursor, filters) === text ? cursor : undefined
}
