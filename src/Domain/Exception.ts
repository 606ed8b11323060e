import { Schema } from "effect"
import { ChainName, type Mode } from "./Chain.ts"
import type { PaymentId } from "./Ids.ts"
import { iso } from "./Timestamp.ts"
import { text, timestamp } from "./textSchemas.ts"

/**
 * The kinds of money that need a person's decision.
 *
 * - `overpaid`: the transaction that completed the payment brought more than was missing
 * - `paid_again`: further money, on time, in another transaction
 * - `late`: mined after the deadline
 * - `wrong_token`: another token, or the native coin where a token was asked for
 * - `wrong_chain`: anything on another chain than the payment's
 * - `unattributed`: the balance grew, and no provider can name the transaction; or an internal transfer that one provider
 *   reports, and that no other one is able to check
 * - `found_late`: on time, but first seen after the payment had expired or failed
 * - `reorged`: what a confirmed payment lacks since a reorg undid it
 * - `unknown_payment`: at an address that a lost copy of the database handed out
 */
export const ExceptionKind = Schema.Literal(
  "overpaid",
  "paid_again",
  "late",
  "wrong_token",
  "wrong_chain",
  "unattributed",
  "found_late",
  "reorged",
  "unknown_payment"
)
export type ExceptionKind = typeof ExceptionKind.Type

/** `gone`: a reorg orphaned the money, or it turned out to be something else. `accepted`, `refunded`: the operator decided. */
export const ExceptionStatus = Schema.Literal("open", "accepted", "refunded", "gone")
export type ExceptionStatus = typeof ExceptionStatus.Type

/** An exception as it follows from the ledger, before it is stored. */
export interface ExceptionContent {
  readonly kind: ExceptionKind
  readonly chain: ChainName
  /** Undefined for dust, and where no provider can name the transaction. */
  readonly txHash: string | undefined
  readonly currency: string
  /** Base units, above zero. */
  readonly amount: bigint
  /** Without a transaction: the number of the block at which the money was seen; it arrived in that block or before. */
  readonly block: number | undefined
  /** Identifies it at its address, independent of the block: it stays the same when a reorg mines the money elsewhere. */
  readonly key: string
}

const dustMark = ":dust:"

/** The key of the exception for all dust of one currency at an address. */
export const dustKey = (kind: ExceptionKind, chain: ChainName, currency: string): string =>
  `${kind}:${chain}${dustMark}${currency}`

/** Whether it is a sum of many small transfers, which have no transaction in common. */
export const isOfDust = ({ key }: Pick<ExceptionContent, "key">): boolean => key.includes(dustMark)

/**
 * Whether it stands for particular money: of one transaction, seen at one block, or all dust of a kind. Then the same money
 * found again can be told from further money.
 */
export const isCertain = (one: ExceptionContent): boolean =>
  one.kind !== "reorged" && (one.txHash !== undefined || one.block !== undefined || isOfDust(one))

/** An exception as the store keeps it; times in Unix milliseconds. */
export interface PaymentException extends ExceptionContent {
  readonly id: string
  readonly mode: Mode
  /** Lower case. */
  readonly address: string
  /** Undefined for `unknown_payment` only. */
  readonly payment: PaymentId | undefined
  readonly status: ExceptionStatus
  /** Base units of this money that were sent back so far. While the exception is open, `amount` is what is left. */
  readonly sentBack: bigint
  readonly openedAt: number
}

/** The kinds of exceptions in the API, where `paid_again` is `overpaid`. */
const PublicKind = Schema.Literal(
  "overpaid",
  "late",
  "wrong_token",
  "wrong_chain",
  "unattributed",
  "found_late",
  "reorged"
)

/** An exception in the API. */
export const ExceptionObject = Schema.Struct({
  kind: PublicKind.annotations({
    description:
      "`overpaid`: more than was missing, or paid again. `late`: mined after the deadline. `wrong_token`, `wrong_chain`: not what was asked for. `unattributed`: no node can tell the transaction, or only one can tell of the money at all. `found_late`: on time, but seen after the payment had ended. `reorged`: what a confirmed payment lacks since the chain undid it."
  }),
  chain: ChainName.annotations({ description: "The chain that the money is on." }),
  currency: text("What came: a token's symbol, or the name of a known wrong token such as `USDC.e`."),
  amount: text("How much, in the smallest unit of what came.", { pattern: "^[1-9][0-9]*$" }),
  txHash: Schema.optionalWith(
    text("Hash of the transaction; absent where no node can tell it, and for dust.", {
      pattern: "^0x[0-9a-fA-F]{64}$"
    }),
    { exact: true }
  ),
  dust: Schema.optionalWith(
    Schema.Literal(true).annotations({
      description: "What many small transfers come to together. It grows while it is open."
    }),
    { exact: true }
  ),
  detectedAt: timestamp("When it was noticed"),
  resolution: Schema.optionalWith(
    Schema.Literal("accepted", "refunded", "gone").annotations({
      description:
        "Absent while it is open. `accepted`, `refunded`: what the operator decided. `gone`: a reorg took the money back, or it turned out to be something else."
    }),
    { exact: true }
  )
}).annotations({ identifier: "PaymentException", description: "Money that fits no payment and needs a person." })
export type ExceptionObject = typeof ExceptionObject.Type

/** An exception as the merchant sees it; none for `unknown_payment`, which belongs to no merchant's payment. */
export const toExceptionObject = (exception: PaymentException): ReadonlyArray<ExceptionObject> => {
  const { amount, chain, currency, kind, openedAt, status, txHash } = exception
  if (kind === "unknown_payment") return []
  return [
    {
      kind: kind === "paid_again" ? "overpaid" : kind,
      chain,
      currency,
      amount: amount.toString(),
      ...(txHash === undefined ? {} : { txHash }),
      ...(isOfDust(exception) ? { dust: true as const } : {}),
      detectedAt: iso(openedAt),
      ...(status === "open" ? {} : { resolution: status })
    }
  ]
}

/** There is no money to decide on. */
export class NothingToDecide extends Schema.TaggedError<NothingToDecide>()("NothingToDecide", {
  message: Schema.String
}) {}

/** It is unclear which money was sent back: several exceptions are open, or the named one is not. */
export class RefundUnclear extends Schema.TaggedError<RefundUnclear>()("RefundUnclear", { message: Schema.String }) {}

/** The transaction cannot prove a payment: the chain does not have it, not deep enough, or cannot be asked. */
export class TransactionNotProven extends Schema.TaggedError<TransactionNotProven>()("TransactionNotProven", {
  message: Schema.String
}) {}
