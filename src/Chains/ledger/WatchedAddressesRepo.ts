/**
 * The SQL of watchers on the tables of payments and skipped addresses: which addresses to watch, whether a payment is open
 * or undone, and the changes of payments that follow from a chain's first head, its clock or a reorg.
 */
import { Clock, Effect } from "effect"
import { getAddress, type Hex } from "viem"
import { type ChainName, chainNames, type Mode, type Network } from "../../Domain/Chain.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import { deadlineSql } from "../../Domain/Payment.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { anyRow, type Db, execute, type StoreUnavailable } from "../../Sql.ts"
import type { AddressSet } from "./AddressSet.ts"

/** Rows in one query, so that a start with millions of payments holds only some thousands in memory. */
const page = 10_000

/** Calls `visit` with each address that `read` gives, page by page: it reads the rows after `last`. */
const visitPages = <Row extends { readonly address: string }>(
  read: (last: Row | undefined) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>,
  visit: (address: string) => void
) =>
  Effect.gen(function* () {
    let last: Row | undefined
    do {
      const rows = yield* read(last)
      for (const { address } of rows) visit(address)
      last = rows.length < page ? undefined : rows.at(-1)
    } while (last !== undefined)
  })

/**
 * Calls `visit` with each address of payments of a mode that ended in (after, until], Unix milliseconds, and with each
 * skipped address that is dated so, which a lost newer copy of the database may have handed out.
 */
export const visitEnded = (db: Db, mode: Mode, after: number, until: number, visit: (address: string) => void) => {
  const ended = (last = { ended_at: after, sequence: Number.MAX_SAFE_INTEGER }) =>
    db.all<{ address: string; ended_at: number; sequence: number }>(
      `SELECT address, ended_at, sequence FROM payments
       WHERE mode = ? AND ended_at IS NOT NULL AND (ended_at, sequence) > (?, ?) AND ended_at <= ?
       ORDER BY ended_at, sequence LIMIT ?`,
      [mode, last.ended_at, last.sequence, until, page]
    )
  const skipped = (last = { address: "" }) =>
    db.all<{ address: string }>(
      `SELECT address FROM gap_addresses
       WHERE mode = ? AND created_at > ? AND created_at <= ? AND address > ? ORDER BY address LIMIT ?`,
      [mode, after, until, last.address, page]
    )
  return Effect.zipRight(visitPages(ended, visit), visitPages(skipped, visit))
}

// The index starts with the chain: one seek for each.
const everyChain = `chain IN (${chainNames.map((name) => `'${name}'`).join(", ")})`

/** Calls `visit` with each address of open payments of a mode. */
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
 * The time by this machine's clock or, where that is ahead of all chains of the mode, by the newest of their heads, so
 * that a wrong clock does not end retention early. Unix milliseconds.
 */
export const timeOf = (db: Db, mode: Mode) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const newest = "SELECT max(head_time) AS time FROM scans WHERE mode = ?"
    const row = yield* db.get<{ time: number | null }>(newest, [mode])
    return row?.time == null ? now : Math.min(now, row.time * 1000)
  })

/** The chains on which a payment of the mode is open, or was until another choice for an invoice that still is. */
export const openChains = (db: Db, mode: Mode) =>
  Effect.map(
    db.all<{ chain: ChainName }>(
      `SELECT value AS chain FROM json_each(?) WHERE EXISTS (
         SELECT 1 FROM payments WHERE status IN ('pending', 'detecting') AND chain = value AND mode = ?)
       OR EXISTS (SELECT 1 FROM (SELECT id FROM invoices WHERE status = 'open' ORDER BY expires_at DESC LIMIT 500)
         AS one JOIN payments ON invoice_id = one.id AND chain = value AND mode = ?)`,
      [JSON.stringify(chainNames), mode, mode]
    ),
    (rows) => rows.map(({ chain }) => chain)
  )

/** Whether an open payment of the chain has money that is not final, or ends by `until`, Unix milliseconds. */
export const anyAwaited = (db: Db, { chain, mode }: Network, until: number) =>
  anyRow(
    db,
    `SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM payments WHERE status = 'detecting' AND chain = ? AND mode = ?)
       OR EXISTS (SELECT 1 FROM payments WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ?
         AND ${deadlineSql} <= ?)`,
    [chain, mode, chain, mode, until]
  )

/**
 * Whether a confirmed payment of the chain has lost a transaction to a reorg that is not on the new branch: in a block
 * above `final`, or, with `searches`, in one up to which no other provider was searched since.
 */
export const anyUndone = (db: Db, { chain, mode }: Network, final: number, searches: boolean) =>
  anyRow(
    db,
    `SELECT 1 AS found FROM receipts AS gone INDEXED BY receipts_orphaned
       WHERE canonical = 0 AND refuted = 0 AND listed = 'own' AND chain = ? AND mode = ?
         AND EXISTS (SELECT 1 FROM payments
           WHERE id = gone.payment_id AND status = 'confirmed' AND payments.chain = gone.chain)
         AND (block_number > ? OR ? = 1 AND NOT EXISTS (
           SELECT 1 FROM searches WHERE payment_id = gone.payment_id AND number >= gone.block_number))
         AND NOT EXISTS (SELECT 1 FROM receipts AS again
           WHERE again.payment_id = gone.payment_id AND again.listed = 'own' AND again.tx_hash = gone.tx_hash
             AND again.canonical = 1)
       LIMIT 1`,
    [chain, mode, final, Number(searches)]
  )

/** Whether an open payment of the chain ends between the times of the blocks `after` and `until`. */
export const anyOver = (db: Db, { chain, mode }: Network, after: BlockRef, until: BlockRef) =>
  anyRow(
    db,
    `SELECT 1 AS found FROM payments WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ?
         AND ${deadlineSql} >= ? AND ${deadlineSql} < ? LIMIT 1`,
    [chain, mode, after.time * 1000, until.time * 1000]
  )

/** The USD values, undefined where unknown, of detecting payments with receipts above `number` and up to `deep`. */
export const deepAbove = (db: Db, { chain, mode }: Network, number: number, deep: number) =>
  Effect.map(
    db.all<{ usd_value: string | null }>(
      `SELECT DISTINCT usd_value FROM payments WHERE status = 'detecting' AND chain = ? AND mode = ? AND EXISTS (
         SELECT 1 FROM receipts AS r WHERE r.payment_id = payments.id AND r.chain = payments.chain
           AND r.listed = 'own' AND r.canonical = 1 AND r.block_number > ? AND r.block_number <= ?)`,
      [chain, mode, number, deep]
    ),
    (rows) => rows.map((row) => row.usd_value ?? undefined)
  )

/**
 * When the oldest payment was made before any head of its chain was known, in Unix milliseconds; undefined where none
 * was. Counts open payments, and those that an operator has ended and whose address is still watched.
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

/** The number of the newest payment, 0 where there is none. */
export const lastPayment = (db: Db) =>
  Effect.map(db.get<{ last: number | null }>("SELECT max(sequence) AS last FROM payments"), (row) => row?.last ?? 0)

/**
 * Gives more time to payments that were made while the clock was behind the chain's head and this was not known yet: as
 * much as the clock is behind. The clock may have been set since, so a payment gets at most its own time from the head
 * on.
 *
 * @param after payments with a higher number count, and those made before the chain's first head
 * @param headTime Unix milliseconds, later than `now`
 */
export const extend = ({ chain, mode }: Network, after: number, headTime: number, now: number) =>
  execute(
    `UPDATE payments SET due_at = expires_at + min(? - ?, ? - created_at)
       WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ? AND due_at IS NULL
         AND (sequence > ? OR created_head IS NULL) AND created_at < ?`,
    [headTime, now, headTime, chain, mode, after, headTime]
  )

/** Lets payments made before the chain's first head count transfers above block `number`. */
export const startAt = ({ chain, mode }: Network, number: number) =>
  execute(
    `UPDATE payments SET created_head = ?
       WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ? AND created_head IS NULL`,
    [number, chain, mode]
  )

/**
 * Lowers the block from which payments count to `number`, after a reorg replaced the blocks above it. A payment made during
 * the old branch may be paid in a new block of the same or a lower number, which is still newer than the payment; so may one
 * that has ended since, as when it was cancelled.
 */
export const lowerTo = ({ chain, mode }: Network, number: number) =>
  execute(
    `UPDATE payments SET created_head = ?
       WHERE chain = ? AND mode = ? AND created_head > ?`,
    [number, chain, mode, number]
  )

/** Dates skipped addresses by the time of a chain's first head, where it is newer; Unix milliseconds. */
export const redateGaps = (mode: Mode, headTime: number) =>
  execute("UPDATE gap_addresses SET created_at = ? WHERE mode = ? AND created_at < ?", [headTime, mode, headTime])

/** The payment of an address that was handed out, and what it asks for; undefined where the payment is lost. */
export interface Owner {
  readonly payment: PaymentId | undefined
  /** The money that it asks for, and its floor in base units; undefined where it is lost. */
  readonly own: { readonly chain: ChainName; readonly currency: string; readonly floor: bigint } | undefined
  /** A token, with the contract that the payment was created with, lower case; undefined for coins. */
  readonly asks: { readonly chain: ChainName; readonly currency: string; readonly contract: string } | undefined
}

/**
 * The currency of a transfer, as its payment sees it. The contract that the payment was created with is its currency,
 * whatever the configuration says of it now, and no other contract of that symbol is.
 */
export const currencyFor = (
  { chain }: Network,
  { asks }: Pick<Owner, "asks">,
  { contract, currency }: { readonly contract?: string | undefined; readonly currency: string }
): string => {
  if (asks === undefined || contract === undefined || asks.chain !== chain) return currency
  if (contract === asks.contract) return asks.currency
  return currency === asks.currency ? contract : currency
}

interface OwnerRow {
  readonly payment: PaymentId | null
  readonly chain: ChainName | null
  readonly currency: string | null
  readonly contract: string | null
  readonly floor: string | null
}

/** The owners of those addresses that were ever handed out in the mode, by address as given. */
export const ownersOf = (db: Db, mode: Mode, addresses: Iterable<string>) =>
  Effect.gen(function* () {
    const owners = new Map<string, Owner>()
    for (const address of new Set(addresses)) {
      const checksummed = getAddress(address as Hex)
      const row = yield* db.get<OwnerRow>(
        `SELECT payments.id AS payment, payments.chain, currency, lower(contract) AS contract, floor
         FROM payments LEFT JOIN tokens ON tokens.id = token WHERE address = ? AND payments.mode = ?
         UNION ALL SELECT NULL, NULL, NULL, NULL, NULL FROM gap_addresses WHERE address = ? AND mode = ?`,
        [checksummed, mode, checksummed, mode]
      )
      if (row === undefined) continue
      const { chain, contract, currency, floor, payment } = row
      const own =
        chain === null || currency === null || floor === null ? undefined : { chain, currency, floor: BigInt(floor) }
      const asks =
        own === undefined || contract === null ? undefined : { chain: own.chain, currency: own.currency, contract }
      owners.set(address, { payment: payment ?? undefined, own, asks })
    }
    return owners
  })
