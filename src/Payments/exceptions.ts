import { required, sum } from "../Domain/Amount.ts"
import type { ChainName } from "../Domain/Chain.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { dustKey, type ExceptionContent, type ExceptionKind } from "../Domain/Exception.ts"
import type { Payment } from "../Domain/Payment.ts"
import { isCorroborated, type Receipt } from "../Domain/Receipt.ts"
import { counted, crossing, elsewhere, fitting, headAtCreation, identity, type Rules, total } from "./statusMachine.ts"

/** Native money where a token was asked for is gas to collect it with, once the payment has ended. */
export const isGas = (payment: Payment, receipt: Receipt, firstSeen: number): boolean => {
  // A reorg that undoes a payment ends it again.
  const endedAt = payment.confirmedAt ?? payment.endedAt
  return (
    receipt.currency === nativeToken(receipt.chain) &&
    payment.currency !== nativeToken(payment.chain) &&
    endedAt !== undefined &&
    firstSeen > endedAt
  )
}

const exceptionOf = (
  kind: ExceptionKind,
  chain: ChainName,
  { blockNumber, currency, dust, txHash }: Pick<Receipt, "blockNumber" | "currency" | "dust" | "txHash">,
  amount: bigint
): ExceptionContent =>
  dust === undefined
    ? {
        ...{ kind, chain, txHash, currency, amount },
        block: txHash === undefined ? blockNumber : undefined,
        key: `${kind}:${chain}:${txHash ?? `block ${blockNumber}`}:${currency}`
      }
    : {
        ...{ kind, chain, txHash: undefined, currency, amount },
        block: undefined,
        key: dustKey(kind, chain, currency)
      }

/** One of each key. */
const together = (all: ReadonlyArray<ExceptionContent>): ReadonlyArray<ExceptionContent> => {
  const found = new Map<string, ExceptionContent>()
  for (const one of all) found.set(one.key, { ...one, amount: one.amount + (found.get(one.key)?.amount ?? 0n) })
  return [...found.values()]
}

/** One for what each transaction, each block where none is known, or dust brought of each currency. */
const each = (kind: ExceptionKind, receipts: ReadonlyArray<Receipt>): ReadonlyArray<ExceptionContent> =>
  together(receipts.map((receipt) => exceptionOf(kind, receipt.chain, receipt, receipt.amount)))

/** What one transaction brought towards the payment. */
interface Arrival {
  readonly receipt: Receipt
  readonly amount: bigint
  /** In whatever block, and in the one that it is in now. Unix milliseconds. */
  readonly firstSeen: number
  readonly seenHere: number
}

const arrivalsOf = (
  receipts: ReadonlyArray<Receipt>,
  firstSeen: (receipt: Receipt) => number
): ReadonlyArray<Arrival> => {
  const all = new Map<string, ReadonlyArray<Receipt>>()
  for (const receipt of receipts) all.set(identity(receipt), [...(all.get(identity(receipt)) ?? []), receipt])
  return [...all.values()].flatMap((parts) => {
    const [receipt] = parts
    return receipt === undefined
      ? []
      : [
          {
            receipt,
            amount: sum(parts.map((part) => part.amount)),
            firstSeen: firstSeen(receipt),
            seenHere: Math.min(...parts.map((part) => part.seenAt))
          }
        ]
  })
}

/**
 * What a confirmed payment got beyond its amount: with the transaction that completed it, and with each one after that,
 * in the order of the chain, those that were found after the decision last.
 *
 * @param untold what was accepted although nobody could tell its transaction: it stands for what the others lacked
 */
const surplus = (
  payment: Payment,
  arrivals: ReadonlyArray<Arrival>,
  completedBy: string,
  untold: bigint
): ReadonlyArray<ExceptionContent> => {
  const decidedAt = payment.endedAt ?? 0
  const decidedWith = arrivals.filter(({ firstSeen }) => firstSeen <= decidedAt)
  const lacking = payment.amount - sum(decidedWith.map(({ amount }) => amount))
  const known = arrivals.filter(({ firstSeen, receipt }) => firstSeen <= decidedAt || receipt.txHash === completedBy)
  const ordered = [...known, ...arrivals.filter((arrival) => !known.includes(arrival))]
  const completing = ordered.findIndex(({ receipt }) => receipt.txHash === completedBy)
  const found: Array<ExceptionContent> = []
  let reached = lacking < 0n ? 0n : lacking < untold ? lacking : untold
  for (const [place, { amount, receipt }] of ordered.entries()) {
    reached += amount
    const beyond = reached - payment.amount
    if (place < completing || beyond <= 0n) continue
    const kind = place === completing ? "overpaid" : "paid_again"
    found.push(exceptionOf(kind, payment.chain, receipt, place === completing || beyond < amount ? beyond : amount))
  }
  return found
}

/**
 * On-time money that an expired or failed payment had not got when that was decided: what has been in its block for the
 * longest is what it had got.
 *
 * @param untold what it had got of which nobody can tell the transaction
 */
const foundLate = (
  payment: Payment,
  arrivals: ReadonlyArray<Arrival>,
  untold: bigint
): ReadonlyArray<ExceptionContent> => {
  let decided = (payment.amountReceived ?? 0n) - untold
  const found: Array<ExceptionContent> = []
  const byAge = [...arrivals].sort((a, b) => a.seenHere - b.seenHere || a.firstSeen - b.firstSeen)
  for (const { amount, firstSeen, receipt } of byAge) {
    const known = firstSeen <= (payment.endedAt ?? 0) && amount <= decided
    if (known) decided -= amount
    else found.push(exceptionOf("found_late", payment.chain, receipt, amount))
  }
  return found
}

/**
 * What a payment that was confirmed lacks since a reorg undid it, or since a reorg of another chain took what it had been
 * accepted for there: that chain says nothing about when the payment is undone, and it stays confirmed.
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

/** How much of it is in the payment's currency, on its chain. */
const ownOf = (payment: Payment, accepted: ReadonlyArray<ExceptionContent>): bigint =>
  sum(
    accepted.flatMap(({ amount, chain, currency }) =>
      chain === payment.chain && currency === payment.currency ? [amount] : []
    )
  )

/** What on-time money that some transaction brought is beyond paying for the payment. */
const afterDecision = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  onTime: ReadonlyArray<Receipt>,
  firstSeen: (receipt: Receipt) => number,
  rules: Rules,
  accepted: ReadonlyArray<ExceptionContent>
): ReadonlyArray<ExceptionContent> => {
  const { endedAt, status, txHash } = payment
  if (endedAt === undefined) return []
  const paying = onTime.filter((receipt) => receipt.txHash !== undefined)
  const arrivals = arrivalsOf(paying, firstSeen)
  if (status !== "confirmed") {
    // What one provider alone shows is left of a payment that a reorg undoes, and is nothing that another end counts.
    const isCounted = ({ corroborated }: Receipt) => corroborated || payment.failureReason === "reorged"
    const untold = onTime.filter((one) => one.txHash === undefined && one.seenAt <= endedAt && isCounted(one))
    return foundLate(payment, arrivals, total(untold))
  }
  if (txHash !== undefined && paying.some((receipt) => receipt.txHash === txHash)) {
    return surplus(payment, arrivals, txHash, ownOf(payment, accepted))
  }
  const its = receipts.filter((receipt) => receipt.txHash === txHash)
  const known = paying.filter((receipt) => firstSeen(receipt) <= endedAt)
  const needed = required(payment.amount, rules.toleranceBps)
  // Accepted for other money than this, which is still there or was never seen: all that was found since is further money.
  if (its.some((receipt) => receipt.canonical) || (its.length === 0 && total(known) < needed)) {
    const since = arrivals.filter((arrival) => arrival.firstSeen > endedAt)
    return since.map(({ amount, receipt }) => exceptionOf("paid_again", payment.chain, receipt, amount))
  }
  // A reorg took the transaction: another one completes the payment, or none.
  const instead = crossing(paying, needed)
  return instead === undefined ? [] : surplus(payment, arrivals, instead, 0n)
}

/**
 * The money of a payment that needs a person, from its rows of the ledger: recomputed from them each time, so that what
 * a reorg takes back is no longer there. Amounts in base units.
 *
 * Money in blocks up to the head of the payment's creation, and on other chains well before it, is none of its business.
 *
 * @param accepted what was accepted while nobody could tell its transaction; it is not among the receipts
 * @param isEvidence which receipts count as money that is there: an exception invites a refund, so it takes more than one
 *   provider's word to open one
 */
export const exceptionsOf = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  rules: Rules,
  accepted: ReadonlyArray<ExceptionContent> = [],
  isEvidence: (receipt: Receipt) => boolean = isCorroborated
): ReadonlyArray<ExceptionContent> => {
  if (receipts.length === 0) return []
  const seen = new Map<string, number>()
  for (const receipt of receipts) {
    const id = identity(receipt)
    seen.set(id, Math.min(receipt.seenAt, seen.get(id) ?? Number.POSITIVE_INFINITY))
  }
  const firstSeen = (receipt: Receipt) => seen.get(identity(receipt)) ?? receipt.seenAt

  const canonical = receipts.filter((receipt) => receipt.canonical && isEvidence(receipt))
  const onTime = counted(payment, receipts, rules).filter(isEvidence)
  const counts = new Set(onTime)
  const late = fitting(payment, canonical).filter((receipt) => !counts.has(receipt))
  const createdHead = headAtCreation(payment)
  const isDust = (receipt: Receipt) => receipt.dust !== undefined
  const isStray = (receipt: Receipt) => isDust(receipt) || !isGas(payment, receipt, firstSeen(receipt))
  const isWrongToken = ({ blockNumber, chain, currency }: Receipt) =>
    chain === payment.chain && currency !== payment.currency && blockNumber > createdHead
  const stray = canonical.filter(isStray)
  // As money without a transaction: one provider's word, told of as what it is.
  const untold = receipts.filter(
    (one) => one.canonical && one.unverifiable === true && !one.corroborated && !isEvidence(one)
  )
  return [
    ...each("wrong_chain", elsewhere(payment, stray)),
    ...each("wrong_token", stray.filter(isWrongToken)),
    ...each("late", late),
    ...each("unattributed", [
      ...onTime.filter((receipt) => receipt.txHash === undefined),
      ...fitting(payment, untold),
      ...elsewhere(payment, untold.filter(isStray)),
      ...untold.filter((receipt) => isWrongToken(receipt) && isStray(receipt))
    ]),
    ...undone(payment, receipts, total(onTime)),
    ...together(afterDecision(payment, receipts, onTime, firstSeen, rules, accepted))
  ]
}

/** Money at one address whose payment is lost with a newer copy of the database. */
export const unknownMoney = (
  receipts: ReadonlyArray<Receipt>,
  isEvidence: (receipt: Receipt) => boolean = isCorroborated
): ReadonlyArray<ExceptionContent> =>
  each(
    "unknown_payment",
    receipts.filter((receipt) => isEvidence(receipt) || receipt.unverifiable === true)
  )
