import { sum } from "../../Domain/Amount.ts"

/** What an address holds after a block. */
export interface BalancePoint {
  readonly number: number
  /** Wei. */
  readonly balance: bigint
  /** Transactions that it has sent. */
  readonly nonce: number
}

/** A canonical receipt of the chain's coin. */
export interface BalanceCredit {
  readonly number: number
  readonly blockHash: string
  readonly position: string
  /** Undefined for `unattributed` only. */
  readonly txHash: string | undefined
  readonly amount: bigint
}

/** The newest point that later balances are compared with. */
export interface KnownBalance extends BalancePoint {
  /** Nobody has looked: the address is taken to be as empty and unused at that block as it should be. */
  readonly assumed: boolean
}

/** A receipt whose transaction nobody could tell, to be tried again: it came after `lo`, and at the latest with `hi`. */
export interface UnattributedDoubt {
  readonly credit: BalanceCredit
  readonly lo: KnownBalance
  readonly hi: BalancePoint
  /** Other receipts of these blocks. */
  readonly others: ReadonlyArray<BalanceCredit>
}

/** An address whose balance is wanted, and what is known of it. */
export interface BalanceQuery {
  /** Lower case. */
  readonly address: string
  /** The payment is to be made on this chain. On another one it is enough to know that something came. */
  readonly own: boolean
  readonly known: KnownBalance
  /** Up to this block, not below `known`, the balance has been compared before. */
  readonly comparedTo: number
  /** Receipts above `known`. */
  readonly credits: ReadonlyArray<BalanceCredit>
  /** Whether it has sent anything is compared too: a receipt and a spend of the same amount leave the balance as it was. */
  readonly withNonce: boolean
  readonly doubts: ReadonlyArray<UnattributedDoubt>
  /**
   * While an address has come by less than this, nobody looks for how; wei. Anybody can send it so little in every block,
   * and each of them takes tens of calls to be found.
   */
  readonly floor: bigint
}

const total = (credits: ReadonlyArray<BalanceCredit>): bigint => sum(credits.map((credit) => credit.amount))

/** Receipts above block `after`, up to and including `to`. */
export const creditsWithin = (
  credits: ReadonlyArray<BalanceCredit>,
  after: number,
  to: number
): ReadonlyArray<BalanceCredit> => credits.filter(({ number }) => number > after && number <= to)

/** What the address holds after block `number` if nothing but its receipts has changed its balance since `known`. */
export const expectedAt = (known: BalancePoint, credits: ReadonlyArray<BalanceCredit>, number: number): bigint =>
  known.balance + total(creditsWithin(credits, known.number, number))

/** Nothing has to be found between two points: nothing was sent, and the receipts make up the difference. */
export const isReconciled = (lo: BalancePoint, hi: BalancePoint, credits: ReadonlyArray<BalanceCredit>): boolean =>
  lo.nonce === hi.nonce && expectedAt(lo, credits, hi.number) === hi.balance

/**
 * What has changed between two points beyond the receipts. Below zero: the address has spent. One that had nothing and has
 * sent a transaction has paid for that at least: it has had money that no receipt tells of.
 */
export const discrepancy = (lo: BalancePoint, hi: BalancePoint, credits: ReadonlyArray<BalanceCredit>): bigint => {
  const expected = expectedAt(lo, credits, hi.number)
  return hi.balance - expected + (expected === 0n && hi.nonce > lo.nonce ? 1n : 0n)
}

/**
 * The block that halves what is above `lo` and below `hi`; undefined when there is none.
 *
 * @param gone no node has the state of this block any more, nor of those below
 */
export const midpoint = (lo: number, hi: number, gone = lo): number | undefined => {
  const from = Math.max(lo, gone)
  return hi - from < 2 ? undefined : from + Math.floor((hi - from) / 2)
}

/**
 * Whether an unattributed receipt is tried again: when its age has doubled since the last round, and once an hour.
 * Seconds on the chain's clock.
 */
export const dueAgain = (seenAt: number, lastRound: number, now: number): boolean => {
  const age = now - seenAt
  const before = lastRound - seenAt
  if (age < 1 || age <= before) return false
  const hours = (seconds: number) => Math.floor(seconds / 3600)
  return before < 1 || Math.floor(Math.log2(age)) > Math.floor(Math.log2(before)) || hours(age) > hours(before)
}
