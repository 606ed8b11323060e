/**
 * Corrections of native income in the ledger: an attributed transfer reduces the unattributed receipt that it was part
 * of, and claimed receipts never add up to more than the balances show. The search before a payment ends, `tilld rescan`
 * and `tilld claim` call it; writes need the `Tx` of a command of the writer.
 */
import { Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import type { Network } from "../../Domain/Chain.ts"
import { type Db, execute, Tx } from "../../Sql.ts"
import { type DatedTransfer, isReceipt, paramsOf, type ReceiptKey } from "../ledger/LedgerRepo.ts"
import { ownersOf } from "../ledger/WatchedAddressesRepo.ts"

/** Reduces the amount of a receipt, wei, or deletes it where nothing is left. */
const reduceTo = (network: Network, receipt: ReceiptKey, left: bigint) =>
  left > 0n
    ? execute(`UPDATE receipts SET amount = ? WHERE ${isReceipt}`, [left.toString(), ...paramsOf(network, receipt)])
    : execute(`DELETE FROM receipts WHERE ${isReceipt}`, paramsOf(network, receipt))

/**
 * Reduces the unattributed receipt that `transfer`, in the chain's coin and not stored yet, is part of, by its amount:
 * storing the transfer then leaves the sum unchanged. It is part of one whose blocks, from the first one (`since_number`)
 * up to its own, include the transfer's.
 *
 * @param above only receipts of blocks above this one: the transfer is not part of those below
 */
export const takeFromUnattributed = (network: Network, transfer: DatedTransfer, above = transfer.blockNumber - 1) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const { chain, mode } = network
    const { address, amount, blockNumber, currency } = transfer
    const owner = (yield* ownersOf(tx, mode, [address])).get(address)
    const row = yield* tx.get<{ blockHash: string; amount: string }>(
      `SELECT block_hash AS blockHash, amount FROM receipts
       WHERE payment_id IS NOT DISTINCT FROM ? AND listed IN ('own', 'stray') AND chain = ? AND mode = ? AND address = ? AND position = 'unattributed'
         AND currency = ? AND canonical = 1 AND block_number > ? AND coalesce(since_number, block_number) <= ?
       ORDER BY block_number LIMIT 1`,
      [owner?.payment ?? null, chain, mode, address, currency, above, blockNumber]
    )
    if (row === undefined) return
    const key = { blockHash: row.blockHash, address, position: "unattributed" }
    yield* reduceTo(network, key, BigInt(row.amount) - amount)
  })

/** All income of an address in the chain's coin, in blocks above `after` up to and including `upTo`. */
interface AddressIncome {
  /** Lower case. */
  readonly address: string
  readonly after: number
  readonly upTo: number
  /** Wei. */
  readonly amount: bigint
}

/**
 * The income between the stored balance points around a block: the last one below it and the first at or above it.
 * Undefined unless both exist, or where the address has spent.
 */
export const incomeAround = (db: Db, { chain, mode }: Network, address: string, number: number) =>
  Effect.gen(function* () {
    const point = (which: string) =>
      db.get<{ number: number; balance: string; nonce: number }>(
        `SELECT number, balance, nonce FROM balances
         WHERE chain = ? AND mode = ? AND address = ? AND number ${which} LIMIT 1`,
        [chain, mode, address, number]
      )
    const lo = yield* point("< ? ORDER BY number DESC")
    const hi = yield* point(">= ? ORDER BY number")
    if (lo === undefined || hi === undefined || lo.nonce !== hi.nonce) return undefined
    const amount = BigInt(hi.balance) - BigInt(lo.balance)
    return { address, after: lo.number, upTo: hi.number, amount } satisfies AddressIncome
  })

/** A receipt of an income that has a transaction. */
export interface IncomePart extends Pick<DatedTransfer, "blockHash" | "position" | "amount"> {
  readonly txHash: string
}

/** The most that the ledger may have of an address's income, and what some transactions really transferred. */
export interface IncomeBound extends AddressIncome {
  readonly transferred: ReadonlyArray<IncomePart>
}

/** The receipts of an address's income that have a transaction. Unattributed money may be from earlier blocks. */
export const partsOf = (db: Db, { chain, mode }: Network, { address, after, upTo }: Omit<AddressIncome, "amount">) =>
  Effect.map(
    db.all<Omit<IncomePart, "amount"> & { readonly amount: string }>(
      `SELECT block_hash AS blockHash, position, tx_hash AS txHash, amount FROM receipts
       WHERE chain = ? AND mode = ? AND address = ? AND position NOT GLOB 'log:*' AND canonical = 1
         AND tx_hash IS NOT NULL AND block_number > ? AND block_number <= ?`,
      [chain, mode, address, after, upTo]
    ),
    (rows) => rows.map((row): IncomePart => ({ ...row, amount: BigInt(row.amount) }))
  )

/**
 * Reduces receipts with more than their transactions transferred until the ledger has no more than the income of the
 * bound. Returns the excess that is left, wei; zero or below when there is none.
 */
export const keepWithin = (network: Network, bound: IncomeBound) =>
  Effect.gen(function* () {
    const parts = yield* partsOf(yield* Tx, network, bound)
    let excess = sum(parts.map(({ amount }) => amount)) - bound.amount
    for (const { amount, blockHash, position } of parts) {
      const really = bound.transferred.find((part) => part.blockHash === blockHash && part.position === position)
      if (excess <= 0n) break
      if (really === undefined || amount <= really.amount) continue
      const left = excess < amount - really.amount ? amount - excess : really.amount
      excess -= amount - left
      yield* reduceTo(network, { blockHash, address: bound.address, position }, left)
    }
    return excess
  })
