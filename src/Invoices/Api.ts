import { Schema } from "effect"
import { endpointsFor, keyedGroup } from "../Auth/Api.ts"
import { withStatus } from "../Domain/ApiError.ts"
import { Fiat } from "../Domain/Currency.ts"
import { ChoiceName, InvoiceObject, InvoiceStatus, languages } from "../Domain/Invoice.ts"
import { Metadata } from "../Domain/Metadata.ts"
import { alternatives, inLog, maybe, must, text } from "../lib/annotations.ts"
import { choiceParameter, cursorParameter, limitParameter, momentParameter, pageSchema } from "../lib/parameters.ts"
import {
  CancelPaymentBody,
  ChainToPayOn,
  ExpiresInField,
  merchantRefField,
  PayableField,
  RedirectUrlField,
  WebhookUrlField
} from "../Payments/Api.ts"

const PriceField = Schema.Struct({
  amount: must(
    'be a decimal string above 0 such as "25.00", with at most 15 digits before the point',
    Schema.String.pipe(
      Schema.pattern(/^(0|[1-9][0-9]{0,14})(\.[0-9]{1,4})?$/),
      Schema.filter((amount) => /[1-9]/.test(amount))
    ),
    { about: "What it costs, with no more decimals than the currency has", log: "shown" }
  ),
  currency: must(`be ${alternatives(Fiat.literals)}`, Fiat, { about: "The currency of the price", log: "shown" })
}).annotations({
  identifier: "PriceOfInvoice",
  description: "What the customer is to pay, in fiat money.",
  ...inLog("shown")
})

const ChoicesField = must(
  "be a list of tokens and networks such as USDC-base, each once, at least one",
  Schema.Array(ChoiceName).pipe(
    Schema.minItems(1),
    Schema.filter((some) => new Set(some).size === some.length)
  ),
  {
    about: "What the customer may choose; by default all that can be paid in. One alone is chosen at once",
    json: { type: "array", items: { type: "string" }, minItems: 1, uniqueItems: true },
    log: "shown"
  }
)

/** The input of `POST /v1/invoices`. */
export const CreateInvoiceBody = Schema.Struct({
  price: PriceField,
  merchantRef: maybe(
    merchantRefField("Your own reference, once in an account and mode unless the account lets invoices repeat one")
  ),
  currencies: maybe(ChoicesField),
  expiresIn: maybe(ExpiresInField),
  metadata: maybe(Metadata),
  redirectUrl: maybe(RedirectUrlField),
  webhookUrl: maybe(WebhookUrlField),
  language: maybe(
    must(`be ${alternatives(languages)}`, Schema.Literal(...languages), {
      about: "The language of its page; by default the customer's",
      log: "shown"
    })
  )
}).annotations({ identifier: "CreateInvoice", description: "A price to be paid. Unknown fields are refused." })

/** The input of `POST /v1/invoices/:id/choose`. */
export const ChooseBody = Schema.Struct({ currency: PayableField, chain: ChainToPayOn }).annotations({
  identifier: "Choose",
  description: "What the customer pays in. Unknown fields are refused."
})

/** The query of `GET /v1/invoices`. */
export const ListInvoicesQuery = Schema.Struct({
  status: choiceParameter(InvoiceStatus, "Only invoices in this status"),
  merchantRef: maybe(merchantRefField("Only invoices with this reference")),
  createdAfter: momentParameter("Only invoices created at this time or later"),
  createdBefore: momentParameter("Only invoices created before this time"),
  limit: limitParameter("Invoices"),
  cursor: cursorParameter
})

export const InvoicePage = pageSchema("InvoicePage", "invoices", InvoiceObject)

const { get, post } = endpointsFor("payments:read", "payments:write")

const Path = Schema.Struct({ id: text("Identifier of the invoice: `inv_…`.") })

export const InvoicesApi = keyedGroup("invoices")
  .add(
    post("create", "/v1/invoices", "DUPLICATE_INVOICE_REF", "WALLET_NOT_CONFIGURED", "QUOTA_EXCEEDED")
      .setPayload(CreateInvoiceBody)
      .addSuccess(withStatus(201, InvoiceObject))
  )
  .add(get("get", "/v1/invoices/:id", "NOT_FOUND").setPath(Path).addSuccess(InvoiceObject))
  .add(get("list", "/v1/invoices", "INVALID_CURSOR").setUrlParams(ListInvoicesQuery).addSuccess(InvoicePage))
  .add(
    post(
      "choose",
      "/v1/invoices/:id/choose",
      "NOT_FOUND",
      "INVOICE_NOT_OPEN",
      "CHOICE_UNAVAILABLE",
      "WALLET_NOT_CONFIGURED",
      "QUOTA_EXCEEDED"
    )
      .setPath(Path)
      .setPayload(ChooseBody)
      .addSuccess(InvoiceObject)
  )
  .add(
    post("cancel", "/v1/invoices/:id/cancel", "NOT_FOUND", "INVOICE_NOT_OPEN")
      .setPath(Path)
      .setPayload(CancelPaymentBody)
      .addSuccess(InvoiceObject)
  )
