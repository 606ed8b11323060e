import { Effect } from "effect"
import type { PaymentException } from "../Domain/Exception.ts"
import { operatorException } from "../Domain/ExceptionObject.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { type PaymentTerms, paymentObject } from "../Events/paymentObject.ts"
import { iso } from "../lib/moment.ts"
import { Settings } from "../Settings.ts"
import { type Db, Reader } from "../Sql.ts"
import { ofPayment as deliveriesOf } from "../Webhooks/queue/DeliveryLogRepo.ts"
import { operatorDelivery } from "../Webhooks/queue/deliveryObject.ts"
import * as Exceptions from "./ExceptionListRepo.ts"
import { ofPayment } from "./ExceptionsRepo.ts"
import type { DecisionView, OperatorPayment, Story } from "./operatorViews.ts"
import * as Repo from "./PaymentHistoryRepo.ts"
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

const receiptView = (receipt: Receipt, uncounted: Repo.Uncounted | undefined): Story["receipts"][number] => ({
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
  const uncountedOf = yield* Repo.uncounted(db, payment.id)
  const count = yield* Receipts.count(db, payment.id)
  const unread = yield* Receipts.unreadOf(db, payment.id)
  const { exceptions, more } = yield* Exceptions.firstOfPayment(db, payment.id, limit)
  const transitions = yield* Repo.transitions(db, payment.id)
  const events = yield* Repo.events(db, payment.id)
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
