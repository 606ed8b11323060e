/** What the list of payments shows and exports: one field for whatever names a payment, and the filters of the API. */
import { Effect, Either, Schema } from "effect"
import { toChecksummed } from "../../Domain/Address.ts"
import type { FieldProblem } from "../../Domain/ApiError.ts"
import type { Owner } from "../../Domain/Owner.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { ListPaymentsQuery } from "../../Payments/Api.ts"
import { type ListFilter, list } from "../../Payments/PaymentListRepo.ts"
import { byOwner } from "../../Payments/PaymentsRepo.ts"
import type { Db } from "../../Sql.ts"
import { givenOf } from "../query.ts"

export type Filter = Omit<ListFilter, "limit" | "after">

const { chain, createdAfter, createdBefore, status } = ListPaymentsQuery.fields
const Filters = Schema.Struct({ chain, createdAfter, createdBefore, status })
const decode = Schema.decodeUnknownEither(Filters, { errors: "all" })

/** The filters of a query, or what is wrong with them. Here, unlike in the API, those that were cancelled are a status. */
const filtersOf = (query: URLSearchParams): Either.Either<Filter, ReadonlyArray<FieldProblem>> => {
  const { q: _, status, ...rest } = givenOf(query)
  const isCancelled = status === "cancelled"
  const decoded = decode({ ...rest, ...(status === undefined || isCancelled ? {} : { status }) })
  return Either.mapBoth(decoded, {
    onLeft: (error) => problemsOf(error, { kind: "query parameter", known: [] }),
    onRight: (filter) => ({ ...filter, ...(isCancelled ? { cancelled: true as const } : {}) })
  })
}

const hashForm = /^0x[0-9a-fA-F]{64}$/

/** The transaction or the address that an explorer's page is about; any other text as it is. */
const withoutExplorer = (text: string): string =>
  /^https?:\/\/[^\s]*\/(?:tx|address)\/(0x[0-9a-fA-F]{40,64})/.exec(text)?.[1] ?? text

/**
 * What a text stands for among an owner's payments: the payment with that id, else with that address, else those of that
 * transaction, else the one with that reference.
 */
const meantBy = Effect.fnUntraced(function* (db: Db, owner: Owner, text: string) {
  const payment = yield* byOwner(db, owner, text)
  // The address is the payment's alone.
  if (payment !== undefined) return { address: payment.address }
  const address = toChecksummed(text)
  const exact: ReadonlyArray<Filter> = [
    ...(address === undefined ? [] : [{ address }]),
    ...(hashForm.test(text) ? [{ txHash: text.toLowerCase() }] : [])
  ]
  for (const filter of exact) {
    if ((yield* list(db, owner, { ...filter, limit: 1 })).length > 0) return filter
  }
  return { merchantRef: text }
})

/** The filter that a query asks for, or what is wrong with it. */
export const searchOf = Effect.fn("Portal.searchOf")(function* (db: Db, owner: Owner, query: URLSearchParams) {
  const filters = filtersOf(query)
  const { q } = givenOf(query)
  if (Either.isLeft(filters) || q === undefined) return filters
  return Either.right({ ...filters.right, ...(yield* meantBy(db, owner, withoutExplorer(q))) })
})
