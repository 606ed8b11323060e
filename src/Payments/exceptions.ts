/**
 * The exceptions of a payment: money that needs a person's decision. Pure functions from the payment and its receipts to
 * the exceptions that there should be. Called by the fold of a payment's money (`standing.ts`) alone.
 *
 * Everything is recomputed from the receipts each time, so that money that a reorg orphans is no longer among it.
 * Uncorroborated money opens no exception, since an exception invites a refund. Two kinds of it are `unattributed`, which
 * says so: money that may never be corroborated, and money on another chain that was undecided when the payment ended.
 * Amounts in base units.
 */
import { Array as Arr } from "effect"
import { required, sum } from "../Domain/Amount.ts"
import type { ExceptionContent } from "../Domain/Exception.ts"
import type { Payment } from "../Domain/Payment.ts"
import { isCorroborated, type Receipt } from "../Domain/Receipt.ts"
import { commonSender, exceptionOf, exceptionsOfKind, mergedByKey, withoutApart } from "./exceptionContents.ts"
import {
  counted,
  crossing,
  elsewhere,
  fitting,
  headAtCreation,
  identity,
  isUndecided,
  leastOf,
  onTimeOf,
  total
} from "./statusMachine.ts"

/** The money of one transaction that pays for the payment. */
interface Arrival {
  readonly receipt: Receipt
  readonly amount: bigint
  /** When it was first seen in any block; Unix milliseconds. */
  readonly firstSeen: number
  /** When it was first seen in the block that it is in now; Unix milliseconds. */
  readonly seenHere: number
}

const arrivalsOf = (
  receipts: ReadonlyArray<Receipt>,
  firstSeen: (receipt: Receipt) => number
): ReadonlyArray<Arrival> =>
  Object.values(Arr.groupBy(receipts, identity)).map((parts) => ({
    receipt: { ...parts[0], sender: commonSender(parts) },
    amount: sum(parts.map(({ amount }) => amount)),
    firstSeen: firstSeen(parts[0]),
    seenHere: Math.min(...parts.map(({ seenAt }) => seenAt))
  }))

/**
 * The surplus of a confirmed payment (`overpaid`), by transaction: what is beyond the amount, taken from the last ones, of each
 * at most what it brought. They are in chain order; those that were found after the decision come last.
 *
 * @param acceptedUnattributed base units that were accepted without a transaction: they make up for what the others lacked
 */
const surplus = (
  payment: Payment,
  arrivals: ReadonlyArray<Arrival>,
  completedBy: string,
  acceptedUnattributed: bigint
): ReadonlyArray<ExceptionContent> => {
  const isKnown = ({ firstSeen }: Arrival) => firstSeen <= (payment.endedAt ?? 0)
  const lacking = payment.amount - sum(arrivals.filter(isKnown).map(({ amount }) => amount))
  const [later, known] = Arr.partition(arrivals, (one) => isKnown(one) || one.receipt.txHash === completedBy)
  const madeUp = lacking < 0n ? 0n : lacking < acceptedUnattributed ? lacking : acceptedUnattributed
  let beyond = madeUp + sum(arrivals.map(({ amount }) => amount)) - payment.amount
  const found: Array<ExceptionContent> = []
  for (const { amount, receipt } of [...known, ...later].toReversed()) {
    const part = beyond < amount ? beyond : amount
    beyond -= part
    if (part > 0n) found.unshift(exceptionOf("overpaid", receipt, part))
  }
  return found
}

/**
 * The on-time money of a payment that expired or failed: what it had when it failed is `underpaid`, what was first seen after
 * its end is `found_late`. The transactions that have been in their blocks the longest are taken for those that it had.
 *
 * @param unattributed base units without a transaction that it had
 */
const ofEnded = (
  payment: Payment,
  arrivals: ReadonlyArray<Arrival>,
  unattributed: bigint
): ReadonlyArray<ExceptionContent> => {
  let decided = (payment.amountReceived ?? 0n) - unattributed
  const found: Array<ExceptionContent> = []
  const byAge = [...arrivals].sort((a, b) => a.seenHere - b.seenHere || a.firstSeen - b.firstSeen)
  for (const { amount, firstSeen, receipt } of byAge) {
    const known = firstSeen <= (payment.endedAt ?? 0) && amount <= decided
    if (known) decided -= amount
    found.push(exceptionOf(known ? "underpaid" : "found_late", receipt, amount))
  }
  return found
}

/**
 * The missing amount of a payment since a reorg undid it, or since a reorg of another chain orphaned the money that it
 * was accepted for there. In the second case it stays confirmed: the horizon of the other chain cannot undo it.
 */
const undone = (payment: Payment, receipts: ReadonlyArray<Receipt>, left: bigint): ReadonlyArray<ExceptionContent> => {
  const { chain, currency, status, txHash } = payment
  const missing = payment.amount - left
  const its = receipts.filter((receipt) => receipt.txHash === txHash)
  const isGoneElsewhere =
    status === "confirmed" && its.length > 0 && its.every((one) => one.chain !== chain && !one.canonical)
  if ((payment.failureReason !== "reorged" && !isGoneElsewhere) || missing <= 0n) return []
  return [{ kind: "reorged", chain, txHash, currency, amount: missing, block: undefined, key: "reorged" }]
}

/** Base units of the accepted money that are in the payment's currency, on its chain. */
const ownOf = (payment: Payment, accepted: ReadonlyArray<ExceptionContent>): bigint =>
  sum(
    accepted
      .filter(({ chain, currency }) => chain === payment.chain && currency === payment.currency)
      .map(({ amount }) => amount)
  )

/** The exceptions of on-time money with a transaction, once the payment has ended. */
const afterDecision = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  onTime: ReadonlyArray<Receipt>,
  firstSeen: (receipt: Receipt) => number,
  accepted: ReadonlyArray<ExceptionContent>
): ReadonlyArray<ExceptionContent> => {
  const { endedAt, status, txHash } = payment
  if (endedAt === undefined) return []
  const paying = onTime.filter((receipt) => receipt.txHash !== undefined)
  const arrivals = arrivalsOf(paying, firstSeen)
  if (status !== "confirmed") {
    // Uncorroborated, it counts in the amount of a payment that a reorg undid, and in no other one's.
    const isCounted = ({ corroborated }: Receipt) => corroborated || payment.failureReason === "reorged"
    const unattributed = onTime.filter(
      (receipt) => receipt.txHash === undefined && receipt.seenAt <= endedAt && isCounted(receipt)
    )
    return ofEnded(payment, arrivals, total(unattributed))
  }
  if (txHash !== undefined && paying.some((receipt) => receipt.txHash === txHash)) {
    return surplus(payment, arrivals, txHash, ownOf(payment, accepted))
  }
  const its = receipts.filter((receipt) => receipt.txHash === txHash)
  const known = paying.filter((receipt) => firstSeen(receipt) <= endedAt)
  const needed = required(payment)
  // Accepted for other money, which is still canonical or was never seen: whatever was found since is further money.
  if (its.some((receipt) => receipt.canonical) || (its.length === 0 && total(known) < needed)) {
    const since = arrivals.filter((arrival) => arrival.firstSeen > endedAt)
    return since.map(({ amount, receipt }) => exceptionOf("overpaid", receipt, amount))
  }
  // A reorg orphaned the transaction: another one completes the payment, or none.
  const instead = crossing(paying, needed)
  return instead === undefined ? [] : surplus(payment, arrivals, instead, 0n)
}

/**
 * The exceptions of a payment by its receipts. Money in blocks up to the creation head, and money on other chains from well
 * before the payment, is ignored.
 *
 * @param receipts without gas
 * @param accepted exceptions that were accepted without a transaction; their money is not among `receipts`
 * @param isEvidence which receipts count; the corroborated ones unless given
 * @param apart open exceptions of a confirmed payment's own money: it was accepted for other money, and they stay
 */
export const exceptionsOf = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  accepted: ReadonlyArray<ExceptionContent> = [],
  isEvidence: (receipt: Receipt) => boolean = isCorroborated,
  apart: ReadonlyArray<ExceptionContent> = []
): ReadonlyArray<ExceptionContent> => {
  if (receipts.length === 0) return []
  const firstSeen = leastOf(receipts, ({ seenAt }) => seenAt)
  const canonical = receipts.filter((receipt) => receipt.canonical && isEvidence(receipt))
  const onTime = counted(payment, receipts, isEvidence)
  const notLate = new Set(onTimeOf(payment, receipts))
  const own = withoutApart(onTime, apart)
  const late = fitting(payment, canonical).filter((receipt) => !receipt.small && !notLate.has(receipt))
  const createdHead = headAtCreation(payment)
  const isWrongToken = ({ blockNumber, chain, currency }: Receipt) =>
    chain === payment.chain && currency !== payment.currency && blockNumber > createdHead
  const isLeftUndecided = (receipt: Receipt) =>
    isUndecided(receipt) && receipt.chain !== payment.chain && receipt.seenAt <= (payment.endedAt ?? -1)
  // Shown like money without a transaction, until it is corroborated or refuted.
  const uncertain = receipts.filter(
    (receipt) =>
      receipt.canonical &&
      (receipt.unverifiable === true || isLeftUndecided(receipt)) &&
      !receipt.corroborated &&
      !isEvidence(receipt)
  )
  return [
    ...exceptionsOfKind("wrong_chain", elsewhere(payment, canonical)),
    ...exceptionsOfKind("wrong_token", canonical.filter(isWrongToken)),
    ...exceptionsOfKind("late", late),
    ...exceptionsOfKind("unattributed", [
      ...onTime.filter((receipt) => receipt.txHash === undefined),
      ...fitting(payment, uncertain),
      ...elsewhere(payment, uncertain),
      ...uncertain.filter(isWrongToken)
    ]),
    ...undone(payment, receipts, total(own.receipts)),
    ...mergedByKey([...own.apart, ...afterDecision(payment, receipts, own.receipts, firstSeen, accepted)])
  ]
}

/** The exceptions of one address whose payment is lost: a lost, newer copy of the database handed it out. */
export const unknownMoney = (
  receipts: ReadonlyArray<Receipt>,
  isEvidence: (receipt: Receipt) => boolean = isCorroborated
): ReadonlyArray<ExceptionContent> =>
  exceptionsOfKind(
    "unknown_payment",
    receipts.filter((receipt) => isEvidence(receipt) || receipt.unverifiable === true)
  )
