import { Effect } from "effect"
import { ApiError, type FieldProblem, invalid, mustFind, quotaExceeded } from "../Domain/ApiError.ts"
import type { Mode } from "../Domain/Chain.ts"
import type { Accounted } from "../Domain/Event.ts"
import type { PaymentNotPending } from "../Domain/Payment.ts"
import { accountedObject } from "../Events/paymentObject.ts"
import { answerPage, makeCursors } from "../Http/cursor.ts"
import { answer, type Handlers, sharedAnswer, storeReplayAs } from "../Http/Handler.ts"
import { revalidated } from "../Http/HttpReply.ts"
import { alternatives } from "../lib/annotations.ts"
import { audited, keyActor } from "../Operations/auditLog.ts"
import { type Created, type CreateError, type NotOffered, Payments, payableOn } from "../Payments.ts"
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
      return {
        path: "chain",
        message:
          error.available.length === 0
            ? `no chain is open for ${error.mode} keys: the operator adds [chains.${error.chain}.${error.mode}], or sets accepting = true in it`
            : `${error.chain} is not available to this key: choose ${alternatives(error.available)}`
      }
    case "CurrencyNotOnChain":
      return {
        path: "currency",
        message: `${error.currency} is not available on ${error.chain}: ${
          error.available.length === 0 ? "there is none" : `choose ${alternatives(error.available)}`
        }`
      }
    case "WorthTooLittle":
      return { path: "amount", message: error.message }
    case "TargetRefused":
      return { path: "webhookUrl", message: error.message }
  }
}

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

  const currenciesIn = (mode: Mode) => {
    const data = settings.chains.filter((network) => network.mode === mode).flatMap(payableOn)
    // By the configuration, which a restart changes. The key, and with it the mode, is in no URL.
    const caching = { "cache-control": "private, max-age=300", vary: "X-API-Key" }
    return sharedAnswer({ data }, { headers: { ...revalidated(JSON.stringify(data)), ...caching } })
  }
  const currencies = { live: currenciesIn("live"), test: currenciesIn("test") }

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

    get: ({ key, path }) => Effect.map(mustFind("payment", payments.get(key, path.id)), read),

    list: ({ key, query: { cursor, limit, ...filters } }) =>
      answerPage(cursors, accounted, {
        ...{ owner: key, list: listOf(filters), cursor, limit },
        placeOf: ({ payment }) => payment,
        read: (after, most) => payments.list(key, { ...filters, limit: most, after })
      }),

    change: ({ key, path: { id }, payload: { metadata }, storeReplay }) => {
      const keys = Object.keys(JSON.parse(metadata) as object)
      const work = mustFind("payment", payments.change(key, id, metadata, storeReplayAs(storeReplay, read))).pipe(
        Effect.map(read),
        Effect.catchTags({
          QuotaExceeded: (error) => quotaExceeded(error),
          MetadataRefused: ({ message }) => invalid([{ path: "metadata", message }])
        })
      )
      return audited(keyActor(key), { act: "payments metadata", detail: { id, keys } }, () => work).pipe(
        Effect.provideService(Writer, writer)
      )
    },

    currencies: ({ key }) => Effect.succeed(currencies[key.mode]),

    cancel: ({ key, path: { id }, storeReplay }) =>
      mustFind("payment", payments.cancel(key, id, storeReplayAs(storeReplay, read))).pipe(
        Effect.map(read),
        Effect.catchTag("PaymentNotPending", notPending)
      )
  }
  return handlers
})
