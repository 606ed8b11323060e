/** Payments for operators: the view of one, and its history for `tilld payments show`. Times in Unix milliseconds. */
import { Effect } from "effect"
import type { EventKind } from "../Domain/Event.ts"
import type { PaymentException } from "../Domain/Exception.ts"
import { operatorException } from "../Domain/ExceptionObject.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { Payment, PaymentStatus } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { type PaymentTerms, paymentObject } from "../Events/paymentObject.ts"
import { iso } from "../lib/moment.ts"
import { Settings } from "../Settings.ts"
import { type Db, Reader } from "../Sql.ts"
import { ofPayment as deliveriesOf, operatorDelivery } from "../Webhooks/queue/DeliveryLogRepo.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import { ofPayment } from "./ExceptionsRepo.ts"
import type { DecisionView, OperatorPayment, Story } from "./operatorViews.ts"
import * as Receipts from "./ReceiptsRepo.ts"

export const operatorPayment = (payment: Payment, terms: PaymentTerms): OperatorPayment => ({
  account: payment.account,
  mode: payment.mode,
  ...paymentObject(payment, terms)
})

/** A payment with all its exceptions after a decision, or the one exception that was decided on. */
export const decisionView = Effect.fnUntraced(function* (
  { exception, payment }: { readonly payment: Payment | undefined; readonly exception: PaymentException | undefined },
  terms: PaymentTerms
) {
  const all = payment === undefined ? [] : yield* ofPayment(yield* Reader, payment.id)
  return {
    ...(payment === undefined ? {} : { payment: operatorPayment(payment, terms) }),
    exceptions: (exception === undefined ? all : [exception]).map(operatorException)
  } satisfies DecisionView
})

const receiptView = (receipt: Receipt, uncounted: Uncounted | undefined): Story["receipts"][number] => ({
  chain: receipt.chain,
  ...(receipt.txHash === undefined ? {} : { txHash: receipt.txHash }),
  position: receipt.position,
  blockNumber: receipt.blockNumber,
  blockHash: receipt.blockHash,
  blockTime: iso(receipt.blockTime * 1000),
  currency: receipt.currency,
  amount: receipt.amount.toString(),
  corroborated: receipt.corroborated,
  ...(receipt.deniedBy === undefined ? {} : { deniedBy: receipt.deniedBy }),
  ...(receipt.unverifiable === true && !receipt.corroborated ? { unverifiable: true as const } : {}),
  canonical: receipt.canonical,
  ...(uncounted === undefined ? {} : { uncounted })
})

/** Everything stored about a payment, with at most `limit` receipts and exceptions. */
export const paymentHistoryOf = Effect.fn("Payments.paymentHistoryOf")(function* (
  db: Db,
  payment: Payment,
  limit: number
) {
  const receipts = yield* Receipts.newest(db, payment.id, limit)
  const uncountedOf = yield* uncountedIn(db, payment.id)
  const count = yield* Receipts.count(db, payment.id)
  const unread = yield* Receipts.unreadOf(db, payment.id)
  const { exceptions, more } = yield* Exceptions.firstOfPayment(db, payment.id, limit)
  const transitions = yield* transitionsOf(db, payment.id)
  const events = yield* eventsIn(db, payment.id)
  const deliveries = yield* deliveriesOf(db, payment.id)
  const story: Story = {
    payment: operatorPayment(payment, yield* Settings),
    receipts: receipts.map((receipt) => receiptView(receipt, uncountedOf(receipt))),
    olderReceipts: count - receipts.length,
    totals: unread.map((one) => ({ ...one, amount: one.amount.toString() })),
    exceptions: exceptions.map(operatorException),
    moreExceptions: more,
    transitions: transitions.map(({ at, ...transition }) => ({ ...transition, at: iso(at) })),
    events: events.map(({ createdAt, ...event }) => ({ ...event, createdAt: iso(createdAt) })),
    deliveries: deliveries.map(operatorDelivery)
  }
  return story
})

interface Transition {
  readonly from: PaymentStatus
  readonly to: PaymentStatus
  readonly at: number
}

interface StoredEvent {
  readonly id: string
  readonly kind: EventKind
  readonly createdAt: number
}

export const transitionsOf = (db: Db, payment: PaymentId) =>
  db.all<Transition>(
    'SELECT from_status AS "from", to_status AS "to", at FROM transitions WHERE payment_id = ? ORDER BY ordinal',
    [payment]
  )

const eventsIn = (db: Db, payment: PaymentId) =>
  db.all<StoredEvent>(
    "SELECT id, kind, created_at AS createdAt FROM events WHERE payment_id = ? ORDER BY created_at, rowid",
    [payment]
  )

/**
 * Why a receipt does not count: two providers deny it, its chain was abandoned before a second one had it, or a reorg
 * has orphaned it.
 */
type Uncounted = "denied" | "given_up" | "orphaned"

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
const uncountedIn = (db: Db, payment: PaymentId) =>
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
