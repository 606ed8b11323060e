import type { ChainName } from "../../src/Domain/Chain.ts"
import type { Rows } from "./Store.ts"

// The database as the simulation reads it, by itself.

export interface PaymentRow {
  readonly id: string
  readonly address: string
  readonly chain: ChainName
  readonly currency: string
  readonly amount: string
  readonly floor: string
  readonly status: string
  readonly created_head: number | null
  readonly expires_at: number
  /** Additional milliseconds that it got, since the clock was behind the chain's. */
  readonly extended: number
  readonly tx_hash: string | null
  readonly amount_received: string | null
  readonly failure_reason: string | null
}

export interface ReceiptRow {
  readonly chain: ChainName
  readonly block_hash: string
  readonly address: string
  readonly position: string
  readonly currency: string
  readonly amount: string
  readonly tx_hash: string | null
  readonly block_number: number
  /** Unix milliseconds. */
  readonly seen_at: number
  /** Whether a second provider has it. */
  readonly corroborated: 0 | 1
  /** Where no transaction is known for it: it may have come from then on. Unix seconds. */
  readonly since_time: number | null
  /** As what it is read; null where it is too small to be credited by itself. */
  readonly listed: "own" | "stray" | null
}

export interface ScanRow {
  readonly chain: ChainName
  readonly start_number: number
  readonly head_number: number
  readonly head_hash: string
  readonly verified_number: number
}

/** Up to which block a payment was searched for before its end. */
export interface SearchRow {
  readonly payment_id: string
  readonly chain: ChainName
  readonly number: number
}

export interface ExceptionRow {
  readonly id: string
  readonly payment_id: string | null
  /** Lower case. */
  readonly address: string
  readonly tx_hash: string | null
  readonly kind: string
  readonly chain: ChainName
  readonly currency: string
  readonly amount: string
  readonly outcome: string | null
  /** Base units that were sent back of it; `amount` is without them while it is open. */
  readonly sent_back: string
}

/** Money of a transaction that a refund sends back. */
export interface RefundPartRow {
  readonly refund_id: string
  /** Null where it counted for the payment. */
  readonly exception_id: string | null
  /** Lower case. */
  readonly address: string
  readonly chain: ChainName
  readonly currency: string
  readonly tx_hash: string | null
  readonly amount: string
  /** Whether the payment was confirmed by it, and stays so. */
  readonly of_confirmed: 0 | 1
}

export interface DeliveryRow {
  /** The event's. */
  readonly id: string
  readonly payment_id: string
  readonly kind: string
  readonly body: string
  readonly url: string
  readonly status: string
}

/** What is asked of it, over and over. */
export const statements = (rows: Rows) => ({
  payments: () =>
    rows.all<PaymentRow>(
      `SELECT id, lower(address) AS address, chain, currency, amount, floor, status, created_head,
       coalesce(due_at, expires_at) AS expires_at, coalesce(due_at, expires_at) - expires_at AS extended, tx_hash,
       amount_received, failure_reason FROM payments ORDER BY sequence`
    ),
  exceptions: () =>
    rows.all<ExceptionRow>(
      `SELECT id, payment_id, lower(address) AS address, tx_hash, kind, chain, currency, amount, outcome, sent_back
     FROM exceptions ORDER BY sequence`
    ),
  refundParts: () =>
    rows.all<RefundPartRow>(
      `SELECT refund_id, exception_id, address, chain, currency, p.tx_hash, p.amount, of_confirmed
     FROM refunds AS r JOIN refund_parts AS p ON p.refund_id = r.id WHERE r.status <> 'failed' ORDER BY r.sequence, place`
    ),
  deliveries: () =>
    rows.all<DeliveryRow>(
      `SELECT e.id, e.payment_id, e.kind, e.body, d.url, d.status FROM events AS e
     JOIN deliveries AS d ON d.event_id = e.id ORDER BY e.sequence, d.sequence`
    ),
  scans: () => rows.all<ScanRow>("SELECT chain, start_number, head_number, head_hash, verified_number FROM scans"),
  searches: () => rows.all<SearchRow>("SELECT payment_id, chain, number FROM searches"),
  receipts: () =>
    rows.all<ReceiptRow>(
      `SELECT chain, block_hash, address, position, currency, amount, tx_hash, block_number, seen_at, corroborated,
       since_time, listed
     FROM receipts WHERE canonical = 1`
    )
})
