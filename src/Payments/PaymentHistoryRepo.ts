/** The history of a payment for `tilld payments show`: read from other repositories' tables. Times in Unix milliseconds. */
import { Effect } from "effect"
import type { EventKind } from "../Domain/Event.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { PaymentStatus } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
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

/**
 * Why a receipt does not count: two providers deny it, its chain was abandoned before a second one had it, or a reorg
 * has orphaned it.
 */
export type Uncounted = "denied" | "given_up" | "orphaned"

type ReceiptKey = Pick<Receipt, "chain" | "blockHash" | "address" | "position">

const keyOf = ({ address, blockHash, chain, position }: ReceiptKey) => `${chain} ${blockHash} ${address} ${position}`

// The audit log keeps every act. An abandoned chain drops what `dropUndecided` in OpenNeedsRepo.ts says, but not money
// that a reorg has moved into another block.
const wasGivenUp = `corroborated = 0 AND tx_hash IS NOT NULL
  AND (gone.chain <> (SELECT chain FROM payments WHERE id = gone.payment_id)
    OR EXISTS (SELECT 1 FROM exceptions WHERE payment_id = gone.payment_id AND kind = 'unattributed'
      AND chain = gone.chain AND tx_hash = gone.tx_hash))
  AND EXISTS (SELECT 1 FROM audit WHERE act = 'payments abandon' AND at >= gone.seen_at
    AND detail ->> 'chain' = gone.chain AND detail ->> 'mode' = gone.mode AND detail ->> 'token' IS NULL)
  AND NOT EXISTS (SELECT 1 FROM receipts AS again WHERE again.payment_id = gone.payment_id AND again.chain = gone.chain
    AND again.tx_hash = gone.tx_hash AND again.canonical = 1)`

/** Why receipts of a payment do not count; undefined for those that do. */
export const uncounted = (db: Db, payment: PaymentId) =>
  Effect.map(
    db.all<ReceiptKey & { readonly why: Uncounted }>(
      `SELECT chain, block_hash AS blockHash, address, position,
         CASE WHEN refuted = 1 THEN 'denied' WHEN ${wasGivenUp} THEN 'given_up' ELSE 'orphaned' END AS why
       FROM receipts AS gone WHERE payment_id = ? AND canonical = 0 AND listed IN ('own', 'stray')`,
      [payment]
    ),
    (rows) => {
      const found = new Map(rows.map((row) => [keyOf(row), row.why]))
      return (receipt: Receipt) => found.get(keyOf(receipt))
    }
  )
