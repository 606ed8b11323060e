import { Schema } from "effect"
import { getAddress, type Hex } from "viem"
import { count, idPattern, maybe, text, timestamp } from "../lib/annotations.ts"
import { present } from "../lib/Json.ts"
import { iso } from "../lib/moment.ts"
import { ChainName } from "./Chain.ts"
import { ExceptionObject, type PaymentException, toExceptionObject } from "./Exception.ts"
import { EventId } from "./Ids.ts"
import { InvoiceEventKind } from "./Invoice.ts"
import { type Payment, PaymentObject, type PaymentStatus } from "./Payment.ts"
import { ReceiptKind, type ShownReceipt } from "./Receipt.ts"
import { type Refund, RefundObject, refundObject } from "./Refund.ts"

/** The exceptions that are shown with a payment. */
export interface ShownExceptions {
  /** The most pressing first. */
  readonly exceptions: ReadonlyArray<PaymentException>
  /** Whether there are more exceptions than these. */
  readonly more: boolean
  /** With one payment alone: its newest receipts, and its refunds. */
  readonly receipts?: ReadonlyArray<ShownReceipt>
  readonly refunds?: ReadonlyArray<Refund>
}

/** A payment with its exceptions. */
export interface Accounted extends ShownExceptions {
  readonly payment: Payment
}

/** What came to a payment's address in one transfer. */
const ReceiptObject = Schema.Struct({
  txHash: maybe(text("The transaction; absent where no node can tell it.")),
  from: maybe(text("Who sent it, in EIP-55 form, where that is known.")),
  chain: ChainName.annotations({ description: "The chain that it came on." }),
  currency: text("What came."),
  amount: text("How much, in the smallest unit.", { pattern: "^[1-9][0-9]*$" }),
  at: timestamp("The time of its block"),
  kind: ReceiptKind.annotations({
    description:
      "`credited`: it counts for the payment, all or a part of it. `too_small`: below what is credited. `gas`: the operator sent it to pay for collecting. `before`: it came before the payment. The others are as of exceptions."
  }),
  confirmations: maybe(count("Blocks from its own to the head that was read, its own included."))
}).annotations({ identifier: "Receipt", description: "Money that came to a payment's address." })

const AcceptedMoney = Schema.Struct({
  exception: text("The exception that was accepted.", idPattern("exc")),
  chain: ChainName.annotations({ description: "The chain that the money is on." }),
  currency: text("What came."),
  amount: text("How much, in the smallest unit of that.", { pattern: "^[1-9][0-9]*$" }),
  txHash: maybe(text("The transaction that brought it, where that is known."))
}).annotations({ identifier: "AcceptedMoney", description: "Money that was accepted by hand." })

/** A payment, with the money that needs or needed a person when there is any: the same in answers and events. */
export const AccountedPayment = Schema.Struct({
  ...PaymentObject.fields,
  redirectUrl: maybe(
    text("Where the customer goes after paying, as given; only in answers that read or change a payment.", {
      format: "uri"
    })
  ),
  exceptions: maybe(
    Schema.Array(ExceptionObject).annotations({
      description:
        "Money that came and does not fit, when there is any. What is open comes first, and of that `found_late` and `reorged`; at most 100, and 10 in an event."
    })
  ),
  receipts: maybe(
    Schema.Array(ReceiptObject).annotations({
      description:
        "What came to the payment's address, on any chain, oldest first, where anything did; with one payment and in events. At most 100, and 10 in an event: the newest."
    })
  ),
  refunds: maybe(
    Schema.Array(RefundObject).annotations({
      description: "What goes back of it, oldest first, where anything does; with one payment and in events."
    })
  ),
  acceptedAs: maybe(
    Schema.Array(AcceptedMoney).annotations({
      description:
        "Of a confirmed payment: money that does not fit it and was accepted by hand, such as another token or another chain. What it asked for is in `kept` alone."
    })
  ),
  moreExceptions: maybe(
    Schema.Literal(true).annotations({
      description: "Set when there are more than are shown: `GET /v1/exceptions?payment=` lists them all."
    })
  )
}).annotations({
  identifier: "AccountedPayment",
  description: "A payment, with the money that does not fit it. Fields that do not apply yet are absent, never null."
})
export type AccountedPayment = typeof AccountedPayment.Type

/** A payment with its exceptions as the merchant sees them. */
export const withExceptions = (
  payment: PaymentObject,
  { exceptions, more, receipts = [], refunds = [] }: ShownExceptions
): AccountedPayment => {
  // Its own money is in its sums.
  const accepted = exceptions.filter(
    ({ chain, currency, kind, status }) =>
      status === "accepted" && kind !== "reorged" && (chain !== payment.chain || currency !== payment.currency)
  )
  return {
    ...payment,
    ...(exceptions.length === 0 ? {} : { exceptions: exceptions.flatMap(toExceptionObject) }),
    ...(more ? { moreExceptions: true as const } : {}),
    ...(receipts.length === 0 ? {} : { receipts: receipts.map(receiptObject) }),
    ...(refunds.length === 0 ? {} : { refunds: refunds.map(refundObject) }),
    ...(payment.status !== "confirmed" || accepted.length === 0 ? {} : { acceptedAs: accepted.map(acceptedMoney) })
  }
}

const receiptObject = ({ at, confirmations, from, txHash, ...receipt }: ShownReceipt): typeof ReceiptObject.Type => ({
  ...present({ txHash, from: from && getAddress(from as Hex) }),
  ...{ ...receipt, at: iso(at * 1000) },
  ...present({ confirmations })
})

const acceptedMoney = ({ amount, chain, currency, id, txHash }: PaymentException): typeof AcceptedMoney.Type => ({
  ...{ exception: id, chain, currency, amount: `${amount}`, ...present({ txHash }) }
})

/** The kinds that report a payment's new status. A payment's own `webhookUrl`, and a stream, get all of them. */
export const StatusEventKind = Schema.Literal(
  "payment.created",
  "payment.detecting",
  "payment.confirmed",
  "payment.expired",
  "payment.failed"
)
export type StatusEventKind = typeof StatusEventKind.Type

/** The kinds that are about a payment. One that reports no new status is sent only to endpoints that name it. */
export const PaymentEventKind = Schema.Literal(
  ...StatusEventKind.literals,
  "payment.updated",
  "payment.exception",
  "refund.final"
)
export type PaymentEventKind = typeof PaymentEventKind.Type

/** All kinds. */
export const EventKind = Schema.Literal(...PaymentEventKind.literals, ...InvoiceEventKind.literals)
export type EventKind = typeof EventKind.Type

/** The types of webhooks to shop plugins: they go to endpoints that plugins registered, and other kinds never do. */
export const PluginEventKind = Schema.Literal(
  "InvoiceCreated",
  "InvoiceReceivedPayment",
  "InvoiceProcessing",
  "InvoicePaymentSettled",
  "InvoiceSettled",
  "InvoiceExpired",
  "InvoiceInvalid"
)
export type PluginEventKind = typeof PluginEventKind.Type

/** The kinds that the outbox has. */
export const OutboxEventKind = Schema.Union(EventKind, PluginEventKind)
export type OutboxEventKind = typeof OutboxEventKind.Type

export const isPluginEventKind: (kind: OutboxEventKind) => kind is PluginEventKind = Schema.is(PluginEventKind)

export const isStatusEventKind: (kind: OutboxEventKind) => kind is StatusEventKind = Schema.is(StatusEventKind)

/** The kind of event that reports a payment's new status. */
export const statusEventOf = (status: PaymentStatus): StatusEventKind =>
  status === "pending" ? "payment.created" : (`payment.${status}` as const)

/** The body of a webhook request. It is serialised once, stored, and every attempt sends those bytes. */
export const WebhookEvent = Schema.Struct({
  id: text("Identifier of the event. It can come more than once: skip the ids that you know.", idPattern("evt")),
  event: PaymentEventKind.annotations({ description: "What happened." }),
  createdAt: timestamp("When it happened"),
  data: AccountedPayment,
  exception: maybe(ExceptionObject),
  refund: maybe(RefundObject)
}).annotations({
  identifier: "WebhookEvent",
  description:
    "`data` is the payment in its state at the time of the event; `exception`, in `payment.exception` only, and `refund`, in `refund.final` only, what it is about, as it is now."
})
export type WebhookEvent = typeof WebhookEvent.Type

/** The position before every event that is kept. */
export const streamStart = "start"

/** Where a stream of events continues: after this event. */
export const Position = Schema.Union(Schema.Literal(streamStart), EventId).annotations({
  message: () => ({ message: "must be the id of a message of this stream", override: true }),
  jsonSchema: {
    type: "string",
    pattern: "^(start|evt_[A-Za-z0-9_-]{22,43})$",
    description:
      "Goes on behind the message with this `id`; without it the stream begins now. `start` is before the oldest event that is kept."
  }
})
export type Position = typeof Position.Type
