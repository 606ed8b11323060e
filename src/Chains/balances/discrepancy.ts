/**
 * The arithmetic of balance reconciliation, pure functions: what an address is compared with, from the rows of
 * `BalancesRepo`; how the balance that was read differs from what the ledger predicts; which block to look at next.
 */
import { sum } from "../../Domain/Amount.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"

/** Balance and nonce of an address after a block. */
export interface BalancePoint {
  readonly number: number
  /** Wei. */
  readonly balance: bigint
  /** Number of transactions that the address has sent. */
  readonly nonce: number
}

/** A canonical receipt of the chain's coin. */
export type BalanceCredit = Pick<DatedTransfer, "blockNumber" | "blockHash" | "position" | "amount">

/** Whether the transaction of a receipt is unknown. */
export const isUnattributed = ({ position }: Pick<BalanceCredit, "position">): boolean => position === "unattributed"

/** The newest point that later balances are compared with. */
export interface KnownBalance extends BalancePoint {
  /** Not read from the chain: a new address is assumed to be empty and unused at that block. */
  readonly assumed: boolean
}

/** An unattributed receipt to search for again: the money came above the block of `lo`, up to the block of `hi`. */
export interface UnattributedDoubt {
  readonly credit: BalanceCredit
  readonly lo: KnownBalance
  readonly hi: BalancePoint
  /** All other receipts of the address. */
  readonly others: ReadonlyArray<BalanceCredit>
}

/** A watched address, and how its balance is to be compared. */
export interface Watched {
  /** Lower case. */
  readonly address: string
  /** The payment is for this chain. On other chains the amount of income is enough, without transactions. */
  readonly own: boolean
  /** Money above this block belongs to the payment; undefined when the block is not known. */
  readonly createdHead: number | undefined
  /** The address has been in every round since its payment was created. */
  readonly everyRound: boolean
  /** Compare the nonce too: income and a spend of the same amount leave the balance unchanged. */
  readonly withNonce: boolean
  /**
   * Smaller discrepancies are not searched for, wei: anybody can send tiny amounts, and a search takes tens of calls. What
   * is credited of a payment in the chain's coin, or completes it; none for other payments.
   */
  readonly floor?: bigint
}

/** An address whose balance is to be reconciled, with what the ledger has of it. */
export interface BalanceQuery extends Pick<Watched, "address" | "own" | "withNonce">, Required<Pick<Watched, "floor">> {
  readonly known: KnownBalance
  /** The last block at which the balance has been compared; not below the block of `known`. */
  readonly comparedTo: number
  /** Receipts above `known`. */
  readonly credits: ReadonlyArray<BalanceCredit>
  /** Unattributed receipts to search for again. */
  readonly doubts: ReadonlyArray<UnattributedDoubt>
}

/** Receipts above block `after`, up to and including `to`. */
export const creditsWithin = (credits: ReadonlyArray<BalanceCredit>, after: number, to: number) =>
  credits.filter(({ blockNumber }) => blockNumber > after && blockNumber <= to)

/** The balance after block `number`, wei, if nothing but its receipts has changed it since `known`. */
export const expectedAt = (known: BalancePoint, credits: ReadonlyArray<BalanceCredit>, number: number): bigint =>
  known.balance + sum(creditsWithin(credits, known.number, number).map(({ amount }) => amount))

/** Whether two points need no search: nothing was sent between them, and the receipts explain the difference. */
export const isReconciled = (lo: BalancePoint, hi: BalancePoint, credits: ReadonlyArray<BalanceCredit>): boolean =>
  lo.nonce === hi.nonce && expectedAt(lo, credits, hi.number) === hi.balance

/**
 * The change of balance between two points beyond the receipts, wei. Below zero: the address has spent. One that should
 * be empty and has paid a fee received money without a receipt, counted as at least 1 wei.
 */
export const discrepancy = (lo: BalancePoint, hi: BalancePoint, credits: ReadonlyArray<BalanceCredit>): bigint => {
  const expected = expectedAt(lo, credits, hi.number)
  return hi.balance - expected + (expected === 0n && hi.nonce > lo.nonce ? 1n : 0n)
}

/** The block to bisect with, if there is one: between `lo` and `hi`, and above `prunedTo`, whose state no one has. */
export const midpoint = (lo: number, hi: number, prunedTo = lo): number | undefined => {
  const from = Math.max(lo, prunedTo)
  return hi - from < 2 ? undefined : from + Math.floor((hi - from) / 2)
}

/** Whether to search again for the transaction of an unattributed receipt: at each doubled age, and hourly. Seconds. */
export const dueAgain = (seenAt: number, lastRound: number, now: number): boolean => {
  const age = now - seenAt
  const before = lastRound - seenAt
  if (age < 1 || age <= before) return false
  const hours = (seconds: number) => Math.floor(seconds / 3600)
  return before < 1 || Math.floor(Math.log2(age)) > Math.floor(Math.log2(before)) || hours(age) > hours(before)
}

/** The block of the last round, and of this one. */
export interface RoundBounds {
  readonly checked: NonNullable<Scan["checked"]>
  readonly at: BlockRef
}

/** A stored balance point: a row of `balances`. */
export interface KnownRow extends Omit<BalancePoint, "balance"> {
  readonly address: string
  readonly balance: string
}

/** A receipt of the chain's coin: a row of `receipts`. */
export interface CreditRow extends Omit<BalanceCredit, "amount"> {
  readonly address: string
  readonly blockTime: number
  readonly amount: string
}

const nowhere: KnownBalance = { number: 0, balance: 0n, nonce: 0, assumed: false }

/**
 * The query of one address, from rows in the order of their blocks. Without `since`, the bounds of a round, no
 * unattributed receipt is searched for again.
 */
export const balanceQueryOf = (
  { address, createdHead, everyRound, floor = 0n, own, withNonce }: Watched,
  since: RoundBounds | undefined,
  rows: ReadonlyArray<KnownRow>,
  receipts: ReadonlyArray<CreditRow>
): BalanceQuery => {
  const points: ReadonlyArray<KnownBalance> = [
    createdHead === undefined ? nowhere : { number: createdHead, balance: 0n, nonce: 0, assumed: true },
    ...rows.map(({ balance, nonce, number }) => ({ number, balance: BigInt(balance), nonce, assumed: false }))
  ]
  const known = points.at(-1) ?? nowhere
  const credits = receipts.map((row) => ({ ...row, amount: BigInt(row.amount) }))
  const doubts = credits.flatMap((credit): ReadonlyArray<UnattributedDoubt> => {
    if (!everyRound || since === undefined || !isUnattributed(credit)) return []
    if (!dueAgain(credit.blockTime, since.checked.time, since.at.time)) return []
    const lo = points.findLast(({ number }) => number < credit.blockNumber)
    const hi = points.find(({ number }) => number === credit.blockNumber)
    const others = credits.filter((other) => other !== credit)
    return lo === undefined || hi === undefined ? [] : [{ credit, lo, hi, others }]
  })
  return {
    address,
    own,
    known,
    comparedTo: everyRound ? Math.max(known.number, since?.checked.number ?? 0) : known.number,
    credits: credits.filter(({ blockNumber }) => blockNumber > known.number),
    withNonce,
    doubts,
    floor
  }
}
