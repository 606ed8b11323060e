/** Payments as operators see them: the merchant's view, and further stored facts. */
import { Schema } from "effect"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { OperatorDelivery } from "../Domain/DeliveryObject.ts"
import { EventKind } from "../Domain/Event.ts"
import { OperatorException } from "../Domain/ExceptionObject.ts"
import { PaymentObject, PaymentStatus } from "../Domain/Payment.ts"
import { maybe } from "../Operations/inputFields.ts"

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
