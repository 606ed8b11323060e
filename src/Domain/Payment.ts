import { Schema } from "effect"
import type { ChainName, Mode } from "./Chain.ts"
import type { PaymentCurrency } from "./Currency.ts"
import type { AccountId, PaymentId, QuoteId } from "./Ids.ts"
import { iso } from "./Timestamp.ts"

export const PaymentStatus = Schema.Literal("pending", "detecting", "confirmed", "expired", "failed")
export type PaymentStatus = typeof PaymentStatus.Type

/** The statuses that the list can be filtered by. */
export const StatusFilter = Schema.Literal("pending", "confirmed", "expired", "failed")
export type StatusFilter = typeof StatusFilter.Type

export const FailureReason = Schema.Literal("insufficient_amount", "wrong_token", "wrong_chain", "reorged", "abandoned")
export type FailureReason = typeof FailureReason.Type

/** A payment as the store keeps it. Amounts in base units, times in Unix milliseconds. */
export interface Payment {
  /** Order of creation, also the tie-breaker of the list. */
  readonly sequence: number
  readonly id: PaymentId
  readonly account: AccountId
  readonly mode: Mode
  readonly merchantRef: string
  readonly amount: bigint
  readonly currency: PaymentCurrency
  readonly chain: ChainName
  /** EIP-55 form. */
  readonly address: string
  readonly status: PaymentStatus
  readonly createdAt: number
  readonly expiresAt: number
  /**
   * The chain's scanned head when the payment was made: only money above it counts. Undefined until the chain's first
   * head is known.
   */
  readonly createdHead: number | undefined
  /** JSON text, exactly as it will be returned. */
  readonly metadata: string
  readonly webhookUrl: string | undefined
  readonly redirectUrl: string | undefined
  readonly quoteId: QuoteId | undefined
  /** What `amount` was worth in USD when the payment was made, a decimal; undefined where no price was known. */
  readonly usdValue: string | undefined
  /** Canonical, on-time receipts of the requested currency and chain. Frozen at the end state, but for a reorg. */
  readonly amountReceived: bigint | undefined
  readonly txHash: string | undefined
  readonly confirmedAt: number | undefined
  readonly failureReason: FailureReason | undefined
  /** When it was confirmed, expired or failed; undefined while it is open. */
  readonly endedAt: number | undefined
}

/** A payment that is about to be stored, which gives it its place in the order and in the chain. */
export type NewPayment = Omit<Payment, "sequence" | "createdHead" | "endedAt" | "usdValue"> &
  Partial<Pick<Payment, "usdValue">>

/** confirmed, expired and failed: only a reorg below what was final, or an operator, changes them. */
export const isEnded = (status: PaymentStatus): boolean => status !== "pending" && status !== "detecting"

const timestamp = Schema.String.annotations({
  description: "ISO 8601, UTC, milliseconds",
  examples: ["2026-01-31T12:00:00.000Z"]
})

/** The payment object of the API and of every event. Fields that do not apply yet are absent, never null. */
export const PaymentObject = Schema.Struct({
  id: Schema.String,
  merchantRef: Schema.String,
  amount: Schema.String,
  currency: Schema.String,
  chain: Schema.String,
  address: Schema.String,
  status: PaymentStatus,
  createdAt: timestamp,
  expiresAt: timestamp,
  metadata: Schema.Unknown.annotations({ jsonSchema: { type: "object" } }),
  amountReceived: Schema.optionalWith(Schema.String, { exact: true }),
  txHash: Schema.optionalWith(Schema.String, { exact: true }),
  confirmedAt: Schema.optionalWith(timestamp, { exact: true }),
  failureReason: Schema.optionalWith(FailureReason, { exact: true })
}).annotations({ identifier: "Payment" })
export type PaymentObject = typeof PaymentObject.Type

/** What the merchant sees of a payment. */
export const toObject = (payment: Payment): PaymentObject => ({
  id: payment.id,
  merchantRef: payment.merchantRef,
  amount: payment.amount.toString(),
  currency: payment.currency,
  chain: payment.chain,
  address: payment.address,
  status: payment.status,
  createdAt: iso(payment.createdAt),
  expiresAt: iso(payment.expiresAt),
  metadata: JSON.parse(payment.metadata),
  ...(payment.amountReceived === undefined ? {} : { amountReceived: payment.amountReceived.toString() }),
  ...(payment.txHash === undefined ? {} : { txHash: payment.txHash }),
  ...(payment.confirmedAt === undefined ? {} : { confirmedAt: iso(payment.confirmedAt) }),
  ...(payment.failureReason === undefined ? {} : { failureReason: payment.failureReason })
})
