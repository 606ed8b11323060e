import { Schema } from "effect"
import { getAddress, type Hex } from "viem"
import { idPattern, maybe, text, timestamp } from "../lib/annotations.ts"
import { present } from "../lib/Json.ts"
import { iso } from "../lib/moment.ts"
import { ChainName, Mode } from "./Chain.ts"
import type { AccountId, PaymentId } from "./Ids.ts"
import { type RefundedPart, RefundStatus } from "./Refund.ts"

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

const address = { pattern: "^0x[0-9a-fA-F]{40}$" }
const hash = { pattern: "^0x[0-9a-fA-F]{64}$" }
const amount = { pattern: "^[1-9][0-9]*$" }

const RefundedPartObject = Schema.Struct({
  id: text("Identifier of the refund.", idPattern("ref")),
  status: RefundStatus.annotations({ description: "As of the refund: `failed` is not sent back." }),
  amount: text("How much of this money goes back, in the smallest unit.", amount),
  txHash: maybe(text("The transaction that sends it.", hash)),
  note: maybe(text("The note that was left with it.")),
  refundedAt: timestamp("When it was recorded")
}).annotations({ identifier: "RefundedPart" })

/** An exception in the API: the same in its own list, in a payment and in an event. */
export const ExceptionObject = Schema.Struct({
  id: text("Identifier of the exception. The same money keeps it for ever.", idPattern("exc")),
  payment: text("The payment whose address the money came to.", idPattern("pay")),
  merchantRef: text("Your reference of that payment."),
  kind: PublicExceptionKind.annotations({
    description:
      "`overpaid`: more than was missing, or paid again. `underpaid`: what a payment had when it failed or was cancelled. `late`: mined after the deadline. `wrong_token`, `wrong_chain`: not what was asked for. `unattributed`: no node can tell the transaction, or only one can tell of the money at all. `found_late`: on time, but seen after the payment had ended. `reorged`: what a confirmed payment lacks since the chain undid it."
  }),
  chain: ChainName.annotations({ description: "The chain that the money is on." }),
  currency: text(
    "What came: a token's symbol, the name of a known wrong token such as `USDC.e`, or the contract of a token that is taken no longer."
  ),
  amount: text(
    "How much, in the smallest unit of what came. Of what is sent back in parts: what is left, and all of it once all was sent back.",
    amount
  ),
  amountRefunded: maybe(text("How much of it was sent back, where that is not all of it.", amount)),
  refunds: maybe(
    Schema.Array(RefundedPartObject).annotations({ description: "Its refunds, the oldest first, when there are any." })
  ),
  from: maybe(
    text(
      "Who sent it, in EIP-55 form: the token's holder, or the transaction's sender. It may be an exchange: ask your customer before you send money back there. Absent for money that moved inside contracts, and where nodes differ.",
      address
    )
  ),
  txHash: maybe(text("Hash of the transaction; absent where no node can tell it.", hash)),
  uncorroborated: maybe(
    Schema.Literal(true).annotations({
      description:
        "Not yet corroborated: only one provider has the transaction. Wait before you decide: once a second one has it, an exception of another kind takes its place, and once it is refuted there is none."
    })
  ),
  address: text("The address that the money is at, in EIP-55 form.", address),
  derivationIndex: maybe(
    Schema.Number.annotations({
      jsonSchema: { type: "integer", minimum: 0, description: "The index of that address in its wallet." }
    })
  ),
  path: maybe(
    text("The path of that address, as wallets show it. Absent where the wallet's key does not tell its account.", {
      pattern: "^m/44'/60'/[0-9]+'/0/[0-9]+$"
    })
  ),
  detectedAt: timestamp("When it was noticed"),
  resolution: maybe(
    Schema.Literal("accepted", "refunded", "gone").annotations({
      description:
        "Absent while it is open. `accepted`, `refunded`: what was decided. `gone`: a reorg took the money back, or it turned out to be something else."
    })
  ),
  resolvedAt: maybe(timestamp("When it was closed")),
  resolutionTxHash: maybe(
    text(
      "The transaction that the decision named: the one that sent money back, the last one where there were several, or the one that was accepted for money without a known transaction.",
      hash
    )
  ),
  note: maybe(text("The note that was left with the decision."))
}).annotations({ identifier: "PaymentException", description: "Money that fits no payment and needs a person." })
export type ExceptionObject = typeof ExceptionObject.Type

/** The same as operators see it, with those of payments that the database has lost. */
export const OperatorException = Schema.Struct({
  ...ExceptionObject.fields,
  mode: Mode,
  kind: ExceptionKind,
  /** Absent where the database has lost it. */
  payment: maybe(Schema.String),
  merchantRef: maybe(Schema.String)
})
export type OperatorException = typeof OperatorException.Type

// Exceptions as merchants and operators see them.

const partObject = ({ amount: sent, at, id, note, status, txHash }: RefundedPart): typeof RefundedPartObject.Type => ({
  ...{ id, status, amount: sent.toString(), ...present({ txHash, note }) },
  refundedAt: iso(at)
})

/** Where the money came from and is, and what was decided. */
export const exceptionDetails = (exception: PaymentException) => {
  const { address, closedAt, decisionTx, index, note, sender, status, txHash } = exception
  const path = walletPathOf(exception)
  return {
    ...present({ from: sender && getAddress(sender as Hex), txHash }),
    ...(status === "open" && isUncorroborated(exception) ? { uncorroborated: true as const } : {}),
    address: getAddress(address as Hex),
    ...present({ derivationIndex: index, path }),
    ...(closedAt === undefined ? {} : { resolvedAt: iso(closedAt) }),
    ...present({ resolutionTxHash: decisionTx, note })
  }
}

const commonObject = (exception: PaymentException) => {
  const { amount, chain, currency, id, openedAt, refunds, sentBack, status } = exception
  return {
    ...{ id, chain, currency },
    amount: amount.toString(),
    ...(status !== "refunded" && sentBack > 0n ? { amountRefunded: sentBack.toString() } : {}),
    ...(refunds.length === 0 ? {} : { refunds: refunds.map(partObject) }),
    detectedAt: iso(openedAt),
    ...(status === "open" ? {} : { resolution: status }),
    ...exceptionDetails(exception)
  }
}

/** An exception as the merchant sees it; none for `unknown_payment`, which belongs to no merchant's payment. */
export const toExceptionObject = (exception: PaymentException): ReadonlyArray<ExceptionObject> => {
  const { kind, merchantRef, payment } = exception
  return kind === "unknown_payment" || payment === undefined || merchantRef === undefined
    ? []
    : [{ payment, merchantRef, kind, ...commonObject(exception) }]
}

export const operatorException = (exception: PaymentException): OperatorException => {
  const { kind, merchantRef, mode, payment } = exception
  const ofPayment = payment === undefined || merchantRef === undefined ? {} : { payment, merchantRef }
  return { ...ofPayment, kind, mode, ...commonObject(exception) }
}
