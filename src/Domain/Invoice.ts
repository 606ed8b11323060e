/**
 * Invoices: a price in fiat money without token or network. A customer's choice makes an ordinary payment of it, with a locked
 * quote; a further choice cancels the payment before. Amounts are decimals, times Unix milliseconds.
 */
import { Data, Schema } from "effect"
import { idPattern, maybe, text, timestamp } from "../lib/annotations.ts"
import { present } from "../lib/Json.ts"
import { iso } from "../lib/moment.ts"
import { ChainName, type Mode } from "./Chain.ts"
import { PaymentCurrency, type PriceCurrency } from "./Currency.ts"
import type { AccountId, CheckoutToken, InvoiceId, PaymentId } from "./Ids.ts"
import { InvoicePrice, type Payment, PaymentObject, type PricedInvoice } from "./Payment.ts"

export const InvoiceStatus = Schema.Literal("open", "processing", "paid", "expired", "failed", "cancelled")
export type InvoiceStatus = typeof InvoiceStatus.Type

/** The languages of the checkout, as BCP 47 tags, in the order of the page's links. */
export const languages = ["en", "es", "de", "fr", "pt"] as const
export type Language = (typeof languages)[number]

/** A token on a network, as `USDC-base`. */
export type PaymentChoice = `${PaymentCurrency}-${ChainName}`

const choices = PaymentCurrency.literals.flatMap((currency) =>
  ChainName.literals.map((chain): PaymentChoice => `${currency}-${chain}`)
)

/** One of all tokens on all networks, whether there is such a token or not. */
export const ChoiceName = Schema.Literal(...choices)

export interface Chosen {
  readonly currency: PaymentCurrency
  readonly chain: ChainName
}

export const choiceName = ({ chain, currency }: Chosen): PaymentChoice => `${currency}-${chain}`

/** The token and the network of a choice. */
export const chosenBy = (choice: PaymentChoice): Chosen => {
  const [currency, chain] = choice.split("-")
  // Sound: neither part has a hyphen.
  return { currency, chain } as Chosen
}

/** An invoice as the store keeps it. */
export interface Invoice extends PricedInvoice {
  /** Order of creation. */
  readonly sequence: number
  readonly account: AccountId
  readonly mode: Mode
  /** Where the customer may choose, in the order of the configuration. */
  readonly choices: ReadonlyArray<PaymentChoice>
  readonly status: InvoiceStatus
  readonly createdAt: number
  readonly expiresAt: number
  /** JSON text, as it will be returned. */
  readonly metadata: string
  readonly redirectUrl: string | undefined
  readonly webhookUrl: string | undefined
  readonly language: Language | undefined
  /** The payment of the customer's last choice. */
  readonly payment: PaymentId | undefined
  /** How often its status has changed. */
  readonly changes: number
}

/** What a request for an invoice has where it does not say: of the payments' defaults. */
export interface CreateInvoice {
  /** Drawn unless given. */
  readonly id?: InvoiceId
  /** Whether another invoice may have the reference, whatever the account says. */
  readonly repeatsRef?: true
  readonly price: { readonly amount: string; readonly currency: PriceCurrency }
  readonly merchantRef?: string | undefined
  /** All that can be paid in where absent. */
  readonly currencies?: ReadonlyArray<PaymentChoice> | undefined
  /** Seconds. */
  readonly expiresIn?: number | undefined
  readonly metadata?: string | undefined
  readonly redirectUrl?: string | undefined
  readonly webhookUrl?: string | undefined
  readonly language?: Language | undefined
}

/** Milliseconds for which a choice holds its rate at most; then the customer chooses again at the rate of that time. */
export const rateHeldFor = 3_600_000

/** Choices of one invoice at most: each takes an address. */
export const mostChoices = 20

type OfPayment = Pick<Payment, "id" | "status" | "failureReason">

/**
 * The status of an invoice by its payments: money decides before anything else, then the invoice's own end, then the payment
 * of the last choice. One that has expired leaves the invoice open while it has time: there may be another choice.
 */
export const invoiceStatusOf = (
  { expiresAt, payment, status }: Pick<Invoice, "expiresAt" | "payment" | "status">,
  payments: ReadonlyArray<OfPayment>,
  now: number
): InvoiceStatus => {
  if (payments.some((one) => one.status === "confirmed")) return "paid"
  if (payments.some((one) => one.status === "detecting")) return "processing"
  if (status === "cancelled") return status
  const last = payments.find(({ id }) => id === payment)
  if (last?.failureReason === "cancelled") return "cancelled"
  if (last?.status === "failed") return "failed"
  if (last?.status === "pending") return "open"
  return now < expiresAt ? "open" : "expired"
}

/** An invoice with its payments, oldest first. */
export interface InvoiceWithPayments {
  readonly invoice: Invoice
  readonly payments: ReadonlyArray<Payment>
}

/** The invoice object of the API and of its events. */
export const InvoiceObject = Schema.Struct({
  id: text("Identifier of the invoice.", idPattern("inv")),
  merchantRef: maybe(text("Your reference, as given.")),
  price: InvoicePrice,
  status: InvoiceStatus.annotations({
    description:
      "`open`: nobody has paid. `processing`: money was seen, all of it or a part, and waits for confirmations or the rest. `paid`: its payment is confirmed. `expired`: nothing came in time. `failed`: its payment failed, see there. `cancelled`: you ended it."
  }),
  currencies: Schema.Array(Schema.String).annotations({
    description: "What the customer may pay in: token and network, such as `USDC-base`."
  }),
  createdAt: timestamp("When the invoice was created"),
  expiresAt: timestamp("Until when it can be paid"),
  metadata: Schema.Unknown.annotations({
    jsonSchema: { type: "object", description: "Your own data, as given; empty when none was." }
  }),
  checkoutUrl: text("Address of the page on which the customer chooses and pays: a link that needs no key.", {
    format: "uri"
  }),
  redirectUrl: maybe(text("Where the customer goes after paying, as given.", { format: "uri" })),
  language: maybe(text("The language of its page, unless the customer takes another.", { enum: languages })),
  payment: maybe(text("The payment of the last choice; absent before the first.", idPattern("pay"))),
  payments: Schema.Array(PaymentObject).annotations({
    description: "The payments of all choices, oldest first, also those that another choice replaced."
  })
}).annotations({
  identifier: "Invoice",
  description: "A price, and what was paid of it. Fields that do not apply yet are absent, never null."
})
export type InvoiceObject = typeof InvoiceObject.Type

/** The kinds of events that report an invoice's new status. They go to endpoints that name them. */
export const InvoiceEventKind = Schema.Literal(
  "invoice.created",
  "invoice.processing",
  "invoice.paid",
  "invoice.expired",
  "invoice.failed",
  "invoice.cancelled"
)
export type InvoiceEventKind = typeof InvoiceEventKind.Type

/** The kind of event that reports a status. */
export const invoiceEventOf = (status: InvoiceStatus): InvoiceEventKind =>
  status === "open" ? "invoice.created" : `invoice.${status}`

/** The body of a webhook request that tells of an invoice. */
export const InvoiceEvent = Schema.Struct({
  id: text("Identifier of the event. It can come more than once: skip the ids that you know.", idPattern("evt")),
  event: InvoiceEventKind.annotations({ description: "What happened." }),
  createdAt: timestamp("When it happened"),
  data: InvoiceObject
}).annotations({ identifier: "InvoiceEvent", description: "`data` is the invoice in its state at that time." })
export type InvoiceEvent = typeof InvoiceEvent.Type

/** The invoice has ended, or money was seen: `message` says what to do instead. */
export class InvoiceNotOpen extends Schema.TaggedError<InvoiceNotOpen>()("InvoiceNotOpen", {
  status: InvoiceStatus,
  message: Schema.String
}) {}

/** Why there is no further choice, or nothing to cancel. */
export const notOpen = (status: InvoiceStatus) =>
  new InvoiceNotOpen({
    status,
    message: {
      open: `A customer may choose ${mostChoices} times: cancel this invoice, and create another.`,
      processing: "Money was seen for this invoice: it can no longer be paid in something else.",
      paid: "This invoice is paid: send the money back to undo it.",
      expired: "This invoice has expired: create another.",
      failed: "The payment of this invoice failed: see its exceptions, or create another invoice.",
      cancelled: "This invoice was cancelled: create another."
    }[status]
  })

/** The account has an invoice of that reference in that mode, and does not repeat references. */
export class DuplicateInvoiceRef extends Data.TaggedError("DuplicateInvoiceRef")<{ readonly invoiceId: InvoiceId }> {}

/** The price cannot be converted to what was chosen; `available` can be paid in now. */
export class ChoiceUnpriced extends Data.TaggedError("ChoiceUnpriced")<{
  readonly message: string
  readonly available: ReadonlyArray<PaymentChoice>
}> {}

/** What is offered does not include that choice. */
export class NotAChoice extends Data.TaggedError("NotAChoice")<{ readonly available: ReadonlyArray<PaymentChoice> }> {}

/** The address of an invoice's page. */
export const pageOfInvoice = (
  { checkoutToken }: { readonly checkoutToken: CheckoutToken },
  publicUrl: string
): string => `${publicUrl}/pay/${checkoutToken}`

/** An invoice without its payments, as its merchant sees it. */
export const invoiceFields = (invoice: Invoice, publicUrl: string) => ({
  id: invoice.id,
  ...present({ merchantRef: invoice.merchantRef }),
  price: invoice.price,
  status: invoice.status,
  currencies: invoice.choices,
  createdAt: iso(invoice.createdAt),
  expiresAt: iso(invoice.expiresAt),
  metadata: JSON.parse(invoice.metadata) as unknown,
  checkoutUrl: pageOfInvoice(invoice, publicUrl),
  ...present({ redirectUrl: invoice.redirectUrl, language: invoice.language, payment: invoice.payment })
})
