import { Schema } from "effect"
import type { PaymentStatus } from "./Payment.ts"
import { PaymentObject } from "./Payment.ts"

export const EventKind = Schema.Literal(
  "payment.created",
  "payment.detecting",
  "payment.confirmed",
  "payment.expired",
  "payment.failed"
)
export type EventKind = typeof EventKind.Type

/** The event that tells a merchant of a payment's new status. */
export const kindOf = (status: PaymentStatus): EventKind =>
  status === "pending" ? "payment.created" : (`payment.${status}` as const)

/** The body of a webhook request. It is serialised once, stored, and every attempt sends those bytes. */
export const WebhookEvent = Schema.Struct({
  id: Schema.String,
  event: EventKind,
  createdAt: Schema.String,
  data: PaymentObject
}).annotations({ identifier: "WebhookEvent" })
export type WebhookEvent = typeof WebhookEvent.Type
