import { Effect } from "effect"
import type { ChainName, Mode, Network } from "../Domain/Chain.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import type { Db } from "../Sql.ts"

interface ReceiptRow {
  readonly chain: ChainName
  readonly mode: Mode
  readonly block_hash: string
  readonly block_number: number
  readonly block_time: number
  readonly address: string
  readonly position: string
  readonly place: number
  readonly tx_hash: string | null
  readonly currency: string
  readonly amount: string
  readonly payment_id: string | null
  readonly canonical: number
  readonly agreed: number
  readonly seen_at: number
  readonly since_number: number | null
  readonly since_time: number | null
}

const columns = `chain, mode, block_hash, block_number, block_time, address, position, place, tx_hash, currency,
  amount, payment_id, canonical, agreed, seen_at, since_number, since_time`

const fromRow = (row: ReceiptRow): Receipt => ({
  chain: row.chain,
  mode: row.mode,
  blockHash: row.block_hash,
  blockNumber: row.block_number,
  blockTime: row.block_time,
  address: row.address,
  position: row.position,
  place: row.place,
  txHash: row.tx_hash ?? undefined,
  currency: row.currency,
  amount: BigInt(row.amount),
  payment: (row.payment_id ?? undefined) as PaymentId | undefined,
  canonical: row.canonical === 1,
  agreed: row.agreed === 1,
  seenAt: row.seen_at,
  since:
    row.since_number === null || row.since_time === null
      ? undefined
      : { number: row.since_number, time: row.since_time }
})

/** A payment's whole ledger, orphaned rows included. */
export const ofPayment = (db: Db, payment: PaymentId) =>
  Effect.map(
    db.all<ReceiptRow>(`SELECT ${columns} FROM receipts WHERE payment_id = ? ORDER BY block_number, place, position`, [
      payment
    ]),
    (rows): ReadonlyArray<Receipt> => rows.map(fromRow)
  )

/** Whether a receipt above block `number` of one of the payments waits to be corroborated. */
export const anyAwaited = (db: Db, { chain, mode }: Network, payments: ReadonlyArray<PaymentId>, number: number) =>
  Effect.map(
    db.get(
      `SELECT 1 FROM receipts
       WHERE chain = ? AND mode = ? AND canonical = 1 AND agreed = 0 AND block_number > ?
         AND payment_id IN (SELECT value FROM json_each(?)) LIMIT 1`,
      [chain, mode, number, JSON.stringify(payments)]
    ),
    (row) => row !== undefined
  )

/** Canonical receipts of a chain at addresses whose payments are lost. */
export const ofNobody = (db: Db, { chain, mode }: Network) =>
  Effect.map(
    db.all<ReceiptRow>(
      `SELECT ${columns} FROM receipts
       WHERE payment_id IS NULL AND chain = ? AND mode = ? AND canonical = 1 ORDER BY block_number, address, place, position`,
      [chain, mode]
    ),
    (rows): ReadonlyArray<Receipt> => rows.map(fromRow)
  )
