import { Effect } from "effect"
import { ApiError, invalid, mustFind } from "../Domain/ApiError.ts"
import type { InvoiceNotOpen, InvoiceWithPayments } from "../Domain/Invoice.ts"
import { invoiceObject } from "../Events/paymentObject.ts"
import { answerPage, makeCursors } from "../Http/cursor.ts"
import { answer, type Handlers, storeReplayAs } from "../Http/Handler.ts"
import { type ChooseError, type InvoiceError, Invoices } from "../Invoices.ts"
import { alternatives } from "../lib/annotations.ts"
import { creationRefusal } from "../Payments/Http.ts"
import { Secrets } from "../Secrets.ts"
import { Settings } from "../Settings.ts"
import type { StoreUnavailable } from "../Sql.ts"
import type { InvoicesApi } from "./Api.ts"

/** Why an invoice was not created, chosen for or cancelled, for the client that asked for it. */
export const invoiceRefusal = (
  error: Exclude<InvoiceError | ChooseError | InvoiceNotOpen, StoreUnavailable>
): ApiError => {
  switch (error._tag) {
    case "InvoiceRefused":
      return invalid(error.problems)
    case "DuplicateInvoiceRef":
      return new ApiError({
        code: "DUPLICATE_INVOICE_REF",
        message:
          "An invoice with this merchantRef exists: details has its id. An account may let invoices repeat one: tilld accounts shop --invoice-refs repeat.",
        details: { invoiceId: error.invoiceId }
      })
    case "InvoiceNotOpen":
      return new ApiError({ code: "INVOICE_NOT_OPEN", message: error.message, details: { status: error.status } })
    case "NotAChoice":
      return invalid([{ path: "currency", message: `is not offered on this chain: ${alternatives(error.available)}` }])
    case "ChoiceUnpriced":
      return new ApiError({
        code: "CHOICE_UNAVAILABLE",
        message: `${error.message} Nothing was made: details has what can be chosen now.`,
        details: { available: error.available },
        headers: { "retry-after": "10" }
      })
    default:
      return creationRefusal(error)
  }
}

const refused = (error: InvoiceError | ChooseError | InvoiceNotOpen) =>
  error._tag === "StoreUnavailable" ? error : invoiceRefusal(error)

export const invoiceHandlers = Effect.gen(function* () {
  const invoices = yield* Invoices
  const cursors = makeCursors(yield* Secrets)
  const settings = yield* Settings

  const object = (found: InvoiceWithPayments) => invoiceObject(found, settings)
  const read = (found: InvoiceWithPayments) => answer(object(found))
  const created = (made: InvoiceWithPayments) =>
    answer(object(made), { headers: { location: `/v1/invoices/${made.invoice.id}` } })

  const handlers: Handlers<typeof InvoicesApi> = {
    create: ({ key, payload, storeReplay }) =>
      invoices
        .create(key, payload, storeReplayAs(storeReplay, created))
        .pipe(Effect.mapBoth({ onFailure: refused, onSuccess: created })),

    get: ({ key, path: { id } }) => Effect.map(mustFind("invoice", invoices.get(key, id)), read),

    list: ({ key, query: { cursor, limit, ...filters } }) =>
      answerPage(cursors, object, {
        ...{ owner: key, list: JSON.stringify(["invoices", Object.entries(filters).sort()]), cursor, limit },
        placeOf: ({ invoice }) => invoice,
        read: (after, most) => invoices.list(key, { ...filters, limit: most, after })
      }),

    choose: ({ key, path: { id }, payload, storeReplay }) =>
      mustFind(
        "invoice",
        Effect.mapError(invoices.choose(key, id, payload, storeReplayAs(storeReplay, read)), refused)
      ).pipe(Effect.map(read)),

    cancel: ({ key, path: { id }, storeReplay }) =>
      mustFind("invoice", Effect.mapError(invoices.cancel(key, id, storeReplayAs(storeReplay, read)), refused)).pipe(
        Effect.map(read)
      )
  }
  return handlers
})
