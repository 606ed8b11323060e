import { Schema } from "effect"
import { getAddress, type Hex } from "viem"
import { idPattern, maybe, text, timestamp } from "../lib/annotations.ts"
import { iso } from "../lib/moment.ts"
import { ChainName, Mode } from "./Chain.ts"
import {
  ExceptionKind,
  isUncorroborated,
  type PaymentException,
  PublicExceptionKind,
  walletPathOf
} from "./Exception.ts"
import { type RefundedPart, RefundStatus } from "./Refund.ts"

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
  ...{ id, status, amount: sent.toString() },
  ...(txHash === undefined ? {} : { txHash }),
  ...(note === undefined ? {} : { note }),
  refundedAt: iso(at)
})

/** Where the money came from and is, and what was decided. */
export const exceptionDetails = (exception: PaymentException) => {
  const { address, closedAt, decisionTx, index, note, sender, status, txHash } = exception
  const path = walletPathOf(exception)
  return {
    ...(sender === undefined ? {} : { from: getAddress(sender as Hex) }),
    ...(txHash === undefined ? {} : { txHash }),
    ...(status === "open" && isUncorroborated(exception) ? { uncorroborated: true as const } : {}),
    address: getAddress(address as Hex),
    ...(index === undefined ? {} : { derivationIndex: index }),
    ...(path === undefined ? {} : { path }),
    ...(closedAt === undefined ? {} : { resolvedAt: iso(closedAt) }),
    ...(decisionTx === undefined ? {} : { resolutionTxHash: decisionTx }),
    ...(note === undefined ? {} : { note })
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
