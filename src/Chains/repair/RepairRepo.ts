/**
 * The SQL of repairs, except storing receipts (`LedgerRepo`), and of skipped addresses: those that a lost copy of the
 * database may have handed out, and which of them have been searched.
 */
import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import { type Db, Tx } from "../../Sql.ts"
import { isReceipt, paramsOf, type ReceiptKey } from "../ledger/LedgerRepo.ts"

/** Reopens refuted receipts: they count until they are corroborated or refuted again. */
export const reopen = (network: Network, receipts: ReadonlyArray<ReceiptKey>) =>
  Effect.flatMap(Tx, (tx) =>
    tx.runEach(
      `UPDATE receipts SET refuted = 0, denied_by = NULL WHERE ${isReceipt} AND refuted = 1`,
      receipts.map((receipt) => paramsOf(network, receipt))
    )
  )

/** The block that a transaction was reported in, on the chain's branch; refuted receipts count. */
export const reportedBlock = (db: Db, { chain, mode }: Network, txHash: string) =>
  Effect.map(
    db.all<{ blockHash: string; blockNumber: number }>(
      `SELECT block_hash AS blockHash, block_number AS blockNumber FROM receipts
       WHERE chain = ? AND mode = ? AND tx_hash = ? AND (canonical = 1 OR refuted = 1) LIMIT 1`,
      [chain, mode, txHash]
    ),
    ([row]) => row
  )

/** Skipped addresses not yet searched on a network for money from before they were watched; in EIP-55 form. */
export const unsearched = (db: Db, { chain, mode }: Network, limit: number) =>
  Effect.map(
    db.all<{ address: string }>(
      `SELECT address FROM gap_addresses WHERE mode = ? AND NOT EXISTS (
         SELECT 1 FROM gap_looks AS l WHERE l.chain = ? AND l.address = gap_addresses.address)
       ORDER BY address LIMIT ?`,
      [mode, chain, limit]
    ),
    (rows) => rows.map(({ address }) => address)
  )

/** Records that the addresses have been searched on the network. */
export const setSearched = ({ chain }: Network, addresses: ReadonlyArray<string>) =>
  Effect.flatMap(Tx, (tx) =>
    tx.runEach(
      "INSERT INTO gap_looks (chain, address) VALUES (?, ?) ON CONFLICT DO NOTHING",
      addresses.map((address) => [chain, address])
    )
  )
