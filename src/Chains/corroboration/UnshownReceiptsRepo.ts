/**
 * Unattributed receipts (coins that raised a balance and that no transaction explains) that two providers have not yet
 * shown by their own balances. `corroborateBalances.ts` lists them, compares them with the rest of the ledger, and
 * marks or removes them.
 */
import { Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import type { Network } from "../../Domain/Chain.ts"
import { anyRow, type Db, execute, Tx } from "../../Sql.ts"
import * as Balances from "../balances/BalancesRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import * as Searches from "./SearchesRepo.ts"

/** An unattributed receipt that the balances of two providers have not been found to show. */
export interface UnshownReceipt extends Ledger.ReceiptKey {
  readonly blockNumber: number
  /** Unix seconds. */
  readonly blockTime: number
  /** Number of the first block that it may have arrived in. */
  readonly since: number
  /** Wei. */
  readonly amount: bigint
}

/** The newest `limit` of the network. */
export const unshown = (db: Db, { chain, mode }: Network, limit: number) =>
  Effect.map(
    db.all<Omit<UnshownReceipt, "amount"> & { readonly amount: string }>(
      `SELECT block_hash AS blockHash, address, position, block_number AS blockNumber, block_time AS blockTime,
         coalesce(since_number, block_number) AS since, amount FROM receipts
       WHERE chain = ? AND mode = ? AND canonical = 1 AND corroborated = 0 AND position = 'unattributed'
       ORDER BY block_number DESC LIMIT ?`,
      [chain, mode, limit]
    ),
    (rows): ReadonlyArray<UnshownReceipt> => rows.map((row) => ({ ...row, amount: BigInt(row.amount) }))
  )

/** Whether its payment has been searched before its end. */
export const isSearched = (db: Db, network: Network, key: Ledger.ReceiptKey) =>
  anyRow(
    db,
    `SELECT 1 FROM searches WHERE payment_id = (SELECT payment_id FROM receipts WHERE ${Ledger.isReceipt})`,
    Ledger.paramsOf(network, key)
  )

/**
 * Marks an unattributed receipt as corroborated. A receipt of an ended payment stays as it is: it records money that
 * did not count when the payment ended.
 */
export const setShown = (network: Network, receipt: Ledger.ReceiptKey & Pick<UnshownReceipt, "amount">) =>
  execute(
    `UPDATE receipts SET corroborated = 1 WHERE ${Ledger.isReceipt} AND amount = ?
         AND NOT EXISTS (SELECT 1 FROM payments WHERE id = payment_id AND ended_at IS NOT NULL)`,
    [...Ledger.paramsOf(network, receipt), receipt.amount.toString()]
  )

/** Other coins that an address received in the same blocks as unattributed money, wei. */
export interface ReceivedWith {
  readonly all: bigint
  readonly corroborated: bigint
}

/** Other money of the ledger for the address in the same blocks as its unattributed money. */
export const receivedWith = (
  db: Db,
  { chain, mode }: Network,
  {
    address,
    blockHash,
    blockNumber,
    since = blockNumber
  }: Pick<Ledger.DatedTransfer, "address" | "blockHash" | "blockNumber" | "since">
) =>
  Effect.map(
    db.all<{ amount: string; corroborated: number }>(
      `SELECT amount, corroborated FROM receipts
       WHERE chain = ? AND mode = ? AND address = ? AND position NOT GLOB 'log:*' AND canonical = 1
         AND block_number BETWEEN ? AND ? AND NOT (position = 'unattributed' AND block_hash = ?)`,
      [chain, mode, address, since, blockNumber, blockHash]
    ),
    (rows): ReceivedWith => ({
      all: sum(rows.map(({ amount }) => BigInt(amount))),
      corroborated: sum(rows.flatMap(({ corroborated, amount }) => (corroborated === 1 ? [BigInt(amount)] : [])))
    })
  )

/** Sum of all coins that the ledger has for an address in blocks up to `number`. Wei. */
export const receivedUpTo = (db: Db, { chain, mode }: Network, address: string, number: number) =>
  Effect.map(
    db.all<{ amount: string }>(
      `SELECT amount FROM receipts
       WHERE chain = ? AND mode = ? AND address = ? AND position NOT GLOB 'log:*' AND canonical = 1 AND block_number <= ?`,
      [chain, mode, address, number]
    ),
    (rows) => sum(rows.map(({ amount }) => BigInt(amount)))
  )

/**
 * Removes a denied unattributed receipt from the ledger, and the stored balances that it explained. Gives the payment
 * concerned. Part of the money may be real: the payment is searched again before it ends.
 */
export const takeBack = (network: Network, receipt: UnshownReceipt) =>
  Effect.gen(function* () {
    const row = yield* (yield* Tx).get<{ touched: Ledger.Touched }>(
      `DELETE FROM receipts WHERE ${Ledger.isReceipt} AND amount = ? RETURNING ${Ledger.touchedSql} AS touched`,
      [...Ledger.paramsOf(network, receipt), receipt.amount.toString()]
    )
    if (row === undefined) return []
    yield* Balances.forget(network, receipt.address, receipt.since)
    yield* Searches.forget(network, row.touched)
    return [row.touched]
  })
