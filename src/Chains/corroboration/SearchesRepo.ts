import { Effect } from "effect"
import type { ChainName, Network } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import { dueTimeSql, overBefore } from "../../Domain/deadline.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import { type Db, Tx } from "../../Sql.ts"
import type { Watched } from "../balances/balanceQuery.ts"

// Which payments a second provider has been asked about before they end.

/** The block up to which a second provider has been asked about a payment. */
export const searchedTo = (db: Db, payment: PaymentId) =>
  Effect.map(
    db.get<{ number: number }>("SELECT number FROM searches WHERE payment_id = ?", [payment]),
    (row) => row?.number
  )

interface DueRow {
  readonly id: PaymentId
  readonly address: string
  readonly chain: ChainName
  readonly currency: string
  readonly created_head: number | null
  readonly due_at: number
}

/** A payment that is to end, and what of it is asked about. */
export interface Due extends Watched {
  readonly payment: PaymentId
  /** When its time was over, without the grace; Unix milliseconds. */
  readonly dueAt: number
}

/**
 * A page of the chain's payments that another provider is to be asked about before they end: the open ones whose time was
 * over by `settled` and by the last round of balances, but for those whose money above it may have come below; and
 * confirmed ones that a reorg took money from in blocks up to `final`.
 */
export const due = (
  db: Db,
  { chain, mode }: Network,
  settled: BlockRef,
  checked: Scan["checked"],
  settleGraceMs: number,
  final: number,
  limit: number
) =>
  Effect.map(
    db.all<DueRow>(
      `SELECT id, address, chain, currency, created_head, ${dueTimeSql} AS due_at FROM payments
       WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ? AND ${dueTimeSql} < ?
         AND NOT EXISTS (SELECT 1 FROM searches WHERE payment_id = payments.id)
         AND NOT EXISTS (SELECT 1 FROM receipts
           WHERE payment_id = payments.id AND position = 'unattributed' AND canonical = 1 AND block_number > ?)
       UNION ALL
       SELECT id, address, chain, currency, created_head, ${dueTimeSql} AS due_at FROM payments
       WHERE status = 'confirmed' AND chain = ? AND id IN (
         SELECT payment_id FROM receipts AS gone
         WHERE canonical = 0 AND refuted = 0 AND chain = ? AND mode = ? AND block_number <= ?
           AND NOT EXISTS (SELECT 1 FROM searches WHERE payment_id = gone.payment_id AND number >= gone.block_number))
       LIMIT ?`,
      [
        chain,
        mode,
        overBefore(Math.min(settled.time, checked?.time ?? 0), settleGraceMs),
        settled.number,
        chain,
        chain,
        mode,
        Math.min(final, settled.number),
        limit
      ]
    ),
    (rows) =>
      rows.map(
        (row): Due => ({
          payment: row.id,
          dueAt: row.due_at,
          address: row.address.toLowerCase(),
          own: true,
          createdHead: row.created_head ?? undefined,
          everyRound: false,
          // What came and was collected again leaves the balance as it was.
          withNonce: row.currency === nativeToken(chain)
        })
      )
  )

/** Another provider has been asked about the payments, up to the block `number`. */
export const keep = ({ chain, mode }: Network, payments: ReadonlyArray<PaymentId>, number: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const payment of payments) {
      yield* tx.run(
        `INSERT INTO searches (payment_id, chain, mode, number) VALUES (?, ?, ?, ?)
         ON CONFLICT (payment_id) DO UPDATE SET number = excluded.number`,
        [payment, chain, mode, number]
      )
    }
  })

/** Another provider is to be asked about a payment once more before it ends. */
export const forget = ({ chain, mode }: Network, payment: string | null) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run("DELETE FROM searches WHERE payment_id = ? AND chain = ? AND mode = ?", [payment, chain, mode])
  )
