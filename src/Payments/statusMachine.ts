import { Duration } from "effect"
import { required, sum } from "../Domain/Amount.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { deadline, dueTime, overBefore } from "../Domain/deadline.ts"
import { type FinalityTag, finalBlock } from "../Domain/Finality.ts"
import { type FailureReason, isEnded, type Payment } from "../Domain/Payment.ts"
import { type BlockRef, isCorroborated, type Receipt, type Scan } from "../Domain/Receipt.ts"

/** What the chain's scan can vouch for. */
export interface Horizon {
  /** Number of the scanned head. */
  readonly head: number
  /** Its time, Unix seconds. */
  readonly headTime: number
  /** Blocks, the receipt's own included, that a receipt needs: confirmations = head − its block + 1. */
  readonly confirmations: number
  /**
   * The newest known block that has those confirmations, or an older one; undefined while the chain is younger than
   * that, or where the end of a payment's time is somebody else's to judge.
   */
  readonly settled: BlockRef | undefined
  /** The block at which balances were last compared with the ledger for every payment that was over by its time. */
  readonly checked: Scan["checked"]
  /** Numbers of the chain's tags; undefined where it has none. */
  readonly safe: number | undefined
  readonly finalized: number | undefined
  /** The tag that the payment's value asks for besides the confirmations. */
  readonly requires: FinalityTag | undefined
  /** The chains of the mode that answer have been compared past the payment's deadline as well. */
  readonly elsewhereChecked: boolean
  /**
   * The block up to which a second provider has no money for the payment that the ledger lacks; infinite where only one is
   * configured, undefined while none has been asked.
   */
  readonly searched: number | undefined
}

export interface Rules {
  /** Milliseconds after `expiresAt` in which a block still counts as on time. */
  readonly settleGrace: number
  /** Accepted underpayment, 1/100 %. */
  readonly toleranceBps: number
}

/** One state to store. `announced` states get an event; the others only bring the row up to date. */
export interface Step {
  readonly payment: Payment
  readonly announced: boolean
}

/** Block times run behind the clock by ten minutes at most, and a clock that is wrong may be a quarter of an hour ahead. */
const blockTimeLag = Duration.toMillis("25 minutes")

const kinds = ["tx", "log", "call", "unattributed"]

/** Block, then transactions before logs before what came from inside contracts, then the index in the block. Dust last. */
const inChainOrder = (a: Receipt, b: Receipt): number => {
  if (a.dust !== b.dust) return a.dust === undefined ? -1 : 1
  if (a.blockNumber !== b.blockNumber) return a.blockNumber - b.blockNumber
  const kindOf = ({ position }: Receipt) => kinds.indexOf(position.split(":")[0] ?? "")
  if (kindOf(a) !== kindOf(b)) return kindOf(a) - kindOf(b)
  if (a.place !== b.place) return a.place - b.place
  return a.position < b.position ? -1 : Number(a.position > b.position)
}

/** What a receipt is known by in whatever block it is: its transaction, where there is one to tell. */
export const identity = ({ blockHash, dust, position, txHash }: Receipt): string =>
  dust === undefined && txHash !== undefined ? txHash : `${blockHash} ${position}`

/**
 * Number of the block above which a chain's money is newer than the payment. While no head of the chain is known, nothing
 * is known to be. One that has ended by then is given none any more: all that comes to its address, which had no history,
 * is newer.
 */
export const headAtCreation = ({ createdHead, endedAt }: Payment): number =>
  createdHead ?? (endedAt === undefined ? Number.POSITIVE_INFINITY : -1)

/** Receipts of the payment's currency on its chain, above the head of its creation: what pays for it if it is on time. */
export const fitting = (payment: Payment, receipts: ReadonlyArray<Receipt>): ReadonlyArray<Receipt> => {
  const createdHead = headAtCreation(payment)
  const right = receipts.filter((receipt) => receipt.chain === payment.chain && receipt.currency === payment.currency)
  // A transaction that was above it in one block is no older than the payment where a deep reorg mines it lower.
  const newer = new Set(right.filter((receipt) => receipt.blockNumber > createdHead).map(identity))
  return right.filter((receipt) => newer.has(identity(receipt)))
}

/** The first moment that its money may have come at, by block time in Unix milliseconds. */
const earliest = ({ blockTime, since }: Receipt): number => (since?.time ?? blockTime) * 1000

/**
 * Canonical receipts that pay for this, in chain order: its currency, its chain, newer than it is, on time. Money without
 * a transaction of which only an interval is known is on time where the interval began so: it may be, and confirms nothing.
 */
export const counted = (payment: Payment, receipts: ReadonlyArray<Receipt>, rules: Rules): ReadonlyArray<Receipt> => {
  const right = fitting(payment, receipts)
  // A transaction that was on time in one block stays on time when a reorg mines it again later.
  const onTime = new Set(
    right.filter((receipt) => earliest(receipt) <= deadline(payment, rules.settleGrace)).map(identity)
  )
  const pays = (receipt: Receipt) =>
    receipt.dust === undefined ? onTime.has(identity(receipt)) : receipt.dust === "paying"
  return right.filter((receipt) => receipt.canonical && pays(receipt)).sort(inChainOrder)
}

/** Receipts on other chains than the payment's, as far as their blocks are not older than it is. */
export const elsewhere = (payment: Payment, receipts: ReadonlyArray<Receipt>): ReadonlyArray<Receipt> =>
  receipts.filter(
    ({ blockTime, chain }) => chain !== payment.chain && blockTime * 1000 >= payment.createdAt - blockTimeLag
  )

export const total = (receipts: ReadonlyArray<Receipt>): bigint => sum(receipts.map((receipt) => receipt.amount))

/** The transaction with which the sum reaches `needed`; undefined while it does not. */
export const crossing = (receipts: ReadonlyArray<Receipt>, needed: bigint): string | undefined => {
  let reached = 0n
  for (const receipt of receipts) {
    reached += receipt.amount
    if (reached >= needed) return receipt.txHash
  }
  return undefined
}

/** The newest block that may complete the payment. */
const deepest = (horizon: Horizon): number => {
  const { confirmations, head, requires } = horizon
  // A tag that is asked for and not known holds the payment until it is.
  const tagged = requires === undefined ? Number.POSITIVE_INFINITY : (horizon[requires] ?? Number.NEGATIVE_INFINITY)
  return Math.min(head - confirmations + 1, tagged)
}

/** Why a payment whose time is over has failed, by more than one provider's word; undefined when nothing at all came. */
const failure = (
  payment: Payment,
  received: ReadonlyArray<Receipt>,
  receipts: ReadonlyArray<Receipt>
): FailureReason | undefined => {
  if (received.length > 0) return "insufficient_amount"
  const others = receipts.filter((receipt) => receipt.canonical)
  const onChain = others.filter((receipt) => receipt.chain === payment.chain && receipt.corroborated)
  const sinceCreation = onChain.filter((receipt) => receipt.blockNumber > headAtCreation(payment))
  if (sinceCreation.some((receipt) => receipt.currency !== payment.currency)) return "wrong_token"
  return elsewhere(payment, others).some(({ corroborated }) => corroborated) ? "wrong_chain" : undefined
}

/** The payment with what has been received for it now. */
export const withReceived = (payment: Payment, received: ReadonlyArray<Receipt>): Payment => ({
  ...payment,
  amountReceived: received.length === 0 ? undefined : total(received),
  txHash: received.find((receipt) => receipt.txHash !== undefined)?.txHash
})

/** Payments due before this, Unix milliseconds, are over at the horizon; undefined where none can be. */
export const dueBefore = ({ checked, settled }: Horizon, { settleGrace }: Rules): number | undefined =>
  settled === undefined || checked === undefined
    ? undefined
    : overBefore(Math.min(settled.time, checked.time), settleGrace)

const isOver = (payment: Payment, horizon: Horizon, rules: Rules): boolean =>
  horizon.searched !== undefined && dueTime(payment) < (dueBefore(horizon, rules) ?? Number.NEGATIVE_INFINITY)

/**
 * How a payment ends whose time is over and for which too little came; undefined while that cannot be said. One provider's
 * word neither ends it nor says why it ended, or what it had: dust and coins without a transaction that nobody else has do
 * not count.
 */
const ending = (
  seen: Payment,
  received: ReadonlyArray<Receipt>,
  receipts: ReadonlyArray<Receipt>,
  horizon: Horizon,
  now: number
): Payment | undefined => {
  const isReported = ({ corroborated, canonical, dust, txHash }: Receipt) =>
    canonical && !corroborated && dust === undefined && txHash !== undefined
  if (receipts.some(isReported)) return undefined
  const certain = received.filter(({ corroborated }) => corroborated)
  const ended = { ...withReceived(seen, certain), endedAt: now }
  const failureReason = failure(seen, certain, receipts)
  if (failureReason !== undefined) return { ...ended, status: "failed", failureReason }
  return horizon.elsewhereChecked ? { ...ended, status: "expired" } : undefined
}

/**
 * What follows for an open payment from its rows of the ledger and how far its chain has been read: the states it now
 * passes through, in order; none when nothing changes. Recomputed from the rows each time, never from what was decided
 * before.
 *
 * Money that no transaction is known for, or that a second provider has not been found to have, is seen and counted, and
 * keeps a payment from failing for want of it; it never confirms one.
 *
 * `now` is Unix milliseconds.
 */
export const advance = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  horizon: Horizon,
  rules: Rules,
  now: number
): ReadonlyArray<Step> => {
  if (isEnded(payment.status)) return []
  const received = counted(payment, receipts, rules)
  const needed = required(payment.amount, rules.toleranceBps)
  const until = deepest(horizon)
  const certain = received.filter(
    (receipt) => receipt.txHash !== undefined && receipt.corroborated && receipt.blockNumber <= until
  )
  const crossedBy = crossing(certain, needed)

  const seen: Payment = { ...withReceived(payment, received), status: received.length > 0 ? "detecting" : "pending" }
  const steps: Array<Step> = []
  if (seen.status !== payment.status) {
    steps.push({ payment: seen, announced: seen.status === "detecting" })
  } else if (seen.amountReceived !== payment.amountReceived || seen.txHash !== payment.txHash) {
    steps.push({ payment: seen, announced: false })
  }

  if (crossedBy !== undefined) {
    // What one provider alone tells of beside it is told of once another one has it.
    const counting = withReceived(
      seen,
      received.filter(({ corroborated }) => corroborated)
    )
    const confirmed: Payment = { ...counting, status: "confirmed", txHash: crossedBy, confirmedAt: now, endedAt: now }
    steps.push({ payment: confirmed, announced: true })
  } else if (isOver(payment, horizon, rules) && total(received) < needed) {
    const ended = ending(seen, received, receipts, horizon, now)
    if (ended !== undefined) steps.push({ payment: ended, announced: true })
  }
  return steps
}

/**
 * What becomes of a confirmed payment whose money a reorg took: failed, once every block that it was taken from has a
 * final block in its place, and what is left is too little. Undefined for any other, and before.
 *
 * A payment that an operator accepted is measured by what it was accepted for.
 *
 * What one provider alone reports is not money that is left. Where it would be enough, its blocks have to be final too:
 * until then another provider may confirm it.
 */
export const undone = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  horizon: Horizon,
  rules: Rules,
  now: number
): Step | undefined => {
  if (payment.status !== "confirmed") return undefined
  const orphaned = receipts.filter((receipt) => receipt.chain === payment.chain && !receipt.canonical)
  const reported = counted(payment, receipts, rules)
  const left = reported.filter(isCorroborated)
  const needed = required(payment.amount, rules.toleranceBps)
  const its = receipts.filter((receipt) => receipt.txHash === payment.txHash)
  const isThere = (receipt: Receipt) => receipt.canonical && isCorroborated(receipt)
  const taken = total(left) < (payment.amountReceived ?? 0n) || (its.length > 0 && !its.some(isThere))
  if (orphaned.length === 0 || !taken || total(left) >= needed) return undefined
  const awaited = total(reported) < needed ? [] : reported.filter((receipt) => !isCorroborated(receipt))
  const newest = Math.max(...[...orphaned, ...awaited].map((receipt) => receipt.blockNumber))
  if (newest > finalBlock(horizon)) return undefined
  // One provider's branch takes back nothing that another one still has.
  if (newest > (horizon.searched ?? -1)) return undefined
  // Coins that were mined again may be told by the balances alone.
  if (payment.currency === nativeToken(payment.chain) && newest > (horizon.checked?.number ?? -1)) return undefined
  return {
    payment: {
      ...payment,
      status: "failed",
      failureReason: "reorged",
      amountReceived: left.length === 0 ? undefined : total(left),
      endedAt: now
    },
    announced: true
  }
}
