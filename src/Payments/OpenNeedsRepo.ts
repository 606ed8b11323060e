/**
 * What the configuration must not drop: the chains and tokens of open payments, and chains with undecided money. That is
 * money that only one of a chain's providers reports, and that something waits for: a payment that is open on another chain,
 * or an open exception. Where the chain is given up, nobody would decide on it any more.
 */
import { Effect } from "effect"
import type { Network } from "../Domain/Chain.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import { Tx } from "../Sql.ts"

const isUndecided = `canonical = 1 AND corroborated = 0 AND dust IS NULL AND tx_hash IS NOT NULL AND (
  EXISTS (SELECT 1 FROM payments
    WHERE id = receipts.payment_id AND status IN ('pending', 'detecting') AND chain <> receipts.chain)
  OR EXISTS (SELECT 1 FROM exceptions
    WHERE payment_id = receipts.payment_id AND closed_at IS NULL AND kind = 'unattributed' AND chain = receipts.chain
      AND tx_hash = receipts.tx_hash))`

/** What some payments need of the configuration: a chain and, where they ask for one, a token there. */
export interface OpenNeed extends Network {
  /** Null for the chain's own coin, as is `contract`. */
  readonly symbol: string | null
  /** EIP-55 form. */
  readonly contract: string | null
  /** How many open payments ask for it. */
  readonly payments: number
  /** The ids of the payments with undecided money on the chain, as a JSON array; null where the need is another. */
  readonly undecided: string | null
}

/** SQL: every `OpenNeed`. */
export const selectOpenNeeds = `
  SELECT open.chain, open.mode, symbol, contract, payments, NULL AS undecided FROM (
    SELECT chain, mode, token, count(*) AS payments FROM payments WHERE status IN ('pending', 'detecting')
    GROUP BY chain, mode, token) AS open
  LEFT JOIN tokens ON id = token
  UNION ALL
  SELECT chain, mode, NULL, NULL, 0, json_group_array(DISTINCT payment_id) FROM receipts WHERE ${isUndecided}
  GROUP BY chain, mode`

/** Lets undecided money of a chain count no more. Gives the payment of each receipt. A scan that finds it brings it back. */
export const dropUndecided = ({ chain, mode }: Network) =>
  Effect.flatMap(Tx, (tx) =>
    Effect.map(
      tx.all<{ readonly payment_id: PaymentId }>(
        `UPDATE receipts SET canonical = 0 WHERE chain = ? AND mode = ? AND ${isUndecided} RETURNING payment_id`,
        [chain, mode]
      ),
      (rows) => rows.map((row) => row.payment_id)
    )
  )
