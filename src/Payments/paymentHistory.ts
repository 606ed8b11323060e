/** Payments for operators: the view of one, and its history for `tilld payments show`. Times in Unix milliseconds. */
import { Effect, Schema } from "effect"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { OperatorDelivery } from "../Domain/DeliveryObject.ts"
import { EventKind } from "../Domain/Event.ts"
import { OperatorException, operatorException, type PaymentException } from "../Domain/Exception.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import { type Payment, PaymentObject, PaymentStatus } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { type PaymentTerms, paymentObject } from "../Events/paymentObject.ts"
import { present } from "../lib/Json.ts"
import { iso } from "../lib/moment.ts"
import { maybe } from "../Operations/inputFields.ts"
import { Settings } from "../Settings.ts"
import { type Db, Reader } from "../Sql.ts"
import { ofPayment as deliveriesOf, operatorDelivery } from "../Webhooks/queue/DeliveryLogRepo.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import { ofPayment } from "./ExceptionsRepo.ts"
import * as Receipts from "./ReceiptsRepo.ts"

export const OperatorPayment = Schema.Struct({ account: Schema.String, mode: Mode, ...PaymentObject.fields })
export type OperatorPayment = typeof OperatorPayment.Type

const ReceiptView = Schema.Struct({
  chain: ChainName,
  txHash: maybe(Schema.String),
  position: Schema.String,
  blockNumber: Schema.Number,
  blockHash: Schema.String,
  blockTime: Schema.String,
  currency: Schema.String,
  amount: Schema.String,
  corroborated: Schema.Boolean,
  deniedBy: maybe(Schema.String),
  unverifiable: maybe(Schema.Literal(true)),
  canonical: Schema.Boolean,
  /** Why it does not count, where it is not canonical. */
  uncounted: maybe(Schema.Literal("denied", "given_up", "orphaned"))
})

const uncountedTexts = {
  denied: "two providers deny it",
  given_up: "it was given up with tilld payments abandon, before a second provider had it",
  orphaned: "a reorg orphaned it"
} as const

/** Why a receipt that is not canonical does not count. */
export const whyUncounted = ({ uncounted }: Pick<typeof ReceiptView.Type, "uncounted">): string =>
  uncountedTexts[uncounted ?? "orphaned"]

/** Transfers that are too small to be credited, or more than are read one by one: a total, which decides nothing. */
const TotalView = Schema.Struct({
  chain: ChainName,
  currency: Schema.String,
  transfers: Schema.Number,
  amount: Schema.String
})

/**
 * The history of a payment. Each list is in the order of time, except the exceptions: the most urgent come first.
 */
export const Story = Schema.Struct({
  payment: OperatorPayment,
  /** The newest receipts, and the number of older ones. */
  receipts: Schema.Array(ReceiptView),
  olderReceipts: Schema.Number,
  /** What came and is not among the receipts. */
  totals: Schema.Array(TotalView),
  exceptions: Schema.Array(OperatorException),
  moreExceptions: Schema.Boolean,
  transitions: Schema.Array(Schema.Struct({ from: PaymentStatus, to: PaymentStatus, at: Schema.String })),
  events: Schema.Array(Schema.Struct({ id: Schema.String, kind: EventKind, createdAt: Schema.String })),
  deliveries: Schema.Array(OperatorDelivery)
})
export type Story = typeof Story.Type

/** A payment and its exceptions after a decision. `payment` is absent when the database has lost it. */
export const DecisionView = Schema.Struct({
  payment: maybe(OperatorPayment),
  exceptions: Schema.Array(OperatorException)
})
export type DecisionView = typeof DecisionView.Type

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
    ...present({ payment: payment && operatorPayment(payment, terms) }),
    exceptions: (exception === undefined ? all : [exception]).map(operatorException)
  } satisfies DecisionView
})

const receiptView = (receipt: Receipt, uncounted: Uncounted | undefined): Story["receipts"][number] => ({
  chain: receipt.chain,
  ...present({ txHash: receipt.txHash }),
  position: receipt.position,
  blockNumber: receipt.blockNumber,
  blockHash: receipt.blockHash,
  blockTime: iso(receipt.blockTime * 1000),
  currency: receipt.currency,
  amount: receipt.amount.toString(),
  corroborated: receipt.corroborated,
  ...present({ deniedBy: receipt.deniedBy }),
  ...(receipt.unverifiable === true && !receipt.corroborated ? { unverifiable: true as const } : {}),
  canonical: receipt.canonical,
  ...present({ uncounted })
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
    "SELECT id, kind, created_at AS createdAt FROM events WHERE payment_id = ? ORDER BY created_at, sequence",
    [payment]
  )

/**
 * Why a receipt does not count: two providers deny it, its chain was abandoned before a second one had it, or a reorg
 * has orphaned it.
 */
type Uncounted = "denied" | "given_up" | "orphaned"

type ReceiptKey = Pick<Receipt, "chain" | "blockHash" | "address" | "position">

const keyOf = ({ address, blockHash, chain, position }: ReceiptKey) => `${chain} ${blockHash} ${address} ${position}`

// The audit log keeps every act. An abandoned chain drops what `dropUndecided` in openNeeds.ts says, but not money
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
