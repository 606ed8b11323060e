import { Effect } from "effect"
import { ApiError, type FieldProblem, invalid, notFound, quotaExceeded } from "../Domain/ApiError.ts"
import type { Accounted } from "../Domain/Event.ts"
import type { PaymentNotPending } from "../Domain/Payment.ts"
import { accountedObject } from "../Events/paymentObject.ts"
import { invalidCursor, makeCursors, pageOf } from "../Http/cursor.ts"
import { answer, type Handlers, storeReplayAs } from "../Http/Handler.ts"
import { alternatives } from "../lib/annotations.ts"
import { defaultPageSize } from "../lib/parameters.ts"
import { audited, keyActor } from "../Operations/auditLog.ts"
import { type Created, type CreateError, type NotOffered, Payments } from "../Payments.ts"
import { Secrets } from "../Secrets.ts"
import { Settings } from "../Settings.ts"
import { type StoreUnavailable, Writer } from "../Sql.ts"
import type { ListPaymentsQuery, PaymentsApi } from "./Api.ts"

/** Why a payment was not created, for the client that asked for it. */
export const creationRefusal = (error: Exclude<CreateError, StoreUnavailable>): ApiError => {
  switch (error._tag) {
    case "DuplicateMerchantRef":
      return new ApiError({
        code: "DUPLICATE_MERCHANT_REF",
        message: "A payment with this merchantRef exists: details has its id.",
        details: { paymentId: error.paymentId }
      })
    case "NotOffered":
      return invalid(error.problems.map(problemOf))
    case "WalletNotConfigured":
      return new ApiError({
        code: "WALLET_NOT_CONFIGURED",
        message: `There is no wallet to receive ${error.mode} payments with: the operator has to configure one.`
      })
    case "QuotaExceeded":
      return quotaExceeded(error)
    case "QuoteRefused":
      return new ApiError({ code: error.code, message: error.message, details: error.details })
  }
}

const problemOf = (error: NotOffered["problems"][number]): FieldProblem => {
  switch (error._tag) {
    case "ChainNotConfigured":
      return { path: "chain", message: `${error.chain} is not available to this key: ${offer(error.available)}` }
    case "CurrencyNotOnChain":
      return {
        path: "currency",
        message: `${error.currency} is not available on ${error.chain}: ${offer(error.available)}`
      }
    case "TargetRefused":
      return { path: "webhookUrl", message: error.message }
  }
}

const offer = (available: ReadonlyArray<string>): string =>
  available.length === 0 ? "there is none" : `choose ${alternatives(available)}`

type Filters = Omit<typeof ListPaymentsQuery.Type, "cursor" | "limit">

/** Names the list with its filters, to which a cursor is bound. */
const listOf = (filters: Filters): string =>
  JSON.stringify([
    "payments",
    Object.entries({ ...filters, metadata: Object.entries(filters.metadata ?? {}).sort() }).sort()
  ])

const notPending = ({ message, status }: PaymentNotPending) =>
  new ApiError({ code: "PAYMENT_NOT_PENDING", message, details: { status } })

export const paymentHandlers = Effect.gen(function* () {
  const payments = yield* Payments
  const cursors = makeCursors(yield* Secrets)
  const settings = yield* Settings
  const writer = yield* Writer

  const created = ({ object }: Created) => answer(object, { headers: { location: `/v1/payments/${object.id}` } })
  const accounted = (found: Accounted) => accountedObject(found, settings)
  const read = (found: Accounted) => answer(accounted(found))

  const handlers: Handlers<typeof PaymentsApi> = {
    create: ({ key, payload, storeReplay }) =>
      payments.create(key, payload, storeReplayAs(storeReplay, created)).pipe(
        Effect.mapBoth({
          onFailure: (error) => (error._tag === "StoreUnavailable" ? error : creationRefusal(error)),
          onSuccess: created
        })
      ),

    get: ({ key, path }) =>
      Effect.gen(function* () {
        const found = yield* payments.get(key, path.id)
        return found === undefined ? yield* notFound("payment") : read(found)
      }),

    list: ({ key, query: { cursor = "", limit = defaultPageSize, ...filters } }) =>
      Effect.gen(function* () {
        const page = yield* pageOf(cursors, {
          ...{ owner: key, list: listOf(filters), cursor, limit },
          placeOf: ({ payment }: Accounted) => payment,
          read: (after, most) => payments.list(key, { ...filters, limit: most, after })
        })
        if (page === undefined) return yield* invalidCursor
        return answer({ data: page.rows.map(accounted), cursor: page.next ?? null })
      }),

    change: ({ key, path: { id }, payload: { metadata }, storeReplay }) => {
      const keys = Object.keys(JSON.parse(metadata) as object)
      const work = payments.change(key, id, metadata, storeReplayAs(storeReplay, read)).pipe(
        Effect.catchTags({
          QuotaExceeded: (error) => quotaExceeded(error),
          MetadataRefused: ({ message }) => invalid([{ path: "metadata", message }])
        }),
        Effect.flatMap((changed) => (changed === undefined ? notFound("payment") : Effect.succeed(read(changed))))
      )
      return Effect.provideService(
        audited(keyActor(key), { act: "payments metadata", detail: { id, keys } }, () => work),
        Writer,
        writer
      )
    },

    cancel: ({ key, path: { id }, storeReplay }) =>
      Effect.gen(function* () {
        const cancelled = yield* Effect.catchTag(
          payments.cancel(key, id, storeReplayAs(storeReplay, read)),
          "PaymentNotPending",
          notPending
        )
        return cancelled === undefined ? yield* notFound("payment") : read(cancelled)
      })
  }
  return handlers
})
