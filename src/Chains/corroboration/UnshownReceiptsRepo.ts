import { Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import type { Network } from "../../Domain/Chain.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import { type Db, Tx } from "../../Sql.ts"
import * as Balances from "../balances/BalancesRepo.ts"
import type * as Ledger from "../ledger/LedgerRepo.ts"
import * as Searches from "./SearchesRepo.ts"

/** An unattributed receipt that no second provider's balances have been found to show. */
export interface UnshownReceipt extends Ledger.ReceiptKey {
  readonly blockNumber: number
  /** Unix seconds. */
  readonly blockTime: number
  readonly since: number
  /** Wei. */
  readonly amount: bigint
}

interface DoubtfulRow {
  readonly block_hash: string
  readonly address: string
  readonly position: string
  readonly block_number: number
  readonly block_time: number
  readonly since: number
  readonly amount: string
}

/** The newest of them. */
export const unshown = (db: Db, { chain, mode }: Network, limit: number) =>
  Effect.map(
    db.all<DoubtfulRow>(
      `SELECT block_hash, address, position, block_number, block_time, coalesce(since_number, block_number) AS since, amount
       FROM receipts
       WHERE chain = ? AND mode = ? AND canonical = 1 AND corroborated = 0 AND position = 'unattributed'
       ORDER BY block_number DESC LIMIT ?`,
      [chain, mode, limit]
    ),
    (rows) =>
      rows.map(
        (row): UnshownReceipt => ({
          blockHash: row.block_hash,
          address: row.address,
          position: row.position,
          blockNumber: row.block_number,
          blockTime: row.block_time,
          since: row.since,
          amount: BigInt(row.amount)
        })
      )
  )

/** Whether its payment is about to end: providers have been asked what they know of it. */
export const isSearched = (db: Db, { chain, mode }: Network, { address, blockHash, position }: Ledger.ReceiptKey) =>
  Effect.map(
    db.get(
      `SELECT 1 FROM searches WHERE payment_id = (SELECT payment_id FROM receipts
         WHERE chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position = ?)`,
      [chain, mode, blockHash, address, position]
    ),
    (row) => row !== undefined
  )

/**
 * Marks unattributed receipts as shown by two providers. Those of payments that have ended stay as they are: they tell what
 * the end did not count.
 */
export const setShown = (
  { chain, mode }: Network,
  { address, amount, blockHash }: Pick<UnshownReceipt, "address" | "amount" | "blockHash">
) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run(
      `UPDATE receipts SET corroborated = 1
       WHERE chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position = 'unattributed' AND amount = ?
         AND NOT EXISTS (SELECT 1 FROM payments WHERE id = payment_id AND ended_at IS NOT NULL)`,
      [chain, mode, blockHash, address, amount.toString()]
    )
  )

/** Wei of coins that came with the same blocks as some unattributed money, and how much of it two providers have. */
export interface ReceivedWith {
  readonly all: bigint
  readonly corroborated: bigint
}

/** What the ledger has of an address beside its unattributed money. */
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

/** Wei of all coins that the ledger has of an address in blocks up to `number`. */
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
 * Takes an unattributed receipt that is denied out of the ledger, with what its balances were kept for. Gives whose it was.
 * A part of it may be real: before its payment ends, providers are asked once more.
 */
export const takeBack = (network: Network, { address, amount, blockHash, since }: UnshownReceipt) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const row = yield* tx.get<{ payment_id: PaymentId | null }>(
      `DELETE FROM receipts
       WHERE chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position = 'unattributed' AND amount = ?
       RETURNING payment_id`,
      [network.chain, network.mode, blockHash, address, amount.toString()]
    )
    if (row === undefined) return []
    yield* Balances.forget(network, address, since)
    yield* Searches.forget(network, row.payment_id)
    return [row.payment_id ?? undefined] satisfies ReadonlyArray<Ledger.Touched>
  })
