import { Schema } from "effect"
import { Mode } from "../Domain/Chain.ts"
import { EventKind } from "../Domain/Event.ts"
import { iso } from "../Domain/Timestamp.ts"
import type { LoggedAttempt, LoggedDelivery } from "../Webhooks/queue/DeliveryLogRepo.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const AttemptView = Schema.Struct({
  number: Schema.Number,
  /** Present when an operator ordered it, outside the retry schedule. */
  redelivery: optional(Schema.Literal(true)),
  startedAt: Schema.String,
  durationMillis: Schema.Number,
  /** The IP address that was connected to, or all that were tried. */
  address: optional(Schema.String),
  status: optional(Schema.Number),
  error: optional(Schema.String),
  bodyStart: optional(Schema.String)
})

export const DeliveryView = Schema.Struct({
  id: Schema.String,
  event: Schema.String,
  kind: EventKind,
  payment: Schema.String,
  merchantRef: Schema.String,
  account: Schema.String,
  mode: Mode,
  url: Schema.String,
  /** Absent for a payment's own webhookUrl. */
  endpoint: optional(Schema.String),
  status: Schema.Literal("pending", "delivered", "failed", "cancelled"),
  createdAt: Schema.String,
  nextAttemptAt: optional(Schema.String),
  attempts: Schema.Array(AttemptView),
  /** The number of attempts after the first that are no longer stored. */
  forgottenAttempts: optional(Schema.Number)
})
export type DeliveryView = typeof DeliveryView.Type

const attemptView = (attempt: LoggedAttempt): DeliveryView["attempts"][number] => ({
  number: attempt.number,
  ...(attempt.isRedelivery ? { redelivery: true } : {}),
  startedAt: iso(attempt.startedAt),
  durationMillis: attempt.endedAt - attempt.startedAt,
  ...(attempt.address === null ? {} : { address: attempt.address }),
  ...(attempt.status === null ? {} : { status: attempt.status }),
  ...(attempt.error === null ? {} : { error: attempt.error }),
  ...(attempt.bodyStart === null ? {} : { bodyStart: attempt.bodyStart })
})

export const deliveryView = ({ sequence: _, ...delivery }: LoggedDelivery): DeliveryView => {
  const { attempts, createdAt, endpoint, made, nextAttemptAt, ...rest } = delivery
  return {
    ...rest,
    ...(endpoint === null ? {} : { endpoint }),
    createdAt: iso(createdAt),
    ...(nextAttemptAt === null ? {} : { nextAttemptAt: iso(nextAttemptAt) }),
    attempts: attempts.map(attemptView),
    ...(made > attempts.length ? { forgottenAttempts: made - attempts.length } : {})
  }
}
