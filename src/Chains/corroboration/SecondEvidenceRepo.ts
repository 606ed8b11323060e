import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import { type Db, Tx } from "../../Sql.ts"
import { keyOf, type ReceiptKey, type Touched } from "../ledger/LedgerRepo.ts"
import { isDenied } from "./CorroborationRepo.ts"

// What more than one provider has told of, when a stretch of the chain or a payment was looked at a second time.

/** Money without a transaction, of the time of whose block no second provider has told. */
export interface Undated extends ReceiptKey {
  readonly payment: PaymentId
  readonly blockNumber: number
  /** Wei. */
  readonly amount: bigint
  /** Unix seconds, as the one provider tells. */
  readonly blockTime: number
  /** The first block that it may have come with; undefined where that is its own. */
  readonly since: number | undefined
}

interface UndatedRow {
  readonly payment_id: PaymentId
  readonly block_hash: string
  readonly address: string
  readonly position: string
  readonly block_number: number
  readonly block_time: number
  readonly amount: string
  readonly since_number: number | null
}

/** Money of these payments that came without a transaction, in blocks up to `upTo`, at a time that one provider tells. */
export const undated = (
  db: Db,
  { chain, mode }: Network,
  upTo: number,
  payments: ReadonlyArray<{ readonly payment: PaymentId }>
) =>
  Effect.map(
    db.all<UndatedRow>(
      `SELECT payment_id, block_hash, address, position, block_number, block_time, amount, since_number
       FROM receipts
       WHERE payment_id IN (SELECT value FROM json_each(?)) AND dust IS NULL AND position = 'unattributed'
         AND chain = ? AND mode = ? AND canonical = 1 AND corroborated = 0 AND block_number <= ?`,
      [JSON.stringify(payments.map(({ payment }) => payment)), chain, mode, upTo]
    ),
    (rows) =>
      rows.map(
        (row): Undated => ({
          payment: row.payment_id,
          blockHash: row.block_hash,
          address: row.address,
          position: row.position,
          blockNumber: row.block_number,
          blockTime: row.block_time,
          amount: BigInt(row.amount),
          since: row.since_number ?? undefined
        })
      )
  )

/** A receipt with the time of its block as providers have it, Unix seconds. */
export interface CorroboratedReceipt extends ReceiptKey {
  readonly blockTime: number
  /** The same of the first block that it may have come with, where only an interval is known. */
  readonly sinceTime?: number | undefined
}

const corroborate = (
  { chain, mode }: Network,
  receipts: ReadonlyArray<CorroboratedReceipt>,
  which: string,
  isAgreed: (receipt: CorroboratedReceipt) => boolean
) =>
  Effect.gen(function* () {
    const rows = yield* (yield* Tx).all<{ payment_id: string | null }>(
      `UPDATE receipts SET corroborated = told.value ->> 5, canonical = 1, refuted = 0, block_time = told.value ->> 3,
         since_time = iif(since_number IS NULL, NULL, min(told.value ->> 4, told.value ->> 3))
       FROM json_each(?) AS told
       WHERE corroborated = 0 AND chain = ? AND mode = ? AND block_hash = told.value ->> 0 AND address = told.value ->> 1
         AND position = told.value ->> 2 AND ${which}
       RETURNING payment_id`,
      [
        JSON.stringify(
          receipts.map((receipt) => {
            const { address, blockHash, blockTime, position, sinceTime } = receipt
            return [blockHash, address, position, blockTime, sinceTime ?? null, Number(isAgreed(receipt))]
          })
        ),
        chain,
        mode
      ]
    )
    return rows.map((row) => (row.payment_id ?? undefined) as Touched)
  })

/**
 * Notes that a second provider has these receipts, at the same block times, dust among them; also of those that two had
 * denied, one of them on another branch. Gives whose they are: with those settled in the same transaction, the sums of
 * their dust follow.
 */
export const setPassCorroborated = (network: Network, receipts: ReadonlyArray<CorroboratedReceipt>) =>
  corroborate(network, receipts, "true", () => true)

/**
 * The same of those among the receipts that nobody is asked about elsewhere.
 *
 * @param datedOnly keys of those whose block times two providers have, and of which one alone shows that they came
 * @param isSole one provider decides alone, and not on what another one has denied
 */
export const corroborateOthers = (
  network: Network,
  receipts: ReadonlyArray<CorroboratedReceipt>,
  datedOnly: ReadonlySet<string>,
  isSole: boolean
) =>
  corroborate(
    network,
    receipts,
    `(dust IS NOT NULL OR position = 'unattributed') AND refuted = 0 ${isSole ? `AND NOT ${isDenied}` : ""}`,
    (receipt) => !datedOnly.has(keyOf(receipt))
  )

/** Has the agreement ask once more about receipts that were refuted, and that two providers tell of. Gives whose. */
export const reinstate = ({ chain, mode }: Network, receipts: ReadonlyArray<ReceiptKey>) =>
  Effect.gen(function* () {
    const rows = yield* (yield* Tx).all<{ payment_id: string | null }>(
      `UPDATE receipts SET canonical = 1, refuted = 0
       WHERE refuted = 1 AND chain = ? AND mode = ? AND (block_hash, address, position) IN (
         SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))
       RETURNING payment_id`,
      [chain, mode, JSON.stringify(receipts.map(({ address, blockHash, position }) => [blockHash, address, position]))]
    )
    return rows.map((row) => (row.payment_id ?? undefined) as Touched)
  })
