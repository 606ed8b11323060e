import { Clock, Effect } from "effect"
import { getAddress, type Hex } from "viem"
import type { Network } from "../Domain/Chain.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { BlockRef, Scan } from "../Domain/Receipt.ts"
import { type Db, Tx } from "../Sql.ts"
import type { Transfer } from "./transfers.ts"

interface ScanRow {
  readonly head_number: number
  readonly head_hash: string
  readonly head_time: number
}

/** How far the chain has been read; undefined before its first head is known. */
export const scan = (db: Db, { chain, mode }: Network) =>
  Effect.map(
    db.get<ScanRow>("SELECT head_number, head_hash, head_time FROM scans WHERE chain = ? AND mode = ?", [chain, mode]),
    (row): Scan | undefined =>
      row && { chain, mode, head: { number: row.head_number, hash: row.head_hash, time: row.head_time } }
  )

/** Fixes where reading starts: above `checkpoint`. What was fixed before stays. */
export const startScan = ({ chain, mode }: Network, checkpoint: BlockRef) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run(
      `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (chain, mode) DO NOTHING`,
      [chain, mode, checkpoint.number + 1, checkpoint.number, checkpoint.hash, checkpoint.time]
    )
  )

/** Every block up to `head` has been read. */
export const moveScan = ({ chain, mode }: Network, head: BlockRef) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run("UPDATE scans SET head_number = ?, head_hash = ?, head_time = ? WHERE chain = ? AND mode = ?", [
      head.number,
      head.hash,
      head.time,
      chain,
      mode
    ])
  )

/** Stored blocks below `number`, newest first. */
export const blocksBelow = (db: Db, { chain, mode }: Network, number: number, limit: number) =>
  db.all<BlockRef>(
    `SELECT number, hash, time FROM blocks WHERE chain = ? AND mode = ? AND number < ? ORDER BY number DESC LIMIT ?`,
    [chain, mode, number, limit]
  )

/** Keeps what a later reorg will be measured against. */
export const keepBlocks = ({ chain, mode }: Network, blocks: Iterable<BlockRef>) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const { hash, number, time } of blocks) {
      yield* tx.run(
        `INSERT INTO blocks (chain, mode, number, hash, time) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (chain, mode, number) DO UPDATE SET hash = excluded.hash, time = excluded.time`,
        [chain, mode, number, hash, time]
      )
    }
  })

/** Takes back every block above `number`. Gives the payments whose receipts no longer count. */
export const orphanAbove = ({ chain, mode }: Network, number: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    yield* tx.run("DELETE FROM blocks WHERE chain = ? AND mode = ? AND number > ?", [chain, mode, number])
    const rows = yield* tx.all<{ payment_id: string }>(
      `UPDATE receipts SET canonical = 0 WHERE chain = ? AND mode = ? AND block_number > ? AND canonical = 1
       RETURNING payment_id`,
      [chain, mode, number]
    )
    return rows.map((row) => row.payment_id as PaymentId)
  })

/** A transfer, with the time of its block. */
export interface DatedTransfer extends Transfer {
  /** Unix seconds. */
  readonly blockTime: number
}

/**
 * Stores transfers as receipts of the payments that own the addresses. One that is there already is only made canonical
 * again. An address that belongs to no payment is passed over. Gives the payments.
 */
export const keepReceipts = ({ chain, mode }: Network, transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const now = yield* Clock.currentTimeMillis
    const payments: Array<PaymentId> = []
    for (const transfer of transfers) {
      const owner = yield* tx.get<{ id: string }>("SELECT id FROM payments WHERE address = ? AND mode = ?", [
        getAddress(transfer.address as Hex),
        mode
      ])
      if (owner === undefined) continue
      yield* tx.run(
        `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
           amount, payment_id, canonical, seen_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)
         ON CONFLICT (chain, mode, block_hash, address, position) DO UPDATE SET canonical = 1`,
        [
          chain,
          mode,
          transfer.blockHash,
          transfer.address,
          transfer.position,
          transfer.blockNumber,
          transfer.blockTime,
          transfer.txHash,
          transfer.currency,
          transfer.amount.toString(),
          owner.id,
          now
        ]
      )
      payments.push(owner.id as PaymentId)
    }
    return payments
  })
