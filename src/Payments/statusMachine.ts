/**
 * The status machine of a payment: pure functions from the payment, its receipts and how far its chain has been read to the
 * states that follow. Everything is recomputed from the receipts each time.
 *
 * Promises: a payment is confirmed only by corroborated money with a transaction and enough confirmations; it expires
 * or fails only once a second provider, if configured, was searched for money that the ledger lacks; a confirmed
 * payment is undone only by a reorg that is final. `Settlement.ts` calls it after every scan, `exceptions.ts` shares its
 * rules of which receipts count.
 */
import { remaining, required, sum } from "../Domain/Amount.ts"
import { nativeToken } from "../Domain/Currency.ts"
import type { ExceptionContent } from "../Domain/Exception.ts"
import {
  blockTimeLag,
  deadline,
  type FailureReason,
  isEnded,
  longestWaitElsewhere,
  type Payment
} from "../Domain/Payment.ts"
import {
  type BlockRef,
  type FinalityTag,
  finalBlock,
  isCorroborated,
  type Receipt,
  type Scan
} from "../Domain/Receipt.ts"
import { withoutApart } from "./exceptionContents.ts"

/**
 * Whether `payment.updated` reports the change of a detecting payment: a receipt or a reorg has changed what is still to be
 * paid by at least a hundredth of the amount, or it has become nothing, or was nothing. Smaller changes are in the next
 * event: anybody can send small transfers, a hundred times, and an event for each would be a flood. Pure; called by the status
 * machine.
 */
export const hasUpdate = (before: Payment, after: Payment): boolean => {
  const [was, is] = [remaining(before), remaining(after)]
  if (was === is) return false
  return was === 0n || is === 0n || (was > is ? was - is : is - was) * 100n >= before.amount
}

/** How far the payment's chain has been read and compared. */
export interface Horizon {
  /** Number of the scanned head. */
  readonly head: number
  /** Its time, Unix seconds. */
  readonly headTime: number
  /** Blocks, the receipt's own included, that a receipt needs: confirmations = head − its block + 1. */
  readonly confirmations: number
  /**
   * The newest known block that has those confirmations, or an older one. Undefined while the chain is shorter than that,
   * or where the caller must not end payments: only the expiry worker ends them.
   */
  readonly settled: BlockRef | undefined
  /** The block of the last balance reconciliation: it covered every payment that was over at that block. */
  readonly checked: Scan["checked"]
  /** Block numbers of the chain's tags; undefined where it has none. */
  readonly safe: number | undefined
  readonly finalized: number | undefined
  /** The tag that a finality policy requires for the payment's value, in addition to the confirmations. */
  readonly requires: FinalityTag | undefined
  /** Every other reachable chain has had a balance reconciliation after the payment's deadline, or the longest wait is over. */
  readonly elsewhereChecked: boolean
  /**
   * The block up to which a second provider was searched for money that the ledger lacks. Infinite where only one provider
   * is configured, undefined before the search.
   */
  readonly searched: number | undefined
}

/**
 * One state to store. An `announced` state also gets an event: that of its new status, or `payment.updated` where the status
 * is that of the state before. The others only update the row.
 */
export interface Step {
  readonly payment: Payment
  readonly announced: boolean
  /** Whether a person decided it, or a reorg: a restored copy of the database may come to another end. */
  readonly isDecision?: boolean
}

const kinds = ["tx", "log", "call", "unattributed"]

/** By block, then transactions before logs before internal transfers, then by index in the block. */
const inChainOrder = (a: Receipt, b: Receipt): number => {
  if (a.blockNumber !== b.blockNumber) return a.blockNumber - b.blockNumber
  const kindOf = ({ position }: Receipt) => kinds.indexOf(position.split(":")[0] ?? "")
  if (kindOf(a) !== kindOf(b)) return kindOf(a) - kindOf(b)
  if (a.place !== b.place) return a.place - b.place
  return a.position < b.position ? -1 : Number(a.position > b.position)
}

/** What identifies a receipt across reorgs: its transaction where that is known, else its block and position. */
export const identity = ({ blockHash, position, txHash }: Receipt): string => txHash ?? `${blockHash} ${position}`

/**
 * The block number above which receipts on the payment's chain are newer than the payment. Infinite while no head of the
 * chain is known: no receipt counts. A payment that ended before the first head never gets one: everything at its address,
 * which had no history, is newer.
 */
export const headAtCreation = ({ createdHead, endedAt }: Payment): number =>
  createdHead ?? (endedAt === undefined ? Number.POSITIVE_INFINITY : -1)

/**
 * The minimum of a receipt's property over the blocks that its transaction has been in. A single provider's report
 * about another block proves nothing about this one: the receipt must have been corroborated there.
 */
export const leastOf = (receipts: ReadonlyArray<Receipt>, figureOf: (receipt: Receipt) => number) => {
  const least = new Map<string, number>()
  for (const receipt of receipts) {
    const id = identity(receipt)
    if (receipt.corroborated) least.set(id, Math.min(figureOf(receipt), least.get(id) ?? Number.POSITIVE_INFINITY))
  }
  return (receipt: Receipt): number =>
    Math.min(figureOf(receipt), least.get(identity(receipt)) ?? Number.POSITIVE_INFINITY)
}

/** Receipts of the payment's currency on its chain, above its creation head: they pay for it if they are on time. */
export const fitting = (payment: Payment, receipts: ReadonlyArray<Receipt>): ReadonlyArray<Receipt> => {
  const createdHead = headAtCreation(payment)
  const right = receipts.filter((receipt) => receipt.chain === payment.chain && receipt.currency === payment.currency)
  // A transaction that was once above the creation head stays newer when a deep reorg mines it in a lower block.
  const below = leastOf(right, ({ blockNumber }) => createdHead - blockNumber)
  return right.filter((receipt) => below(receipt) < 0)
}

/** The earliest block time, Unix milliseconds, at which its money may have arrived. */
export const earliest = ({ blockTime, since }: Receipt): number => (since?.time ?? blockTime) * 1000

/**
 * Canonical receipts that may pay for the payment, in chain order: its currency, its chain, newer than the payment, on time.
 * Unattributed money, known only by an interval of blocks, counts as on time if the interval began on time: it confirms
 * nothing.
 */
export const onTimeOf = (payment: Payment, receipts: ReadonlyArray<Receipt>): ReadonlyArray<Receipt> => {
  const right = fitting(payment, receipts)
  // A transaction that was on time in one block stays on time when a reorg mines it again later.
  const arrived = leastOf(right, earliest)
  return right.filter((receipt) => receipt.canonical && arrived(receipt) <= deadline(payment)).sort(inChainOrder)
}

/**
 * What is credited of receipts in chain order: each but the small ones, and the small one that completes the payment, that is
 * with which the sum credited so far reaches what is required.
 */
const credit = (payment: Payment, onTime: ReadonlyArray<Receipt>): ReadonlyArray<Receipt> => {
  const needed = required(payment)
  let reached = 0n
  return onTime.filter(({ amount, small }) => {
    if (small && (reached >= needed || reached + amount < needed)) return false
    reached += amount
    return true
  })
}

/**
 * Receipts that pay for the payment, in chain order: on time, and credited.
 *
 * @param counts which receipts there are; what completes the payment follows from these alone
 */
export const counted = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  counts: (receipt: Receipt) => boolean = () => true
): ReadonlyArray<Receipt> => credit(payment, onTimeOf(payment, receipts).filter(counts))

/**
 * What a small receipt has to be at least to complete the payment: what the last sum that is too little lacks, by all receipts
 * or by the corroborated ones. Undefined where that is no less than the floor.
 */
export const leastToComplete = (payment: Payment, receipts: ReadonlyArray<Receipt>): bigint | undefined => {
  const onTime = onTimeOf(payment, receipts).filter(({ small }) => !small)
  const least = [onTime, onTime.filter(({ corroborated }) => corroborated)].map((all) => {
    let lacking = required(payment)
    for (const { amount } of all) {
      if (amount >= lacking) break
      lacking -= amount
    }
    return lacking
  })
  return least.filter((lacking) => lacking < payment.floor).sort((a, b) => Number(a - b))[0]
}

/** The receipts without those that are too small: neither all receipts nor the corroborated ones are completed by them. */
export const withoutSmall = (payment: Payment, receipts: ReadonlyArray<Receipt>): ReadonlyArray<Receipt> => {
  const credited = new Set([
    ...counted(payment, receipts),
    ...counted(payment, receipts, ({ corroborated }) => corroborated)
  ])
  return receipts.filter((receipt) => !(receipt.small && receipt.canonical) || credited.has(receipt))
}

/** Receipts on other chains than the payment's, in blocks that are not older than the payment. */
export const elsewhere = (payment: Payment, receipts: ReadonlyArray<Receipt>): ReadonlyArray<Receipt> =>
  receipts.filter(
    ({ blockTime, chain }) => chain !== payment.chain && blockTime * 1000 >= payment.createdAt - blockTimeLag
  )

export const total = (receipts: ReadonlyArray<Pick<Receipt, "amount">>): bigint =>
  sum(receipts.map((receipt) => receipt.amount))

/** The transaction with which the sum reaches `needed`; undefined while it does not. */
export const crossing = (receipts: ReadonlyArray<Receipt>, needed: bigint): string | undefined => {
  let reached = 0n
  for (const receipt of receipts) {
    reached += receipt.amount
    if (reached >= needed) return receipt.txHash
  }
  return undefined
}

/** The newest block whose receipts may complete the payment: it has the confirmations and the required tag. */
const newestConfirmable = (horizon: Horizon): number => {
  const { confirmations, head, requires } = horizon
  // A required tag that is not known yet holds the payment back.
  const tagged = requires === undefined ? Number.POSITIVE_INFINITY : (horizon[requires] ?? Number.NEGATIVE_INFINITY)
  return Math.min(head - confirmations + 1, tagged)
}

/** Why a payment whose time is over has failed, by corroborated receipts only; undefined when none came at all. */
const failure = (
  payment: Payment,
  received: ReadonlyArray<Receipt>,
  receipts: ReadonlyArray<Receipt>
): FailureReason | undefined => {
  if (received.length > 0) return "insufficient_amount"
  const canonical = receipts.filter((receipt) => receipt.canonical)
  const onChain = canonical.filter((receipt) => receipt.chain === payment.chain && receipt.corroborated)
  const sinceCreation = onChain.filter((receipt) => receipt.blockNumber > headAtCreation(payment))
  if (sinceCreation.some((receipt) => receipt.currency !== payment.currency)) return "wrong_token"
  return elsewhere(payment, canonical).some(({ corroborated }) => corroborated) ? "wrong_chain" : undefined
}

/** The payment with `amountReceived` and `txHash` of these receipts. */
export const withReceived = (payment: Payment, received: ReadonlyArray<Receipt>): Payment => ({
  ...payment,
  amountReceived: received.length === 0 ? undefined : total(received),
  txHash: received.find((receipt) => receipt.txHash !== undefined)?.txHash
})

/** Payments with a deadline before this, Unix milliseconds, are over at the horizon; undefined where none can be. */
export const overBefore = ({ checked, settled }: Horizon): number | undefined =>
  settled === undefined || checked === undefined ? undefined : Math.min(settled.time, checked.time) * 1000

const isOver = (payment: Payment, horizon: Horizon): boolean =>
  horizon.searched !== undefined && deadline(payment) < (overBefore(horizon) ?? Number.NEGATIVE_INFINITY)

/**
 * A canonical receipt that only one provider reports, and that another one may still corroborate. Unattributed money is
 * excluded: it is not waited for.
 */
export const isUndecided = ({ canonical, corroborated, txHash }: Receipt): boolean =>
  canonical && !corroborated && txHash !== undefined

/**
 * How a payment ends whose time is over and which got too little; undefined while that is undecided. On its own chain a
 * receipt that only one provider reports keeps it open, but for those in later blocks than decide: the block number says that
 * they are late, where their time is that provider's word. Money on other chains is waited for until the longest wait is
 * over: it pays for nothing, and is an exception of its own (`exceptions.ts`). What is undecided counts neither for the
 * amount nor for the reason.
 */
const ending = (
  seen: Payment,
  receipts: ReadonlyArray<Receipt>,
  horizon: Horizon,
  now: number
): Payment | undefined => {
  const newest = horizon.settled?.number ?? Number.POSITIVE_INFINITY
  const mayWait = now - deadline(seen) <= longestWaitElsewhere
  const isAwaited = (receipt: Receipt) =>
    isUndecided(receipt) && (receipt.chain === seen.chain ? receipt.blockNumber <= newest : mayWait)
  if (receipts.some(isAwaited)) return undefined
  const certain = counted(seen, receipts, ({ corroborated }) => corroborated)
  const ended = { ...withReceived(seen, certain), endedAt: now }
  const failureReason = failure(seen, certain, receipts)
  if (failureReason !== undefined) return { ...ended, status: "failed", failureReason }
  return horizon.elsewhereChecked ? { ...ended, status: "expired" } : undefined
}

/**
 * The states that an open payment passes through now, in order; none when nothing changes.
 *
 * Unattributed money, and money that no second provider has corroborated, is counted in `amountReceived` and keeps a payment
 * from failing for too little; it never confirms one.
 *
 * @param now Unix milliseconds
 */
export const advance = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  horizon: Horizon,
  now: number
): ReadonlyArray<Step> => {
  if (isEnded(payment.status)) return []
  const received = counted(payment, receipts)
  const needed = required(payment)
  const confirmable = newestConfirmable(horizon)
  const certain = counted(
    payment,
    receipts,
    ({ blockNumber, corroborated, txHash }) => txHash !== undefined && corroborated && blockNumber <= confirmable
  )
  const crossedBy = crossing(certain, needed)

  const status = received.length > 0 ? "detecting" : "pending"
  const found: Payment = { ...withReceived(payment, received), status }
  const isUpdated = status === payment.status && hasUpdate(payment, found)
  const seen: Payment = isUpdated ? { ...found, updates: found.updates + 1 } : found
  const steps: Array<Step> = []
  if (status !== payment.status) {
    steps.push({ payment: seen, announced: status === "detecting" })
  } else if (seen.amountReceived !== payment.amountReceived || seen.txHash !== payment.txHash) {
    steps.push({ payment: seen, announced: isUpdated })
  }

  if (crossedBy !== undefined) {
    // Further money that only one provider reports becomes an exception once it is corroborated.
    const corroborated = withReceived(
      seen,
      counted(payment, receipts, ({ corroborated }) => corroborated)
    )
    const confirmed: Payment = {
      ...corroborated,
      status: "confirmed",
      txHash: crossedBy,
      confirmedAt: now,
      endedAt: now
    }
    steps.push({ payment: confirmed, announced: true })
  } else if (isOver(payment, horizon) && total(received) < needed) {
    const ended = ending(seen, receipts, horizon, now)
    if (ended !== undefined) steps.push({ payment: ended, announced: true })
  }
  return steps
}

/** The newest block that was final when the balances were last compared; -1 before. */
export const finalWhenCompared = ({ checked, ...horizon }: Horizon): number =>
  checked === undefined ? -1 : finalBlock({ ...horizon, head: checked.number })

/**
 * The failure of a confirmed payment whose money a reorg orphaned: once every orphaned block has been replaced by a final
 * one, and the money that is left is too little. Undefined otherwise.
 *
 * A payment that was accepted is measured by what it was accepted for: other money of its own, whose exceptions are open
 * (`apart`), makes up for nothing.
 *
 * Uncorroborated money does not count as left. Where it would be enough, its blocks have to be final too: until then another
 * provider may corroborate it.
 */
export const undone = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  horizon: Horizon,
  now: number,
  apart: ReadonlyArray<ExceptionContent> = []
): Step | undefined => {
  if (payment.status !== "confirmed") return undefined
  const orphaned = receipts.filter((receipt) => receipt.chain === payment.chain && !receipt.canonical)
  const reported = withoutApart(counted(payment, receipts), apart).receipts
  const left = withoutApart(counted(payment, receipts, isCorroborated), apart).receipts
  const needed = required(payment)
  const completing = receipts.filter((receipt) => receipt.txHash === payment.txHash)
  const isThere = (receipt: Receipt) => receipt.canonical && isCorroborated(receipt)
  const hasLost = total(left) < (payment.amountReceived ?? 0n) || (completing.length > 0 && !completing.some(isThere))
  if (orphaned.length === 0 || !hasLost || total(left) >= needed) return undefined
  const awaited = total(reported) < needed ? [] : reported.filter((receipt) => !isCorroborated(receipt))
  const newest = Math.max(...[...orphaned, ...awaited].map((receipt) => receipt.blockNumber))
  if (newest > finalBlock(horizon)) return undefined
  // A branch that only one provider serves undoes nothing: a second one has to be searched first.
  if (newest > (horizon.searched ?? -1)) return undefined
  // Native money that was mined again may show in a balance only: one has to be compared since the reorg has become final.
  if (payment.currency === nativeToken(payment.chain) && newest > finalWhenCompared(horizon)) return undefined
  return {
    payment: {
      ...payment,
      status: "failed",
      failureReason: "reorged",
      amountReceived: left.length === 0 ? undefined : total(left),
      endedAt: now
    },
    announced: true,
    isDecision: true
  }
}
