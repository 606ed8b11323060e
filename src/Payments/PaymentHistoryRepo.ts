/** The history of a payment for `tilld payments show`: read from other repositories' tables. Times in Unix milliseconds. */
import type { EventKind } from "../Domain/Event.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { PaymentStatus } from "../Domain/Payment.ts"
import type { Db } from "../Sql.ts"

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
