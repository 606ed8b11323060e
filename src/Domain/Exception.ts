import { Schema } from "effect"
import { ChainName, type Mode } from "./Chain.ts"
import type { PaymentId } from "./Ids.ts"
import { iso } from "./Timestamp.ts"
import { text, timestamp } from "./text.ts"

/**
 * Money that needs a person.
 *
 * - `overpaid`: the transaction that completed the payment brought more than was missing
 * - `paid_again`: further money, on time, in another transaction
 * - `late`: mined after the deadline
 * - `wrong_token`: another token, or the native coin where a token was asked for
 * - `wrong_chain`: anything on another chain than the payment's
 * - `unattributed`: the balance grew, and no node can tell by which transaction; or it moved inside contracts by one
 *   provider's word, and no other one is able to tell
 * - `found_late`: on time, and seen only after the payment had expired or failed
 * - `reorged`: what a confirmed payment lacks since a reorg undid it
 * - `unknown_payment`: at an address that was handed out by a copy of the database that is lost
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

/** `gone`: a reorg took the money back, or it turned out to be something else. The others are a person's decision. */
export const ExceptionStatus = Schema.Literal("open", "accepted", "refunded", "gone")
export type ExceptionStatus = typeof ExceptionStatus.Type

/** What the ledger says of money that needs a person, whether anybody has been told or not. */
export interface ExceptionContent {
  readonly kind: ExceptionKind
  readonly chain: ChainName
  /** Undefined where nobody can tell the transaction. */
  readonly txHash: string | undefined
  readonly currency: string
  /** Base units, above zero. */
  readonly amount: bigint
  /** The block with which it was seen, where nobody can tell the transaction: it came with that one or before. */
  readonly block: number | undefined
  /** Names it at its address whatever block it is in: the same again after a reorg that mined it elsewhere. */
  readonly key: string
}

const dustMark = ":dust:"

/** The key of what an address's dust of one currency comes to. */
export const dustKey = (kind: ExceptionKind, chain: ChainName, currency: string): string =>
  `${kind}:${chain}${dustMark}${currency}`

/** Whether it is a sum of many small transfers, which have no transaction in common. */
export const isOfDust = ({ key }: Pick<ExceptionContent, "key">): boolean => key.includes(dustMark)

/**
 * Whether it is certain money, by its transaction or its block, or all dust of a kind: what is found of it later is told
 * apart from more.
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

/** How an exception is told of in the API. Money that came again is an overpayment to whoever integrates. */
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

/** What the merchant sees of the exceptions of a payment. */
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

/** There is no money that anybody could decide on. */
export class NothingToDecide extends Schema.TaggedError<NothingToDecide>()("NothingToDecide", {
  message: Schema.String
}) {}

/** It cannot be told which money was sent back: more is open than was meant, or not what was named. */
export class RefundUnclear extends Schema.TaggedError<RefundUnclear>()("RefundUnclear", { message: Schema.String }) {}

/** A transaction that is to stand for a payment does not: the chain has it not, not deep enough, or does not say. */
export class TransactionNotProven extends Schema.TaggedError<TransactionNotProven>()("TransactionNotProven", {
  message: Schema.String
}) {}
