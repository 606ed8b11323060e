import { Clock, Effect } from "effect"
import { getAddress, type Hex } from "viem"
import { type ChainName, chainNames, type Mode, type Network } from "../../Domain/Chain.ts"
import { dueTimeSql, overBefore } from "../../Domain/deadline.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type Db, Tx } from "../../Sql.ts"
import type { AddressSet } from "./AddressSet.ts"

/** What the watchers need to know of payments: which addresses to look for, and whether anybody waits. */

/** Rows read at once, so that a start over millions of payments holds a few thousand at a time. */
const page = 10_000

interface AddressRow {
  readonly address: string
  readonly ended_at: number
  readonly sequence: number
}

/** Addresses of payments of a mode that ended in (after, until], Unix ms; `visit` is called for each. */
export const visitEnded = (db: Db, mode: Mode, after: number, until: number, visit: (address: string) => void) =>
  Effect.gen(function* () {
    let last = { ended_at: after, sequence: Number.MAX_SAFE_INTEGER }
    while (true) {
      const rows = yield* db.all<AddressRow>(
        `SELECT address, ended_at, sequence FROM payments
         WHERE mode = ? AND ended_at IS NOT NULL AND (ended_at, sequence) > (?, ?) AND ended_at <= ?
         ORDER BY ended_at, sequence LIMIT ?`,
        [mode, last.ended_at, last.sequence, until, page]
      )
      for (const { address } of rows) visit(address)
      const end = rows.at(-1)
      if (end === undefined || rows.length < page) return
      last = end
    }
  })

// One seek a chain: the index starts with it.
const everyChain = `chain IN (${chainNames.map((name) => `'${name}'`).join(", ")})`

/** Addresses of all open payments of a mode. */
export const visitOpen = (db: Db, mode: Mode, visit: (address: string) => void) =>
  Effect.map(
    db.all<{ address: string }>(
      `SELECT address FROM payments WHERE status IN ('pending', 'detecting') AND ${everyChain} AND mode = ?`,
      [mode]
    ),
    (rows) => {
      for (const { address } of rows) visit(address)
    }
  )

/**
 * Addresses of a mode that a lost newer copy of the database may have handed out, by when they were found missing: in
 * (after, until], Unix ms.
 */
export const visitGaps = (db: Db, mode: Mode, after: number, until: number, visit: (address: string) => void) =>
  Effect.gen(function* () {
    let last = ""
    while (true) {
      const rows = yield* db.all<{ address: string }>(
        `SELECT address FROM gap_addresses
         WHERE mode = ? AND created_at > ? AND created_at <= ? AND address > ? ORDER BY address LIMIT ?`,
        [mode, after, until, last, page]
      )
      for (const { address } of rows) visit(address)
      const end = rows.at(-1)
      if (end === undefined || rows.length < page) return
      last = end.address
    }
  })

/**
 * The time by this machine's clock or, where that is ahead of all chains that the mode reads, by the newest of their heads:
 * what is kept for a time is not dropped by a clock that is wrong. Unix milliseconds.
 */
export const timeOf = (db: Db, mode: Mode) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const row = yield* db.get<{ time: number | null }>("SELECT max(head_time) AS time FROM scans WHERE mode = ?", [
      mode
    ])
    const time = row?.time ?? undefined
    return time === undefined ? now : Math.min(now, time * 1000)
  })

/** The chains on which a payment of the mode is open. */
export const openChains = (db: Db, mode: Mode) =>
  Effect.map(
    db.all<{ chain: ChainName }>(
      `SELECT value AS chain FROM json_each(?) WHERE EXISTS (
         SELECT 1 FROM payments WHERE status IN ('pending', 'detecting') AND chain = value AND mode = ?)`,
      [JSON.stringify(chainNames), mode]
    ),
    (rows) => rows.map(({ chain }) => chain)
  )

/**
 * Whether a confirmed payment of the chain has lost a transaction to a reorg, in a block above `above`, that is not there
 * again and that no other provider has been asked about since: it fails, or stays, once the new branch is final. Dust, of
 * which there may be any number, is left out.
 */
export const anyUndone = (db: Db, { chain, mode }: Network, above: number) =>
  Effect.map(
    db.get<{ found: number }>(
      `SELECT 1 AS found FROM receipts AS gone
       WHERE canonical = 0 AND refuted = 0 AND dust IS NULL AND chain = ? AND mode = ? AND block_number > ?
         AND EXISTS (SELECT 1 FROM payments
           WHERE id = gone.payment_id AND status = 'confirmed' AND payments.chain = gone.chain)
         AND NOT EXISTS (SELECT 1 FROM searches WHERE payment_id = gone.payment_id AND number >= gone.block_number)
         AND NOT EXISTS (SELECT 1 FROM receipts AS again
           WHERE again.payment_id = gone.payment_id AND again.dust IS NULL AND again.tx_hash = gone.tx_hash
             AND again.canonical = 1)
       LIMIT 1`,
      [chain, mode, above]
    ),
    (row) => row !== undefined
  )

/** Whether the time of one of the chain's open payments ends after the block `after` and before `until`. */
export const anyOver = (db: Db, { chain, mode }: Network, after: BlockRef, until: BlockRef, settleGraceMs: number) =>
  Effect.map(
    db.get<{ found: number }>(
      `SELECT 1 AS found FROM payments WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ?
         AND ${dueTimeSql} >= ? AND ${dueTimeSql} < ? LIMIT 1`,
      [chain, mode, overBefore(after.time, settleGraceMs), overBefore(until.time, settleGraceMs)]
    ),
    (row) => row !== undefined
  )

/** The USD values of detecting payments, where known, that have a receipt in the blocks above `number` up to `deep`. */
export const deepAbove = (db: Db, { chain, mode }: Network, number: number, deep: number) =>
  Effect.map(
    db.all<{ usd_value: string | null }>(
      `SELECT DISTINCT usd_value FROM payments WHERE status = 'detecting' AND chain = ? AND mode = ? AND (EXISTS (
         SELECT 1 FROM receipts AS r WHERE r.payment_id = payments.id AND r.chain = payments.chain
           AND r.dust IS NULL AND r.canonical = 1 AND r.block_number > ? AND r.block_number <= ?)
         OR EXISTS (SELECT 1 FROM dust_sums AS d WHERE d.payment_id = payments.id AND d.chain = payments.chain
           AND d.transfers > 0 AND d.newest_number > ? AND d.newest_number <= ?))`,
      [chain, mode, number, deep, number, deep]
    ),
    (rows) => rows.map((row) => row.usd_value ?? undefined)
  )

/**
 * When the oldest payment was made that no head of its chain was known to, in Unix milliseconds: of the open ones, and of
 * those that an operator has ended and whose address is still watched.
 */
export const oldestUnplaced = (db: Db, { chain, mode }: Network, watched: AddressSet) =>
  Effect.map(
    db.all<{ address: string; created_at: number; ended_at: number | null }>(
      "SELECT address, created_at, ended_at FROM payments WHERE chain = ? AND mode = ? AND created_head IS NULL",
      [chain, mode]
    ),
    (rows) =>
      rows
        .filter(({ address, ended_at }) => ended_at === null || watched.has(address))
        .reduce<number | undefined>((oldest, { created_at }) => Math.min(oldest ?? created_at, created_at), undefined)
  )

/** The number of the payment that was made last, 0 where there is none. */
export const lastPayment = (db: Db) =>
  Effect.map(db.get<{ last: number | null }>("SELECT max(sequence) AS last FROM payments"), (row) => row?.last ?? 0)

/**
 * Payments of a chain that were made after that one, or while no head of the chain was known, have as much more time as the
 * clock is behind the chain's head: the clock that they were made by was behind, and nobody knew. It may have been set since:
 * no payment was made later than the head that was read now, and none needs more than its own time from there.
 *
 * @param headTime Unix milliseconds, later than `now`
 */
export const extend = ({ chain, mode }: Network, after: number, headTime: number, now: number) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run(
      `UPDATE payments SET due_at = expires_at + min(? - ?, ? - created_at)
       WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ? AND due_at IS NULL
         AND (sequence > ? OR created_head IS NULL) AND created_at < ?`,
      [headTime, now, headTime, chain, mode, after, headTime]
    )
  )

/** The chain's first head is known: payments made before it count what comes above `number`. */
export const startAt = ({ chain, mode }: Network, number: number) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run(
      `UPDATE payments SET created_head = ?
       WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ? AND created_head IS NULL`,
      [number, chain, mode]
    )
  )

/**
 * The blocks above `number` were replaced, and their receipts do not count any more. A payment made while the old ones were
 * the chain's may be paid in a new one with the same number, which is newer than the payment all the same; and so may one
 * that had ended and has lost money with them.
 */
export const lowerTo = ({ chain, mode }: Network, number: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const lower = "UPDATE payments SET created_head = ? WHERE chain = ? AND mode = ? AND created_head > ?"
    const params = [number, chain, mode, number]
    yield* tx.run(`${lower} AND status IN ('pending', 'detecting')`, params)
    yield* tx.run(
      `${lower} AND id IN (SELECT payment_id FROM receipts
         WHERE chain = ? AND mode = ? AND canonical = 0 AND block_number > ?)`,
      [...params, chain, mode, number]
    )
  })

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
