/** The table `dust_sums`: the sums of small receipts that stand for their rows in settlement. See `dust.ts`. */
import { Effect } from "effect"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { DustKind } from "../Domain/Receipt.ts"
import { type Db, execute } from "../Sql.ts"
import type { DustSum } from "./dust.ts"

interface DustRow {
  readonly address: string
  readonly mode: Mode
  readonly chain: ChainName
  readonly currency: string
  readonly kind: DustKind
  readonly corroborated: number
  readonly payment_id: string | null
  readonly transfers: number
  readonly amount: string
  readonly newest_number: number
  readonly newest_time: number
  readonly orphaned_number: number | null
  readonly tx_hash: string
  readonly decided: string | null
}

const columns = `address, mode, chain, currency, kind, corroborated, payment_id, transfers, amount, newest_number, newest_time,
  orphaned_number, tx_hash, decided`

const fromRow = (row: DustRow): DustSum => ({
  address: row.address,
  mode: row.mode,
  chain: row.chain,
  currency: row.currency,
  kind: row.kind,
  corroborated: row.corroborated === 1,
  payment: (row.payment_id ?? undefined) as PaymentId | undefined,
  transfers: row.transfers,
  amount: BigInt(row.amount),
  newest: { number: row.newest_number, time: row.newest_time },
  orphaned: row.orphaned_number ?? undefined,
  txHash: row.tx_hash,
  decided: row.decided === null ? undefined : BigInt(row.decided)
})

/** The sums of a payment's dust, including those that are zero by now. */
export const ofPayment = (db: Db, payment: PaymentId) =>
  Effect.map(
    db.all<DustRow>(
      `SELECT ${columns} FROM dust_sums WHERE payment_id = ? ORDER BY chain, currency, kind, corroborated DESC`,
      [payment]
    ),
    (rows) => rows.map(fromRow)
  )

/** The same for an address (lower case) whose payment is lost. */
export const ofLost = (db: Db, address: string, mode: Mode) =>
  Effect.map(
    db.all<DustRow>(
      `SELECT ${columns} FROM dust_sums WHERE address = ? AND mode = ? AND payment_id IS NULL ORDER BY corroborated DESC`,
      [address, mode]
    ),
    (rows) => rows.map(fromRow)
  )

/** Stores a sum. */
export const keep = (sum: DustSum) =>
  execute(`INSERT OR REPLACE INTO dust_sums (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, [
    sum.address,
    sum.mode,
    sum.chain,
    sum.currency,
    sum.kind,
    sum.corroborated ? 1 : 0,
    sum.payment ?? null,
    sum.transfers,
    sum.amount.toString(),
    sum.newest.number,
    sum.newest.time,
    sum.orphaned ?? null,
    sum.txHash,
    sum.decided?.toString() ?? null
  ])

/**
 * Records that the payment has ended with the dust that is corroborated now. Uncorroborated dust counts as new once it is
 * corroborated.
 */
export const decide = (payment: PaymentId) =>
  execute("UPDATE dust_sums SET decided = iif(corroborated, amount, '0') WHERE payment_id = ? AND kind = 'paying'", [
    payment
  ])
