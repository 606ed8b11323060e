import { Schema } from "effect"
import { getAddress, type Hex } from "viem"
import { idPattern, maybe, text, timestamp } from "../lib/annotations.ts"
import { present } from "../lib/Json.ts"
import { iso } from "../lib/moment.ts"
import { ChainName, type Mode } from "./Chain.ts"
import type { AccountId, PaymentId, RefundId } from "./Ids.ts"

/**
 * The states of a refund. From its record on until it has failed, its money is spoken for: no other decision is made on it.
 *
 * - `noted`: recorded by a person; the chain has not shown it yet, or no transaction was named
 * - `begun`: a broadcast of signed transfers sends it, until that has accounted for it
 * - `seen`: the chain has its transfer, without the confirmations yet
 * - `final`: two providers have its transfer, with the chain's confirmations
 * - `not_found`: the chain has not had the transaction for an hour: it counts in no sum until the right one is named, or it is dropped
 * - `failed`: the transaction does not send it back, the broadcast gave it up, or it was dropped: its money is open again
 */
export const RefundStatus = Schema.Literal("noted", "begun", "seen", "final", "not_found", "failed")
export type RefundStatus = typeof RefundStatus.Type

/** Whether its money is spoken for. */
export const isStanding = ({ status }: Pick<Refund, "status">): boolean => status !== "failed"

/** Whether it counts in sums of what was sent back. */
export const isSentBack = ({ status }: Pick<Refund, "status">): boolean => status !== "failed" && status !== "not_found"

/** The money of one transaction, or of one block where that is not known, that a refund sends back. */
export interface RefundPart {
  /** The exception that the money was; undefined for money that counts for its payment. */
  readonly exception: string | undefined
  /** When that was opened, Unix milliseconds. */
  readonly openedAt: number | undefined
  readonly txHash: string | undefined
  /** Without a transaction: the number of the block at which the money was seen. */
  readonly block: number | undefined
  /** Base units, above zero. */
  readonly amount: bigint
  /** Whether two providers had the money. */
  readonly ofTwo: boolean
  /** Whether it was what a confirmed payment counts: that stays paid. */
  readonly ofConfirmed: boolean
}

/** The transfer of a signed plan that pays a refund. */
export interface PlannedTransfer {
  readonly digest: string
  /** Its place among the plan's moves. */
  readonly place: number
  readonly way: "authorization" | "token" | "native"
}

/** A refund as the store keeps it. Amounts in base units, times in Unix milliseconds, hashes and addresses in lower case. */
export interface Refund {
  readonly sequence: number
  readonly id: RefundId
  /** Both undefined where a lost copy of the database had the payment. */
  readonly payment: PaymentId | undefined
  readonly account: AccountId | undefined
  readonly mode: Mode
  /** The receiving address that the money came to. */
  readonly address: string
  readonly chain: ChainName
  readonly currency: string
  readonly amount: bigint
  /** To whom it goes; undefined while that is not known. */
  readonly to: string | undefined
  readonly status: RefundStatus
  readonly txHash: string | undefined
  /** Who sent it, once the chain has shown it. */
  readonly from: string | undefined
  readonly note: string | undefined
  /** Why it is `not_found` or `failed`, or why the chain cannot tell. */
  readonly problem: string | undefined
  readonly plan: PlannedTransfer | undefined
  readonly createdAt: number
  /** When it got its status. */
  readonly changedAt: number
  readonly parts: ReadonlyArray<RefundPart>
}

/** A refund, or a part of one, as its exception shows it. */
export interface RefundedPart extends Pick<Refund, "id" | "amount" | "status" | "txHash" | "note"> {
  /** When it was recorded, Unix milliseconds. */
  readonly at: number
}

/** Its money is being sent back: no other decision is made on it. */
export class RefundUnderWay extends Schema.TaggedError<RefundUnderWay>()("RefundUnderWay", {
  message: Schema.String
}) {}

/** The refund cannot be changed so: it is final, or was dropped. */
export class RefundSettled extends Schema.TaggedError<RefundSettled>()("RefundSettled", { message: Schema.String }) {}

const address = { pattern: "^0x[0-9a-fA-F]{40}$" }

/** A refund in the API: the same by itself, with its payment, in an exception and in an event. */
export const RefundObject = Schema.Struct({
  id: text("Identifier of the refund.", idPattern("ref")),
  payment: maybe(text("The payment whose money it sends back.", idPattern("pay"))),
  exceptions: maybe(
    Schema.Array(text("An exception.", idPattern("exc"))).annotations({
      description: "The exceptions whose money it sends back, where there are any."
    })
  ),
  status: RefundStatus.annotations({
    description:
      "`noted`: recorded; no transaction was named, or the chain has not shown it yet, as for an hour of a wrong one. `begun`: signed transfers are being sent. `seen`: the chain has it, without the confirmations yet. `final`: the chain has it for good. `not_found`: the chain has not had the transaction for an hour: name the right one, or drop the refund. `failed`: see `problem`; the money is open again, and another refund of it is a new one."
  }),
  chain: ChainName.annotations({ description: "The chain that the money is on." }),
  currency: text("What is sent back."),
  amount: text("How much, in the smallest unit.", { pattern: "^[1-9][0-9]*$" }),
  to: maybe(text("Who gets it, in EIP-55 form, where that is known.", address)),
  from: maybe(
    text(
      "Who sent it, in EIP-55 form, once the chain has shown it: the payment's own address, or another wallet of yours.",
      address
    )
  ),
  txHash: maybe(text("The transaction that sends it.", { pattern: "^0x[0-9a-fA-F]{64}$" })),
  reason: maybe(text("The note that was left with it.")),
  problem: maybe(text("Why it is `not_found` or `failed`, or why the chain cannot tell.")),
  createdAt: timestamp("When it was recorded"),
  changedAt: timestamp("When it got its status")
}).annotations({ identifier: "Refund", description: "Money that goes back to a customer." })
export type RefundObject = typeof RefundObject.Type

const checksummed = (of: string) => getAddress(of as Hex)

export const refundObject = (refund: Refund): RefundObject => {
  const { amount, changedAt, createdAt, from, id, note, parts, payment, problem, status, to, txHash } = refund
  const exceptions = [...new Set(parts.flatMap(({ exception }) => exception ?? []))]
  return {
    ...{ id, ...present({ payment }) },
    ...(exceptions.length === 0 ? {} : { exceptions }),
    status,
    chain: refund.chain,
    currency: refund.currency,
    amount: `${amount}`,
    ...present({ to: to && checksummed(to), from: from && checksummed(from), txHash, reason: note, problem }),
    createdAt: iso(createdAt),
    changedAt: iso(changedAt)
  }
}
