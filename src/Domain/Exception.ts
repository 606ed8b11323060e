import { Schema } from "effect"
import type { ChainName, Mode } from "./Chain.ts"
import type { AccountId, PaymentId } from "./Ids.ts"
import type { RefundedPart } from "./Refund.ts"

/**
 * The kinds of money that need a person's decision.
 *
 * - `overpaid`: more than was missing, in the transaction that completed the payment or in a further one
 * - `underpaid`: money of a payment that has failed or was cancelled, which it had at that time; and what was sent back of
 *   the money of an open one
 * - `late`: mined after the deadline
 * - `wrong_token`: another token, or the native coin where a token was asked for
 * - `wrong_chain`: anything on another chain than the payment's
 * - `unattributed`: the balance grew, and no provider can name the transaction; or only one provider reports the money: an
 *   internal transfer that no other one is able to check, or money on another chain, undecided at the payment's end
 * - `found_late`: on time, but first seen after the payment had expired or failed
 * - `reorged`: what a confirmed payment lacks since a reorg undid it
 *
 * Merchants see all of these: they belong to a payment.
 */
export const PublicExceptionKind = Schema.Literal(
  "overpaid",
  "underpaid",
  "late",
  "wrong_token",
  "wrong_chain",
  "unattributed",
  "found_late",
  "reorged"
)

/** `unknown_payment`: money at an address that a lost copy of the database handed out. Operators alone see it. */
export const ExceptionKind = Schema.Literal(...PublicExceptionKind.literals, "unknown_payment")
export type ExceptionKind = typeof ExceptionKind.Type

/** `gone`: a reorg orphaned the money, or it turned out to be something else. `accepted`, `refunded`: somebody decided. */
export const ExceptionStatus = Schema.Literal("open", "accepted", "refunded", "gone")
export type ExceptionStatus = typeof ExceptionStatus.Type

/** An exception as it follows from the ledger, before it is stored. */
export interface ExceptionContent {
  readonly kind: ExceptionKind
  readonly chain: ChainName
  /** Undefined where no provider can name the transaction. */
  readonly txHash: string | undefined
  /** Who sent it, lower case; undefined where that is not known, or where there are several. */
  readonly sender?: string | undefined
  readonly currency: string
  /** Base units, above zero. */
  readonly amount: bigint
  /** Without a transaction: the number of the block at which the money was seen; it arrived in that block or before. */
  readonly block: number | undefined
  /** Identifies it at its address, independent of the block: it stays the same when a reorg mines the money elsewhere. */
  readonly key: string
}

/** Whether its money has a transaction that only one provider reports, and that no other one has confirmed or refuted yet. */
export const isUncorroborated = ({ kind, txHash }: ExceptionContent): boolean =>
  kind === "unattributed" && txHash !== undefined

/** An exception as the store keeps it; times in Unix milliseconds. */
export interface PaymentException extends ExceptionContent {
  /** Order of detection, also the tie-breaker of the list. */
  readonly sequence: number
  readonly id: string
  readonly mode: Mode
  /** Lower case. */
  readonly address: string
  /** Both undefined for `unknown_payment` only. */
  readonly payment: PaymentId | undefined
  readonly account: AccountId | undefined
  /** Of its payment. */
  readonly merchantRef?: string | undefined
  /** The index of its address in the wallet, and the number n of the wallet's account `m/44'/60'/n'` where that is known. */
  readonly index: number | undefined
  readonly walletAccount: number | undefined
  readonly status: ExceptionStatus
  /** Base units of this money that were sent back so far. While the exception is open, `amount` is what is left. */
  readonly sentBack: bigint
  /** Its refunds, the oldest first: also those that are under way, and those that have failed. */
  readonly refunds: ReadonlyArray<RefundedPart>
  readonly openedAt: number
  readonly closedAt: number | undefined
  /** The transaction that its acceptance named, or that of its last refund; and the note of its acceptance. */
  readonly decisionTx: string | undefined
  readonly note: string | undefined
  /** Counts its changes, from 1 on: each is an event. */
  readonly revision: number
}

/** The path of its address, as wallets show it: `m/44'/60'/n'/0/i`. */
export const walletPathOf = ({ index, walletAccount }: PaymentException): string | undefined =>
  index === undefined || walletAccount === undefined ? undefined : `m/44'/60'/${walletAccount}'/0/${index}`

/** A note on a decision: 1 to 500 characters, no control characters, no half ones. */
export const notePattern = /^[^\p{Cc}\p{Cs}]{1,500}$/u

/** There is no money to decide on, or it is unclear which is meant. */
export class NothingToDecide extends Schema.TaggedError<NothingToDecide>()("NothingToDecide", {
  message: Schema.String
}) {}

/** The transaction cannot prove a payment: the chain does not have it, not deep enough, or cannot be asked. */
export class TransactionNotProven extends Schema.TaggedError<TransactionNotProven>()("TransactionNotProven", {
  message: Schema.String
}) {}

/** Its money has too few confirmations, or no second provider has it. */
export class MoneyNotConfirmed extends Schema.TaggedError<MoneyNotConfirmed>()("MoneyNotConfirmed", {
  message: Schema.String
}) {}

/** The exception is closed, and not by this decision. */
export class AlreadyDecided extends Schema.TaggedError<AlreadyDecided>()("AlreadyDecided", {
  message: Schema.String
}) {}

/** A decision that lacks what this exception needs, or names what does not fit it. */
export class DecisionInvalid extends Schema.TaggedError<DecisionInvalid>()("DecisionInvalid", {
  field: Schema.Literal("txHash", "amount"),
  message: Schema.String
}) {}
