import { type Duration, Schema } from "effect"
import { count, idPattern, maybe, text, timestamp } from "../lib/annotations.ts"
import { Mode } from "./Chain.ts"
import { EventKind, OutboxEventKind } from "./Event.ts"

// When a webhook is sent again: what the code does, and what messages and documents say of it.

/** The delay from the end of each failed attempt to the start of the next. */
export const retryDelays: ReadonlyArray<Duration.DurationInput> = [
  "1 minute",
  "5 minutes",
  "30 minutes",
  "2 hours",
  "24 hours"
]

/** `1 minute, 5 minutes and 2 hours` */
export const delaysInWords = `${retryDelays.slice(0, -1).join(", ")} and ${retryDelays.at(-1)}`

/** After this many failed attempts a delivery's status is `failed`, although the last retry is still to come. */
export const failedAfter = retryDelays.length

/** Attempts of the whole schedule. */
export const mostAttempts = retryDelays.length + 1

const ordinals = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]

/** `fifth` */
export const ordinal = (attempt: number): string => ordinals[attempt - 1] ?? `${attempt}th`

/** `24 hours` */
export const lastDelay = String(retryDelays.at(-1))

/** `failed` still has its last attempt ahead while `nextAttemptAt` is set. */
export const DeliveryStatus = Schema.Literal("pending", "delivered", "failed", "cancelled")
export type DeliveryStatus = typeof DeliveryStatus.Type

/** What the lists can select by. `failing`: an attempt has failed, and none has succeeded yet. */
export const DeliveryFilter = Schema.Literal(...DeliveryStatus.literals, "failing")
export type DeliveryFilter = typeof DeliveryFilter.Type

/** An attempt as its receiver's owner may see it: without the addresses that were tried, which may be inside ones. */
export const AttemptObject = Schema.Struct({
  number: count("Counts all attempts of the delivery, from 1 on."),
  redelivery: maybe(
    Schema.Literal(true).annotations({ description: "Set when it was ordered, outside the retry schedule." })
  ),
  startedAt: timestamp("When it began"),
  durationMillis: count("How long it took."),
  status: maybe(count("The receiver's HTTP status. Absent when it gave none.")),
  error: maybe(text("Why there was no status, such as `timeout` or `connection refused`.")),
  bodyStart: maybe(text("The start of the receiver's answer, at most 512 bytes."))
}).annotations({ identifier: "DeliveryAttempt" })

/** A delivery, without its attempts. */
export const DeliveryObject = Schema.Struct({
  id: text("Identifier of the delivery.", idPattern("dlv")),
  event: text("The event that it delivers. The same at every endpoint.", idPattern("evt")),
  kind: EventKind.annotations({ description: "What the event tells." }),
  payment: maybe(text("The payment that it tells of.", idPattern("pay"))),
  invoice: maybe(text("The invoice that it tells of, where it is no payment.", idPattern("inv"))),
  merchantRef: text("Your own reference of the payment or invoice; of an invoice without one, its id."),
  endpoint: maybe(text("The endpoint that it goes to. Absent for a payment's own `webhookUrl`.", idPattern("wh"))),
  url: text("Where the last attempt went; before the first one, where it will go.", { format: "uri" }),
  status: DeliveryStatus.annotations({
    description: `\`pending\` until it arrives, \`failed\` once its ${ordinal(failedAfter)} attempt has failed, with the ${ordinal(mostAttempts)} ahead while \`nextAttemptAt\` is there; \`cancelled\` when its endpoint was deleted.`
  }),
  createdAt: timestamp("When it was made"),
  nextAttemptAt: maybe(timestamp("When the next attempt is due")),
  attemptsMade: count("How many attempts were made."),
  lastAttempt: maybe(AttemptObject)
}).annotations({ identifier: "Delivery", description: "An event on its way to one receiver." })

/** A delivery with its attempts. */
export const DeliveryWithAttempts = Schema.Struct({
  ...DeliveryObject.fields,
  attempts: Schema.Array(AttemptObject).annotations({
    description: "In the order in which they were made: the first one and the last ten, when there were more."
  })
}).annotations({ identifier: "DeliveryWithAttempts", description: "A delivery with its attempts." })

/** The same as operators see it: whose it is, and the addresses that were connected to. */
export const OperatorDelivery = Schema.Struct({
  ...DeliveryWithAttempts.fields,
  kind: OutboxEventKind,
  account: Schema.String,
  mode: Mode,
  attempts: Schema.Array(
    Schema.Struct({
      ...AttemptObject.fields,
      /** The IP address that was connected to, or all that were tried. */
      address: maybe(Schema.String)
    })
  )
})
export type OperatorDelivery = typeof OperatorDelivery.Type
