import { required, sum } from "../Domain/Amount.ts"
import { type FailureReason, isEnded, type Payment } from "../Domain/Payment.ts"
import type { BlockRef, Receipt } from "../Domain/Receipt.ts"

/** What the chain's scan can vouch for. */
export interface Horizon {
  /** Number of the scanned head. */
  readonly head: number
  /** Blocks, the receipt's own included, that make it final: confirmations = head − its block + 1. */
  readonly confirmations: number
  /** The newest block that has those confirmations; undefined while the chain is younger than that. */
  readonly settled: BlockRef | undefined
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

// Positions are `log:12` and `tx:3`; within a block the kind does not mix for one currency.
const place = (receipt: Receipt): number => Number(receipt.position.slice(receipt.position.indexOf(":") + 1))

const inChainOrder = (a: Receipt, b: Receipt): number => a.blockNumber - b.blockNumber || place(a) - place(b)

const deadline = (payment: Payment, rules: Rules): number => payment.expiresAt + rules.settleGrace

/** Canonical receipts that pay for this: its currency, its chain, above the head of its creation, on time. */
export const counted = (payment: Payment, receipts: ReadonlyArray<Receipt>, rules: Rules): ReadonlyArray<Receipt> => {
  const { createdHead } = payment
  if (createdHead === undefined) return []
  const right = receipts.filter(
    (receipt) =>
      receipt.chain === payment.chain && receipt.currency === payment.currency && receipt.blockNumber > createdHead
  )
  // A transaction that was on time in one block stays on time when a reorg mines it again later.
  const onTime = new Set(
    right.filter((receipt) => receipt.blockTime * 1000 <= deadline(payment, rules)).map((receipt) => receipt.txHash)
  )
  return right.filter((receipt) => receipt.canonical && onTime.has(receipt.txHash)).sort(inChainOrder)
}

const total = (receipts: ReadonlyArray<Receipt>): bigint => sum(receipts.map((receipt) => receipt.amount))

/** The transaction with which the sum reaches `needed`; undefined while it does not. */
const crossing = (receipts: ReadonlyArray<Receipt>, needed: bigint): string | undefined => {
  let reached = 0n
  for (const receipt of receipts) {
    reached += receipt.amount
    if (reached >= needed) return receipt.txHash
  }
  return undefined
}

/** Why a payment whose time is over has failed; undefined when nothing at all came. */
const failure = (
  payment: Payment,
  received: ReadonlyArray<Receipt>,
  receipts: ReadonlyArray<Receipt>
): FailureReason | undefined => {
  if (received.length > 0) return "insufficient_amount"
  const others = receipts.filter((receipt) => receipt.canonical)
  const onChain = others.filter((receipt) => receipt.chain === payment.chain)
  const sinceCreation = onChain.filter(
    (receipt) => receipt.blockNumber > (payment.createdHead ?? Number.POSITIVE_INFINITY)
  )
  if (sinceCreation.some((receipt) => receipt.currency !== payment.currency)) return "wrong_token"
  return others.length > onChain.length ? "wrong_chain" : undefined
}

const withReceived = (payment: Payment, received: ReadonlyArray<Receipt>): Payment => ({
  ...payment,
  amountReceived: received.length === 0 ? undefined : total(received),
  txHash: received[0]?.txHash
})

/**
 * What follows for a payment from its rows of the ledger and how far its chain has been read: the states it now passes
 * through, in order; none when nothing changes. Recomputed from the rows each time, never from what was decided before.
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
  const deep = received.filter((receipt) => horizon.head - receipt.blockNumber + 1 >= horizon.confirmations)
  const crossedBy = crossing(deep, needed)

  const seen: Payment = { ...withReceived(payment, received), status: received.length > 0 ? "detecting" : "pending" }
  const steps: Array<Step> = []
  if (seen.status !== payment.status) {
    steps.push({ payment: seen, announced: seen.status === "detecting" })
  } else if (seen.amountReceived !== payment.amountReceived || seen.txHash !== payment.txHash) {
    steps.push({ payment: seen, announced: false })
  }

  if (crossedBy !== undefined) {
    steps.push({ payment: { ...seen, status: "confirmed", txHash: crossedBy, confirmedAt: now }, announced: true })
    return steps
  }
  const over = horizon.settled !== undefined && horizon.settled.time * 1000 > deadline(payment, rules)
  if (over && total(received) < needed) {
    const failureReason = failure(payment, received, receipts)
    steps.push({
      payment:
        failureReason === undefined ? { ...seen, status: "expired" } : { ...seen, status: "failed", failureReason },
      announced: true
    })
  }
  return steps
}
