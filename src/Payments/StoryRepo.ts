import type { EventKind } from "../Domain/Event.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { PaymentStatus } from "../Domain/Payment.ts"
import type { DeliveryStatus } from "../Domain/Webhook.ts"
import type { Db } from "../Sql.ts"

// What an operator sees of a payment, read across the tables of others and never written. Times in Unix milliseconds.

export interface Transition {
  readonly from: PaymentStatus
  readonly to: PaymentStatus
  readonly at: number
}

export interface StoredEvent {
  readonly id: string
  readonly kind: EventKind
  readonly createdAt: number
}

export interface Delivery {
  readonly id: string
  readonly event: string
  readonly url: string
  /** Null for the payment's own webhookUrl. */
  readonly endpoint: string | null
  readonly status: DeliveryStatus
  readonly nextAttemptAt: number | null
}

export interface Attempt {
  readonly delivery: string
  readonly number: number
  readonly startedAt: number
  readonly endedAt: number
  readonly status: number | null
  readonly error: string | null
  readonly bodyStart: string | null
}

export const transitions = (db: Db, payment: PaymentId) =>
  db.all<Transition>(
    'SELECT from_status AS "from", to_status AS "to", at FROM transitions WHERE payment_id = ? ORDER BY ordinal',
    [payment]
  )

export const events = (db: Db, payment: PaymentId) =>
  db.all<StoredEvent>(
    "SELECT id, kind, created_at AS createdAt FROM events WHERE payment_id = ? ORDER BY created_at, rowid",
    [payment]
  )

// By way of the events: their index is the one that knows the payment.
const ofPayment = "FROM events JOIN deliveries ON event_id = events.id WHERE events.payment_id = ?"

export const deliveries = (db: Db, payment: PaymentId) =>
  db.all<Delivery>(
    `SELECT deliveries.id, event_id AS event, url, endpoint_id AS endpoint, status, next_attempt_at AS nextAttemptAt
     ${ofPayment} ORDER BY sequence`,
    [payment]
  )

export const attempts = (db: Db, payment: PaymentId) =>
  db.all<Attempt>(
    `SELECT owed.id AS delivery, number, started_at AS startedAt, ended_at AS endedAt, status, error,
       body_start AS bodyStart
     FROM (SELECT deliveries.id, sequence ${ofPayment}) AS owed JOIN attempts ON delivery = sequence
     ORDER BY sequence, number`,
    [payment]
  )
