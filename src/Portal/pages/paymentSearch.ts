/** What the list of payments shows and exports: one field for whatever names a payment, and the filters of the API. */
import { Clock, DateTime, Effect, Either, Schema } from "effect"
import { shopOf } from "../../Auth/ShopsRepo.ts"
import type { Owner } from "../../Domain/Account.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import { betweenParts } from "../../Http/parts.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { alternatives, maybe, must } from "../../lib/annotations.ts"
import { ListPaymentsQuery } from "../../Payments/Api.ts"
import {
  hashFits,
  type ListFilter,
  namedBy,
  referenceBegins,
  type Searched,
  type Sought,
  searched
} from "../../Payments/PaymentListRepo.ts"
import type { Db } from "../../Sql.ts"
import { filterOfState, type PaymentState, paymentStates } from "../PaymentStatesRepo.ts"
import { givenOf, pageSize } from "../query.ts"

export type Filter = Omit<ListFilter, "limit" | "after">

/** Days of the account's time zone that a query may name. */
export const periods = { today: "today", yesterday: "yesterday", "last-month": "last month" } as const

const isPeriod = (name: string | undefined): name is keyof typeof periods =>
  name !== undefined && Object.hasOwn(periods, name)

/** Whether dates were typed, which take the place of a named period. */
export const hasDates = (query: URLSearchParams): boolean =>
  ["createdAfter", "createdBefore"].some((name) => (query.get(name) ?? "").trim() !== "")

/** When a named period began and ended, Unix milliseconds. */
const boundsOf = (period: keyof typeof periods, now: number, timezone: string) => {
  const unit = period === "last-month" ? "month" : "day"
  const current = DateTime.startOf(DateTime.unsafeMakeZoned(now, { timeZone: timezone }), unit)
  const [from, before] =
    period === "today"
      ? [current, undefined]
      : [DateTime.subtract(current, unit === "month" ? { months: 1 } : { days: 1 }), current]
  return {
    createdAfter: DateTime.toEpochMillis(from),
    ...(before === undefined ? {} : { createdBefore: DateTime.toEpochMillis(before) })
  }
}

const { chain, createdAfter, createdBefore } = ListPaymentsQuery.fields
const states = Object.keys(paymentStates).filter(Boolean)
const isState = (text: string): text is PaymentState => states.includes(text)
const status = maybe(must(`be ${alternatives(states)}`, Schema.String.pipe(Schema.filter(isState))))
const decode = Schema.decodeUnknownEither(Schema.Struct({ chain, createdAfter, createdBefore, status }), {
  errors: "all"
})

/** The filters of a query, or what is wrong with them. Here, unlike in the API, a status is what a row says. */
const filtersOf = (query: URLSearchParams) => {
  const { created: _created, q: _q, ...rest } = givenOf(query)
  return Either.mapLeft(decode(rest), (error) => problemsOf(error, { kind: "query parameter", known: [] }))
}

/** Six or more digits of a hash or an address; four are enough where it is shortened in the middle, as explorers and wallets do. */
const partForm =
  /^(?:0x)?(?=[0-9a-f]{6}|[0-9a-f]{4,5}(?:…|\.{2,3})[0-9a-f]{4})([0-9a-f]{4,64})(?:(?:…|\.{2,3})([0-9a-f]{1,64}))?$/

/** The transaction or the address that an explorer's page is about; any other text as it is. */
const withoutExplorer = (text: string): string =>
  /^https?:\/\/[^\s]*\/(?:tx|address)\/(0x[0-9a-fA-F]{40,64})/.exec(text)?.[1] ?? text

/** Of an owner's payments so many of the newest are searched for a part of an address, or a text in their metadata. */
export const mostSearched = 10_000
const atOnce = 100
/** A shorter text is in too many; to look for a longer one takes the longer, up to seconds for thousands of characters. */
const leastText = 5
export const longestText = 100

/** Hashes with the same beginning, of all owners, that are looked at. */
const mostHashes = 1_000

/** Looks at the newest payments one by one, with a turn of the event loop in between. */
const searchNewest = Effect.fnUntraced(function* (db: Db, owner: Owner, sought: Sought) {
  const ids: Array<PaymentId> = []
  let after: Searched | undefined
  for (let looked = 0; looked < mostSearched && ids.length < pageSize; looked += atOnce) {
    const page: ReadonlyArray<Searched> = yield* searched(db, owner, sought, after, atOnce)
    for (const { id, isHit } of page) if (isHit === 1) ids.push(id)
    after = page.at(-1)
    if (page.length < atOnce) break
    yield* betweenParts
  }
  return ids.slice(0, pageSize)
})

/** What a text is a part of: the beginning of references or transactions, else of addresses, or in the metadata. At most a page. */
const partsOf = Effect.fnUntraced(function* (db: Db, owner: Owner, text: string) {
  // As SQLite's `lower`: of ASCII letters alone.
  const lower = text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  const [, start, end = ""] = partForm.exec(lower) ?? []
  const begun = [
    ...(yield* referenceBegins(db, owner, text, pageSize)),
    ...(start === undefined ? [] : yield* hashFits(db, owner, `0x${start}`, end, mostHashes))
  ]
  if (begun.length > 0 || lower.length < leastText || lower.length > longestText) {
    return begun.slice(0, pageSize)
  }
  const address = start === undefined ? "" : `0x${start}*${end}`
  // Metadata is stored as JSON.
  return yield* searchNewest(db, owner, { address, text: JSON.stringify(lower).slice(1, -1) })
})

/** The filter that a query asks for, or what is wrong with it. */
export const searchOf = Effect.fn("Portal.searchOf")(function* (db: Db, owner: Owner, query: URLSearchParams) {
  const filters = filtersOf(query)
  if (Either.isLeft(filters)) return Either.left(filters.left)
  const { created, q } = givenOf(query)
  const { status = "", ...others } = filters.right
  let filter: Filter = { ...others, ...(yield* filterOfState(db, owner, status)) }
  if (isPeriod(created) && !hasDates(query)) {
    const { timezone = "UTC" } = yield* shopOf(db, owner.account)
    filter = { ...filter, ...boundsOf(created, yield* Clock.currentTimeMillis, timezone) }
  }
  if (q === undefined) return Either.right(filter)
  const text = withoutExplorer(q)
  const named = yield* namedBy(db, owner, text)
  if (named !== undefined) return Either.right({ ...filter, ...named })
  const { ids } = filter
  const found = yield* partsOf(db, owner, text)
  return Either.right({ ...filter, ids: ids === undefined ? found : found.filter((id) => ids.includes(id)) })
})
