import { Schema } from "effect"
import { idPattern, text, timestamp } from "../lib/annotations.ts"
import type { PaymentException } from "./Exception.ts"
import { ExceptionObject, toExceptionObject } from "./ExceptionObject.ts"
import { EventId } from "./Ids.ts"
import { type Payment, PaymentObject, type PaymentStatus } from "./Payment.ts"

/** The exceptions that are shown with a payment. */
export interface ShownExceptions {
  /** The most pressing first. */
  readonly exceptions: ReadonlyArray<PaymentException>
  /** Whether there are more exceptions than these. */
  readonly more: boolean
}

/** A payment with its exceptions. */
export interface Accounted extends ShownExceptions {
  readonly payment: Payment
}

/** A payment, with the money that needs or needed a person when there is any: the same in answers and events. */
export const AccountedPayment = Schema.Struct({
  ...PaymentObject.fields,
  redirectUrl: Schema.optionalWith(
    text("Where the customer goes after paying, as given; only in answers that read or change a payment.", {
      format: "uri"
    }),
    { exact: true }
  ),
  exceptions: Schema.optionalWith(
    Schema.Array(ExceptionObject).annotations({
      description:
        "Money that came and does not fit, when there is any. What is open comes first, and of that `found_late` and `reorged`; at most 100, and 10 in an event."
    }),
    { exact: true }
  ),
  moreExceptions: Schema.optionalWith(
    Schema.Literal(true).annotations({
      description: "Set when there are more than are shown: `GET /v1/exceptions?payment=` lists them all."
    }),
    { exact: true }
  )
}).annotations({
  identifier: "AccountedPayment",
  description: "A payment, with the money that does not fit it. Fields that do not apply yet are absent, never null."
})
export type AccountedPayment = typeof AccountedPayment.Type

/** A payment with its exceptions as the merchant sees them. */
export const withExceptions = (payment: PaymentObject, { exceptions, more }: ShownExceptions): AccountedPayment => ({
  ...payment,
  ...(exceptions.length === 0 ? {} : { exceptions: exceptions.flatMap(toExceptionObject) }),
  ...(more ? { moreExceptions: true as const } : {})
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

/** All kinds. One that reports no new status is sent only to endpoints that name it. */
export const EventKind = Schema.Literal(...StatusEventKind.literals, "payment.updated", "payment.exception")
export type EventKind = typeof EventKind.Type

export const isStatusEventKind: (kind: EventKind) => kind is StatusEventKind = Schema.is(StatusEventKind)

/** The kind of event that reports a payment's new status. */
export const statusEventOf = (status: PaymentStatus): StatusEventKind =>
  status === "pending" ? "payment.created" : (`payment.${status}` as const)

/** The body of a webhook request. It is serialised once, stored, and every attempt sends those bytes. */
export const WebhookEvent = Schema.Struct({
  id: text("Identifier of the event. It can come more than once: skip the ids that you know.", idPattern("evt")),
  event: EventKind.annotations({ description: "What happened." }),
  createdAt: timestamp("When it happened"),
  data: AccountedPayment,
  exception: Schema.optionalWith(ExceptionObject, { exact: true })
}).annotations({
  identifier: "WebhookEvent",
  description:
    "`data` is the payment in its state at the time of the event; `exception`, in `payment.exception` only, what it is about, as it is now."
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
