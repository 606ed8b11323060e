/** The SQL of repairs, apart from storing receipts, which is `LedgerRepo`'s. */
import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import { type Db, Tx } from "../../Sql.ts"
import type { ReceiptKey } from "../ledger/LedgerRepo.ts"

/** Reopens refuted receipts: they count until they are corroborated or refuted again. */
export const reopen = ({ chain, mode }: Network, receipts: ReadonlyArray<ReceiptKey>) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const { address, blockHash, position } of receipts) {
      yield* tx.run(
        `UPDATE receipts SET refuted = 0, denied_by = NULL
         WHERE chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position = ? AND refuted = 1`,
        [chain, mode, blockHash, address, position]
      )
    }
  })

/** Whether the ledger has one of the blocks with another hash. */
export const contradicts = (
  db: Db,
  { chain, mode }: Network,
  blocks: ReadonlyArray<{ readonly blockNumber: number; readonly blockHash: string }>
) =>
  Effect.gen(function* () {
    for (const { blockHash, blockNumber } of blocks) {
      const other = yield* db.get<{ found: number }>(
        "SELECT 1 AS found FROM blocks WHERE chain = ? AND mode = ? AND number = ? AND hash <> ?",
        [chain, mode, blockNumber, blockHash]
      )
      if (other !== undefined) return true
    }
    return false
  })
