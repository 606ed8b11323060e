/**
 * What the configuration must not drop: the chains and tokens of open payments, and chains with undecided money, which
 * only one provider reports and no person has decided on. Without the chain it would be in no list.
 */
import { Effect } from "effect"
import { type Touched, touchedSql } from "../Chains/ledger/LedgerRepo.ts"
import type { Network } from "../Domain/Chain.ts"
import { allValues, Tx } from "../Sql.ts"

const isUndecided = `canonical = 1 AND corroborated = 0 AND listed IS NOT NULL AND tx_hash IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM payments WHERE id = receipts.payment_id AND status IN ('pending', 'detecting') AND chain = receipts.chain)
  AND NOT EXISTS (SELECT 1 FROM exceptions WHERE payment_id = receipts.payment_id AND chain = receipts.chain
    AND tx_hash = receipts.tx_hash AND closed_at IS NOT NULL)`

/** A requirement of payments on the configuration: a chain and, where they ask for one, a token there. */
export interface OpenNeed extends Network {
  /** Null for the chain's own coin, as is `contract`. */
  readonly symbol: string | null
  /** EIP-55 form. */
  readonly contract: string | null
  /** How many open payments ask for it. */
  readonly payments: number
  /** The id of the chain that has been read, in a need that is nothing else; null in others. */
  readonly chainId: number | null
  /** The decimals by which amounts of a token have been taken, where the configuration has others; null in other needs. */
  readonly decimals: number | null
  /** The ids of the payments, or the addresses of lost ones, with undecided money on the chain, as a JSON array; null where the need is another. */
  readonly undecided: string | null
}

/** SQL: every `OpenNeed`. Its parameter: the configured decimals of each symbol, see `decimalsNow`. */
export const selectOpenNeeds = `
  SELECT open.chain, open.mode, symbol, contract, payments, NULL AS chainId, NULL AS decimals, NULL AS undecided FROM (
    SELECT chain, mode, token, count(*) AS payments FROM payments WHERE status IN ('pending', 'detecting')
    GROUP BY chain, mode, token) AS open
  LEFT JOIN tokens ON id = token
  UNION ALL
  SELECT chain, mode, NULL, NULL, 0, chain_id, NULL, NULL FROM scans WHERE chain_id IS NOT NULL
  UNION ALL
  SELECT chain, mode, symbol, contract, 0, NULL, decimals, NULL FROM (
    SELECT *, (SELECT value ->> 'decimals' FROM json_each(?) WHERE value ->> 'chain' = tokens.chain
      AND value ->> 'mode' = tokens.mode AND value ->> 'symbol' = tokens.symbol) AS now FROM tokens) AS once
  WHERE CASE WHEN once.decimals <> now THEN EXISTS (SELECT 1 FROM payments WHERE token = once.id)
    OR EXISTS (SELECT 1 FROM receipts
      WHERE chain = once.chain AND mode = once.mode AND currency = once.symbol) ELSE 0 END
  UNION ALL
  SELECT chain, mode, NULL, NULL, 0, NULL, NULL, json_group_array(DISTINCT coalesce(payment_id, address)) FROM receipts WHERE ${isUndecided}
  GROUP BY chain, mode`

/** Drops a chain's undecided money, until a scan finds it again. Gives whom they concern. */
export const dropUndecided = ({ chain, mode }: Network) =>
  Effect.flatMap(Tx, (tx) =>
    allValues<Touched>(
      tx,
      `UPDATE receipts SET canonical = 0 WHERE chain = ? AND mode = ? AND ${isUndecided} RETURNING ${touchedSql}`,
      [chain, mode]
    )
  )
