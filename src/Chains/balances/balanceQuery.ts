/**
 * Builds a `BalanceQuery` of one address from the rows of the ledger: the point to compare with, the receipts since,
 * and the unattributed receipts that are due for another search. Pure; `BalancesRepo` reads the rows.
 */
import { dustFloor } from "../../Domain/Amount.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import {
  type BalanceCredit,
  type BalancePoint,
  type BalanceQuery,
  dueAgain,
  isUnattributed,
  type KnownBalance,
  type UnattributedDoubt
} from "./discrepancy.ts"

/** A watched address, and how its balance is to be compared. */
export interface Watched {
  /** Lower case. */
  readonly address: string
  /** The payment is for this chain. */
  readonly own: boolean
  /** Money above this block belongs to the payment; undefined when the block is not known. */
  readonly createdHead: number | undefined
  /** The address has been in every round since its payment was created. */
  readonly everyRound: boolean
  /** Compare the nonce too. */
  readonly withNonce: boolean
  /** Amount of a payment in the chain's coin, and how much of it is missing, wei; undefined for other payments. */
  readonly due?: { readonly amount: bigint; readonly missing: bigint } | undefined
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
 * The query of one address.
 *
 * @param since the bounds of a round; without them no unattributed receipt is searched for again
 * @param rows in the order of their blocks, as are `receipts`
 */
export const balanceQueryOf = (
  { address, createdHead, due, everyRound, own, withNonce }: Watched,
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
    floor: due === undefined ? 0n : dustFloor(due.amount, due.missing)
  }
}
