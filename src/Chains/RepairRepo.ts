import { Effect } from "effect"
import { getAddress, type Hex } from "viem"
import type { Mode, Network } from "../Domain/Chain.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import { type Db, Tx } from "../Sql.ts"
import type { DatedTransfer } from "./LedgerRepo.ts"

/** What repairs read and change of the ledger, besides storing receipts as everybody does. */

/** Whose an address is that was handed out in a mode: a payment's; undefined of one whose payment is lost. */
export interface Owner {
  readonly payment: PaymentId | undefined
}

/** Those of the addresses that were ever handed out in the mode, as they were given. */
export const ownersOf = (db: Db, mode: Mode, addresses: Iterable<string>) =>
  Effect.gen(function* () {
    const owners = new Map<string, Owner>()
    for (const address of new Set(addresses)) {
      const written = getAddress(address as Hex)
      const row = yield* db.get<{ payment: PaymentId | null }>(
        `SELECT id AS payment FROM payments WHERE address = ? AND mode = ?
         UNION ALL SELECT NULL FROM gap_addresses WHERE address = ? AND mode = ?`,
        [written, mode, written, mode]
      )
      if (row !== undefined) owners.set(address, { payment: row.payment ?? undefined })
    }
    return owners
  })

/** Whether one of the blocks is stored under another hash. */
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

interface UnattributedRow {
  readonly block_hash: string
  readonly amount: string
}

/**
 * Takes money out of the ledger that stands there without a transaction, as much as `transfer`, of the chain's coin and
 * not in the ledger yet, accounts for: storing the transfer then leaves the sum as it was.
 *
 * Such a row was seen at the end of an interval that begins with the balance known before: the transfer is part of it
 * when its block lies there.
 */
export const takeFromUnattributed = ({ chain, mode }: Network, transfer: DatedTransfer) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const { address, amount, blockNumber, currency } = transfer
    const owner = (yield* ownersOf(tx, mode, [address])).get(address)
    const row = yield* tx.get<UnattributedRow>(
      `SELECT block_hash, amount FROM receipts AS seen
       WHERE payment_id IS ? AND chain = ? AND mode = ? AND address = ? AND position = 'unattributed'
         AND currency = ? AND canonical = 1 AND block_number >= ?
         AND NOT EXISTS (
           SELECT 1 FROM balances AS known
           WHERE known.chain = seen.chain AND known.mode = seen.mode AND known.address = seen.address
             AND known.number >= ? AND known.number < seen.block_number)
       ORDER BY block_number LIMIT 1`,
      [owner?.payment ?? null, chain, mode, address, currency, blockNumber, blockNumber]
    )
    if (row === undefined) return
    const left = BigInt(row.amount) - amount
    const key = [chain, mode, row.block_hash, address]
    const where = "chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position = 'unattributed'"
    yield* left > 0n
      ? tx.run(`UPDATE receipts SET amount = ? WHERE ${where}`, [left.toString(), ...key])
      : tx.run(`DELETE FROM receipts WHERE ${where}`, key)
  })
