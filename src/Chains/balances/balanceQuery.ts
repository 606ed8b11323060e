/**
 * Builds a `BalanceQuery` of one address from the rows of the ledger: the point to compare with, the receipts since,
 * and the unattributed receipts that are due for another search. Pure; `BalancesRepo` reads the rows.
 */
import { dustFloor } from "../../Domain/Amount.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import {
  type BalanceCredit,
  type BalanceQuery,
  dueAgain,
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
export interface KnownRow {
  readonly address: string
  readonly number: number
  readonly balance: string
  readonly nonce: number
}

/** A receipt of the chain's coin: a row of `receipts`. */
export interface CreditRow {
  readonly address: string
  readonly block_number: number
  readonly block_hash: string
  readonly block_time: number
  readonly position: string
  readonly tx_hash: string | null
  readonly amount: string
}

const nowhere: KnownBalance = { number: 0, balance: 0n, nonce: 0, assumed: false }

const baseline = ({ createdHead }: Watched): KnownBalance =>
  createdHead === undefined ? nowhere : { number: createdHead, balance: 0n, nonce: 0, assumed: true }

const creditOf = (row: CreditRow): BalanceCredit => ({
  number: row.block_number,
  blockHash: row.block_hash,
  position: row.position,
  txHash: row.tx_hash ?? undefined,
  amount: BigInt(row.amount)
})

/**
 * The query of one address.
 *
 * @param since the bounds of a round; without them no unattributed receipt is searched for again
 * @param rows in the order of their blocks, as are `receipts`
 */
export const balanceQueryOf = (
  watched: Watched,
  since: RoundBounds | undefined,
  rows: ReadonlyArray<KnownRow>,
  receipts: ReadonlyArray<CreditRow>
): BalanceQuery => {
  const { address, due, everyRound, own, withNonce } = watched
  const points = [
    baseline(watched),
    ...rows.map(
      ({ balance, nonce, number }): KnownBalance => ({ number, balance: BigInt(balance), nonce, assumed: false })
    )
  ]
  const newestBelow = (number: number) => points.findLast((point) => point.number < number)
  const known = points.at(-1) ?? nowhere
  const credits = receipts.map(creditOf)
  const doubts = receipts.flatMap((row): ReadonlyArray<UnattributedDoubt> => {
    if (!everyRound || row.position !== "unattributed" || since === undefined) return []
    if (!dueAgain(row.block_time, since.checked.time, since.at.time)) return []
    const lo = newestBelow(row.block_number)
    const hi = points.find((point) => point.number === row.block_number)
    const others = credits.filter((credit) => credit.position !== row.position || credit.blockHash !== row.block_hash)
    return lo === undefined || hi === undefined ? [] : [{ credit: creditOf(row), lo, hi, others }]
  })
  return {
    address,
    own,
    known,
    comparedTo: everyRound ? Math.max(known.number, since?.checked.number ?? 0) : known.number,
    credits: credits.filter((credit) => credit.number > known.number),
    withNonce,
    doubts,
    floor: due === undefined ? 0n : dustFloor(due.amount, due.missing)
  }
}
