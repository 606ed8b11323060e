/**
 * The table `searches`: which payments have been searched for money before they end, and up to which block.
 * `endingSearch.ts` reads what is due and records what it has searched; settlement ends a payment only once it is
 * there.
 */
import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import { deadlineSql } from "../../Domain/Payment.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import { type Db, execute, Tx } from "../../Sql.ts"
import type { Watched } from "../balances/discrepancy.ts"
import type { Touched } from "../ledger/LedgerRepo.ts"

/** Number of the block up to which a payment has been searched; undefined where it has not been. */
export const searchedTo = (db: Db, payment: PaymentId) =>
  Effect.map(
    db.get<{ number: number }>("SELECT number FROM searches WHERE payment_id = ?", [payment]),
    (row) => row?.number
  )

/** A payment that is about to end, with the address to search. */
export interface DuePayment extends Watched {
  readonly payment: PaymentId
  /** When its time ended, Unix milliseconds. */
  readonly deadline: number
}

const columns = `id AS payment, lower(address) AS address, currency, created_head AS createdHead, ${deadlineSql} AS deadline`

/**
 * Up to `limit` payments of the chain, other than `except`, that are to be searched before they end:
 * - open ones whose time had ended by `settled` and by the last balance round (`checked`), except where unattributed
 *   money is stored above `settled`: it may have arrived below it;
 * - confirmed ones that lost money to a reorg in blocks up to `final`.
 */
export const due = (
  db: Db,
  { chain, mode }: Network,
  settled: BlockRef,
  checked: Scan["checked"],
  final: number,
  except: ReadonlyArray<PaymentId>,
  limit: number
) =>
  Effect.map(
    db.all<Pick<DuePayment, "payment" | "deadline" | "address"> & { currency: string; createdHead: number | null }>(
      `SELECT * FROM (SELECT ${columns} FROM payments
       WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ? AND ${deadlineSql} < ?
         AND NOT EXISTS (SELECT 1 FROM searches WHERE payment_id = payments.id)
         AND NOT EXISTS (SELECT 1 FROM receipts
           WHERE payment_id = payments.id AND chain = payments.chain AND position = 'unattributed' AND canonical = 1
             AND block_number > ?)
       UNION ALL
       SELECT ${columns} FROM payments
       WHERE status = 'confirmed' AND chain = ? AND id IN (
         SELECT payment_id FROM receipts AS gone
         WHERE canonical = 0 AND refuted = 0 AND chain = ? AND mode = ? AND block_number <= ?
           AND NOT EXISTS (SELECT 1 FROM searches WHERE payment_id = gone.payment_id AND number >= gone.block_number)))
       WHERE payment NOT IN (SELECT value FROM json_each(?))
       LIMIT ?`,
      [
        chain,
        mode,
        Math.min(settled.time, checked?.time ?? 0) * 1000,
        settled.number,
        chain,
        chain,
        mode,
        Math.min(final, settled.number),
        JSON.stringify(except),
        limit
      ]
    ),
    (rows) =>
      rows.map(
        ({ address, createdHead, currency, deadline, payment }): DuePayment => ({
          ...{ payment, deadline, address, own: true, createdHead: createdHead ?? undefined, everyRound: false },
          // Coins that arrived and were collected since leave the balance as it was; the nonce shows them.
          withNonce: currency === nativeToken(chain)
        })
      )
  )

/** Records that the payments have been searched up to the block `number`. */
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

/** Has a payment searched again before it ends. */
export const forget = ({ chain, mode }: Network, payment: Touched) =>
  execute("DELETE FROM searches WHERE payment_id = ? AND chain = ? AND mode = ?", [...[payment ?? null, chain, mode]])
