import { dustFloor } from "../../Domain/Amount.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import {
  type BalanceCredit,
  type BalanceQuery,
  dueAgain,
  type KnownBalance,
  type UnattributedDoubt
} from "./discrepancy.ts"

/** A watched address, and why its balance is wanted. */
export interface Watched {
  /** Lower case. */
  readonly address: string
  /** The payment is to be made on this chain. */
  readonly own: boolean
  /** Number of the block after which money is the payment's; undefined where nobody knows. */
  readonly createdHead: number | undefined
  /** It has been compared in every round since it was created. */
  readonly everyRound: boolean
  readonly withNonce: boolean
  /** What its payment asks for of the chain's coin, and what it has of that. Undefined of an address without. */
  readonly due?: { readonly amount: bigint; readonly missing: bigint } | undefined
}

/** The last round, and the block of this one. */
export interface RoundBounds {
  readonly checked: NonNullable<Scan["checked"]>
  readonly at: BlockRef
}

/** A point that was kept: a row of `balances`. */
export interface KnownRow {
  readonly address: string
  readonly number: number
  readonly balance: string
  readonly nonce: number
}

/** A receipt of the chain's coin. */
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

/** What is known of one address, from its rows, which are in the order of their blocks. */
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
