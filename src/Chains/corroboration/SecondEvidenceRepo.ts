/**
 * Corroboration in bulk: receipts that the verification pass or the search before a payment's end has seen at two
 * providers. Unlike `CorroborationRepo.ts` it covers money without a transaction. Functions that change
 * receipts run in the caller's transaction and give the payments concerned, which the caller settles.
 */
import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import { type Db, Tx } from "../../Sql.ts"
import { keyOf, type ReceiptKey, type Touched, touchedSql } from "../ledger/LedgerRepo.ts"
import { isDenied } from "./CorroborationRepo.ts"

/** Money without a transaction whose block times no second provider has corroborated. */
export interface Undated extends ReceiptKey {
  readonly payment: PaymentId
  readonly blockNumber: number
  /** Wei. */
  readonly amount: bigint
  /** Unix seconds, as reported by one provider. */
  readonly blockTime: number
  /** Number of the first block that it may have arrived in; undefined where that is its own block. */
  readonly since: number | undefined
}

/** Uncorroborated money without a transaction of these payments, in blocks up to `upTo`. */
export const undated = (
  db: Db,
  { chain, mode }: Network,
  upTo: number,
  payments: ReadonlyArray<{ readonly payment: PaymentId }>
) =>
  Effect.map(
    db.all<Omit<Undated, "amount" | "since"> & { readonly amount: string; readonly since: number | null }>(
      `SELECT payment_id AS payment, block_hash AS blockHash, address, position, block_number AS blockNumber,
         block_time AS blockTime, amount, since_number AS since FROM receipts
       WHERE payment_id IN (SELECT value FROM json_each(?)) AND listed IN ('own', 'stray') AND position = 'unattributed'
         AND chain = ? AND mode = ? AND canonical = 1 AND corroborated = 0 AND block_number <= ?`,
      [JSON.stringify(payments.map(({ payment }) => payment)), chain, mode, upTo]
    ),
    (rows): ReadonlyArray<Undated> =>
      rows.map((row) => ({ ...row, amount: BigInt(row.amount), since: row.since ?? undefined }))
  )

/** A receipt with its block time as the providers report it, Unix seconds. */
export interface CorroboratedReceipt extends ReceiptKey {
  readonly blockTime: number
  /** Who sent it, lower case; undefined where the providers differ, or were not asked. */
  readonly sender?: string | undefined
  /** The time of the first block that it may have arrived in, where only an interval is known. Unix seconds. */
  readonly sinceTime?: number | undefined
}

const corroborate = (
  { chain, mode }: Network,
  receipts: ReadonlyArray<CorroboratedReceipt>,
  condition: string,
  isCorroborated: (receipt: CorroboratedReceipt) => boolean
) =>
  Effect.gen(function* () {
    const rows = yield* (yield* Tx).all<{ touched: Touched }>(
      `UPDATE receipts SET corroborated = CAST(given.value ->> 5 AS BIGINT), canonical = 1, refuted = 0,
         block_time = CAST(given.value ->> 3 AS BIGINT),
         sender = given.value ->> 6,
         since_time = iif(since_number IS NULL, NULL, min(CAST(given.value ->> 4 AS BIGINT), CAST(given.value ->> 3 AS BIGINT)))
       FROM json_each(?) AS given
       WHERE corroborated = 0 AND chain = ? AND mode = ? AND block_hash = given.value ->> 0 AND address = given.value ->> 1
         AND position = given.value ->> 2 AND ${condition}
       RETURNING ${touchedSql} AS touched`,
      [
        JSON.stringify(
          receipts.map((receipt) => {
            const { address, blockHash, blockTime, position, sender = null, sinceTime = null } = receipt
            return [blockHash, address, position, blockTime, sinceTime, Number(isCorroborated(receipt)), sender]
          })
        ),
        chain,
        mode
      ]
    )
    return rows.map(({ touched }) => touched)
  })

/**
 * Marks receipts as corroborated with the block times of the quorum. Refuted receipts count again: one
 * of the two providers that denied them may have been on another branch. Gives whom they concern.
 */
export const setPassCorroborated = (network: Network, receipts: ReadonlyArray<CorroboratedReceipt>) =>
  corroborate(network, receipts, "true", () => true)

/**
 * The same for receipts that `corroborate.ts` does not ask about: money without a transaction. Refuted ones stay.
 *
 * @param datedOnly keys of receipts whose block times are corroborated, but not that the money arrived: they get the
 *   block times, and stay uncorroborated
 * @param isSole one provider decides alone: receipts that another one has denied are left out
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
    `position = 'unattributed' AND refuted = 0 ${isSole ? `AND NOT ${isDenied}` : ""}`,
    (receipt) => !datedOnly.has(keyOf(receipt))
  )

/** Has refuted receipts that two providers report now corroborated again. Gives the payments concerned. */
export const reinstate = ({ chain, mode }: Network, receipts: ReadonlyArray<ReceiptKey>) =>
  Effect.gen(function* () {
    const rows = yield* (yield* Tx).all<{ touched: Touched }>(
      `UPDATE receipts SET canonical = 1, refuted = 0
       WHERE refuted = 1 AND chain = ? AND mode = ? AND (block_hash, address, position) IN (
         SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))
       RETURNING ${touchedSql} AS touched`,
      [chain, mode, JSON.stringify(receipts.map(({ address, blockHash, position }) => [blockHash, address, position]))]
    )
    return rows.map(({ touched }) => touched)
  })
