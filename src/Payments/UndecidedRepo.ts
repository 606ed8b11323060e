/**
 * Money on a chain that only one of its providers reports, and that something waits for: a payment that is open on another
 * chain, or an open exception. Where the chain is given up, nobody would decide on it any more.
 */
import { Effect } from "effect"
import type { Network } from "../Domain/Chain.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import { type Db, Tx } from "../Sql.ts"

const isUndecided = `canonical = 1 AND corroborated = 0 AND dust IS NULL AND tx_hash IS NOT NULL AND (
  EXISTS (SELECT 1 FROM payments
    WHERE id = receipts.payment_id AND status IN ('pending', 'detecting') AND chain <> receipts.chain)
  OR EXISTS (SELECT 1 FROM exceptions
    WHERE payment_id = receipts.payment_id AND closed_at IS NULL AND kind = 'unattributed' AND chain = receipts.chain
      AND tx_hash = receipts.tx_hash))`

/** The payments whose undecided money it is, by network; networks without any are left out. */
export const byNetwork = (db: Db) =>
  Effect.map(
    db.all<Network & { readonly payments: string }>(
      `SELECT chain, mode, json_group_array(DISTINCT payment_id) AS payments FROM receipts WHERE ${isUndecided}
       GROUP BY chain, mode`
    ),
    (rows) => rows.map((row) => ({ ...row, payments: JSON.parse(row.payments) as ReadonlyArray<PaymentId> }))
  )

/** Lets it count no more on one chain. Gives the payment of each receipt. A scan that finds it again brings it back. */
export const drop = ({ chain, mode }: Network) =>
  Effect.flatMap(Tx, (tx) =>
    Effect.map(
      tx.all<{ readonly payment_id: PaymentId }>(
        `UPDATE receipts SET canonical = 0 WHERE chain = ? AND mode = ? AND ${isUndecided} RETURNING payment_id`,
        [chain, mode]
      ),
      (rows) => rows.map((row) => row.payment_id)
    )
  )
