import { Schema } from "effect"
import { NotFound } from "../Auth/inputFields.ts"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { PaymentCurrency } from "../Domain/Currency.ts"
import { EventKind } from "../Domain/Event.ts"
import {
  AlreadyDecided,
  DecisionInvalid,
  ExceptionKind,
  ExceptionStatus,
  NothingToDecide,
  RefundUnclear,
  TransactionNotProven
} from "../Domain/Exception.ts"
import { AccountId } from "../Domain/Ids.ts"
import { PaymentObject, PaymentStatus } from "../Domain/Payment.ts"
import { PaymentNotPending } from "../Domain/PaymentErrors.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import { Modes, PageLimit } from "./controlRequests.ts"
import { DeliveryView } from "./deliveryView.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** A payment as operators see it: the merchant's view, with account and mode. */
export const PaymentView = Schema.Struct({ account: Schema.String, mode: Mode, ...PaymentObject.fields })
export type PaymentView = typeof PaymentView.Type

/** An exception: money that an operator has to decide about, or has decided about. */
export const ExceptionView = Schema.Struct({
  id: Schema.String,
  kind: ExceptionKind,
  chain: ChainName,
  mode: Mode,
  address: Schema.String,
  currency: Schema.String,
  amount: Schema.String,
  /** How much of it was refunded before; absent when nothing was. */
  sentBack: optional(Schema.String),
  /** Who sent it; absent where that is not known. */
  from: optional(Schema.String),
  txHash: optional(Schema.String),
  /** The sum of many small transfers. */
  dust: optional(Schema.Literal(true)),
  /** Only one provider has the transaction so far. */
  uncorroborated: optional(Schema.Literal(true)),
  /** Of its address in the wallet, with the path as wallets show it. */
  derivationIndex: optional(Schema.Number),
  path: optional(Schema.String),
  status: ExceptionStatus,
  openedAt: Schema.String,
  resolvedAt: optional(Schema.String),
  /** The transaction that the last decision named, and its note. */
  resolutionTxHash: optional(Schema.String),
  note: optional(Schema.String),
  /** Absent when the database has lost the payment. */
  payment: optional(Schema.String)
})
export type ExceptionView = typeof ExceptionView.Type

const ReceiptView = Schema.Struct({
  chain: ChainName,
  txHash: optional(Schema.String),
  position: Schema.String,
  blockNumber: Schema.Number,
  blockHash: Schema.String,
  blockTime: Schema.String,
  currency: Schema.String,
  amount: Schema.String,
  corroborated: Schema.Boolean,
  deniedBy: optional(Schema.String),
  unverifiable: optional(Schema.Literal(true)),
  canonical: Schema.Boolean,
  /** Why it does not count, where it is not canonical. */
  uncounted: optional(Schema.Literal("denied", "given_up", "orphaned"))
})

const DustView = Schema.Struct({
  chain: ChainName,
  currency: Schema.String,
  kind: Schema.Literal("paying", "late", "stray"),
  corroborated: Schema.Boolean,
  transfers: Schema.Number,
  amount: Schema.String,
  newestBlock: Schema.Number
})

/**
 * The history of a payment. Each list is in the order of time, except the exceptions: the most urgent come first.
 */
export const Story = Schema.Struct({
  payment: PaymentView,
  /** The newest receipts, and the number of older ones. */
  receipts: Schema.Array(ReceiptView),
  olderReceipts: Schema.Number,
  /** The sum of many small transfers, which are not among the receipts. */
  dust: Schema.Array(DustView),
  exceptions: Schema.Array(ExceptionView),
  moreExceptions: Schema.Boolean,
  transitions: Schema.Array(Schema.Struct({ from: PaymentStatus, to: PaymentStatus, at: Schema.String })),
  events: Schema.Array(Schema.Struct({ id: Schema.String, kind: EventKind, createdAt: Schema.String })),
  deliveries: Schema.Array(DeliveryView)
})
export type Story = typeof Story.Type

export class ListPayments extends Schema.TaggedRequest<ListPayments>()("ListPayments", {
  payload: {
    account: AccountId,
    modes: Modes,
    status: optional(PaymentStatus),
    chain: optional(ChainName),
    after: optional(Schema.String),
    limit: PageLimit
  },
  success: Schema.Array(PaymentView),
  failure: Schema.Union(NotFound, StoreUnavailable)
}) {}

/** Several payments have that reference or transaction: `message` lists them. */
export class SeveralPayments extends Schema.TaggedError<SeveralPayments>()("SeveralPayments", {
  message: Schema.String
}) {}

/** `of`: an id, an address, the hash of a transaction or a merchant's reference, of any account and mode. */
export class ShowPayment extends Schema.TaggedRequest<ShowPayment>()("ShowPayment", {
  payload: { of: Schema.String, limit: PageLimit },
  success: Story,
  failure: Schema.Union(NotFound, SeveralPayments, StoreUnavailable)
}) {}

export class CancelPayment extends Schema.TaggedRequest<CancelPayment>()("CancelPayment", {
  payload: { id: Schema.String },
  success: PaymentView,
  failure: Schema.Union(NotFound, PaymentNotPending, StoreUnavailable)
}) {}

/** A payment and its exceptions after a decision. `payment` is absent when the database has lost it. */
export const DecisionView = Schema.Struct({
  payment: optional(PaymentView),
  exceptions: Schema.Array(ExceptionView)
})
export type DecisionView = typeof DecisionView.Type

/** The same, with what a provider denies of the money that was accepted; absent where none does. */
export const AcceptView = Schema.Struct({
  ...DecisionView.fields,
  denied: optional(Schema.Array(Schema.Struct({ host: Schema.String, txHash: optional(Schema.String) })))
})
export type AcceptView = typeof AcceptView.Type

/** The same, with the exceptions that the refund is noted with, and their amounts. */
export const RefundView = Schema.Struct({ ...DecisionView.fields, closed: Schema.Array(ExceptionView) })
export type RefundView = typeof RefundView.Type

export class ListExceptions extends Schema.TaggedRequest<ListExceptions>()("ListExceptions", {
  payload: { limit: PageLimit, payment: optional(Schema.String), after: optional(Schema.String) },
  success: Schema.Array(ExceptionView),
  failure: Schema.Union(NotFound, StoreUnavailable)
}) {}

/** `id`: of a payment, or of one exception. */
export class AcceptPayment extends Schema.TaggedRequest<AcceptPayment>()("AcceptPayment", {
  payload: { id: Schema.String, tx: optional(Schema.String), note: optional(Schema.String) },
  success: AcceptView,
  failure: Schema.Union(
    NotFound,
    NothingToDecide,
    TransactionNotProven,
    AlreadyDecided,
    DecisionInvalid,
    StoreUnavailable
  )
}) {}

export class RefundedPayment extends Schema.TaggedRequest<RefundedPayment>()("RefundedPayment", {
  payload: {
    /** Of a payment, or of one exception. */
    id: Schema.String,
    exceptions: Schema.Array(Schema.String),
    /** Of what counts for an open payment, and of no exception. */
    counted: optional(Schema.Boolean),
    /** Base units. */
    amount: optional(Schema.String.pipe(Schema.pattern(/^[1-9][0-9]{0,77}$/))),
    /** The transaction that sent it back. */
    tx: optional(Schema.String),
    note: optional(Schema.String)
  },
  success: RefundView,
  failure: Schema.Union(NotFound, NothingToDecide, RefundUnclear, AlreadyDecided, DecisionInvalid, StoreUnavailable)
}) {}

/** `token`: only the payments in this currency. */
const abandonable = { chain: ChainName, mode: Mode, token: optional(PaymentCurrency) }

export class AbandonPayments extends Schema.TaggedRequest<AbandonPayments>()("AbandonPayments", {
  payload: abandonable,
  success: Schema.Struct({ ...abandonable, abandoned: Schema.Number, givenUp: Schema.Number }),
  failure: StoreUnavailable
}) {}
