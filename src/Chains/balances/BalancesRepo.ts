/**
 * The tables of balance reconciliation: which addresses a round, a reorg or a page of ended payments has to compare,
 * with what the ledger has of them; and the balance points that later rounds start from (`balances`), the unattributed
 * receipts that attributed ones replace, and how far all payments have been compared (`scans.checked_*`). Queries take
 * any connection; writes need the `Tx` of a command of the writer.
 */
import { Array as Arr, Effect } from "effect"
import { type ChainName, chainNames, type Network } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import { blockTimeLag, deadlineSql } from "../../Domain/Payment.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import { anyRow, type Db, execute, type Param, Tx } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import {
  type BalanceQuery,
  balanceQueryOf,
  type CreditRow,
  type KnownRow,
  type RoundBounds,
  type Watched
} from "./discrepancy.ts"
import type { BalanceRow } from "./reconcile.ts"

/** Addresses in one query. */
const addressesPerQuery = 1000

// The index starts with the chain, so a condition on it makes one seek per chain instead of a scan.
const everyChain = `chain IN (${chainNames.map((name) => `'${name}'`).join(", ")})`
const isOpen = "status IN ('pending', 'detecting')"
const isCoin = "position NOT GLOB 'log:*'"

interface PaymentRow {
  readonly address: string
  readonly chain: ChainName
  readonly currency: string
  readonly createdHead: number | null
  readonly deadline: number
  readonly status: string
  readonly amount: string
  readonly amountReceived: string | null
  readonly floor: string
  readonly endedAt: number | null
  readonly sequence: number
}

/** The queries of the addresses, from receipts of blocks up to `upTo` and points of blocks up to `pointsUpTo`. */
const queriesOf = Effect.fnUntraced(function* (
  db: Db,
  { chain, mode }: Network,
  watched: ReadonlyArray<Watched>,
  since?: RoundBounds,
  upTo = Number.MAX_SAFE_INTEGER,
  pointsUpTo = upTo
) {
  const queries: Array<BalanceQuery> = []
  for (const part of Arr.chunksOf(watched, addressesPerQuery)) {
    const addresses = JSON.stringify(part.map(({ address }) => address))
    const points = yield* db.all<KnownRow>(
      `SELECT address, number, balance, nonce FROM balances
       WHERE chain = ? AND mode = ? AND address IN (SELECT value FROM json_each(?)) AND number <= ?
       ORDER BY address, number`,
      [chain, mode, addresses, pointsUpTo]
    )
    const receipts = yield* db.all<CreditRow>(
      `SELECT address, block_number AS blockNumber, block_hash AS blockHash, block_time AS blockTime, position, amount
       FROM receipts
       WHERE chain = ? AND mode = ? AND ${isCoin} AND canonical = 1
         AND address IN (SELECT value FROM json_each(?)) AND block_number <= ?
       ORDER BY address, block_number`,
      [chain, mode, addresses, upTo]
    )
    const pointsOf = Arr.groupBy(points, ({ address }) => address)
    const receiptsOf = Arr.groupBy(receipts, ({ address }) => address)
    for (const one of part) {
      queries.push(balanceQueryOf(one, since, pointsOf[one.address] ?? [], receiptsOf[one.address] ?? []))
    }
  }
  return queries
})

/**
 * Columns of a payment. `createdHead` is the block after which money is the payment's on the network that is asked. For
 * a payment of another chain: the newest stored block that was certainly there before it was created, else the first
 * one, whose balance would be taken for older money. Parameters: the network's chain, then its chain and mode, twice.
 */
const columns = `address, chain, currency, ${deadlineSql} AS deadline, status, amount, amount_received AS amountReceived, floor,
  ended_at AS endedAt, sequence,
  CASE WHEN chain = ? THEN created_head ELSE coalesce(
    (SELECT number FROM blocks WHERE blocks.chain = ? AND blocks.mode = ? AND time <= (created_at - ${blockTimeLag}) / 1000
     ORDER BY time DESC, number DESC LIMIT 1),
    (SELECT number FROM blocks WHERE blocks.chain = ? AND blocks.mode = ? AND time <= created_at / 1000
     ORDER BY time, number LIMIT 1)
  ) END AS createdHead`

const payments = (db: Db, { chain, mode }: Network, where: string, params: ReadonlyArray<Param>) =>
  db.all<PaymentRow>(`SELECT ${columns} FROM payments WHERE ${where}`, [chain, chain, mode, chain, mode, ...params])

/** Whether a payment is in the network's own coin. */
const isNative = ({ chain }: Network, row: PaymentRow) => row.chain === chain && row.currency === nativeToken(chain)

/** The watch of a payment's address, without what differs between rounds. */
const watchedOf = (network: Network, row: PaymentRow) => {
  const amount = BigInt(row.amount)
  const isOpen = row.status === "pending" || row.status === "detecting"
  const missing = isOpen ? amount - BigInt(row.amountReceived ?? "0") : 0n
  const floor = BigInt(row.floor)
  return {
    address: row.address.toLowerCase(),
    own: row.chain === network.chain,
    createdHead: row.createdHead ?? undefined,
    everyRound: false,
    floor: isNative(network, row) ? (missing > 0n && missing < floor ? missing : floor) : 0n
  }
}

/** That of an ended payment. */
const endedOf = (network: Network, row: PaymentRow, noncesFrom = Number.POSITIVE_INFINITY): Watched => {
  const base = watchedOf(network, row)
  const own = base.own && row.createdHead !== null
  return { ...base, own, withNonce: base.own && (row.endedAt ?? 0) >= noncesFrom }
}

/** SQL: payments with coins in receipts above a block, canonical ones or those that a reorg has orphaned. */
const withCoinsAbove = (canonical: 0 | 1) => `id IN (SELECT payment_id FROM receipts
  WHERE chain = ? AND mode = ? AND canonical = ${canonical} AND ${isCoin} AND block_number > ?)`

/** Payments with a deadline between these times, Unix milliseconds, are over at `at` and were not at the last round. */
const overWindow = (checked: Scan["checked"], at: BlockRef) => [(checked?.time ?? 0) * 1000, at.time * 1000] as const
const isOver = `${isOpen} AND ${everyChain} AND mode = ? AND ${deadlineSql} >= ? AND ${deadlineSql} < ?`

/**
 * The queries of a round at the block `at`:
 * - open payments in the chain's own coin;
 * - confirmed payments that lost coins to a reorg above the block `final`, the newest final one at the last round, or above
 *   that round;
 * - every payment of the mode, on any chain and in any currency, whose time ended since the last round.
 *
 * @param withNonces compare the nonces of open payments too: their coins may have come and been collected since
 */
export const dueInRound = Effect.fn("BalancesRepo.dueInRound")(function* (
  db: Db,
  network: Network,
  at: BlockRef,
  final: number,
  withNonces: boolean
) {
  const { chain, mode } = network
  const checked = (yield* Ledger.scan(db, network))?.checked
  const [from, below] = overWindow(checked, at)
  const isOpenCoin = `${isOpen} AND chain = ? AND mode = ? AND currency = ?`
  const native = yield* payments(db, network, isOpenCoin, [chain, mode, nativeToken(chain)])
  const kept = Math.min(final, checked?.number ?? -1)
  const hasLost = `status = 'confirmed' AND ${withCoinsAbove(0)}`
  const orphaned = yield* payments(db, network, hasLost, [chain, mode, kept])
  const over = yield* payments(db, network, isOver, [mode, from, below])
  const isInCoin = (row: PaymentRow) => isNative(network, row)
  const rows = [...native, ...orphaned.filter(isInCoin), ...over.filter((row) => !isInCoin(row))]
  const watched = rows.map((row): Watched => {
    const isConfirmed = row.status === "confirmed"
    const base = watchedOf(network, row)
    return {
      ...base,
      createdHead: base.createdHead ?? (base.own ? at.number : undefined),
      everyRound: isInCoin(row) && !isConfirmed,
      // After a reorg, coins may have been mined again and collected: the balance alone does not show it.
      withNonce: isInCoin(row) && (withNonces || isConfirmed || (row.deadline >= from && row.deadline < below))
    }
  })
  return yield* queriesOf(db, network, watched, checked && { checked, at })
})

/** The queries of addresses, with what the ledger has up to a block. */
export const knownUpTo = (db: Db, network: Network, watched: ReadonlyArray<Watched>, number: number) =>
  queriesOf(db, network, watched, undefined, number)

/** The queries of addresses from the creation of their payments on, up to a block: without any stored balance point. */
export const sinceCreation = (db: Db, network: Network, watched: ReadonlyArray<Watched>, number: number) =>
  queriesOf(db, network, watched, undefined, number, -1)

/** The queries of payments that lose coins to a reorg above `ancestor`, with what the ledger has up to it. */
export const orphanedQueries = Effect.fn("BalancesRepo.orphanedQueries")(function* (
  db: Db,
  network: Network,
  ancestor: number
) {
  const { chain, mode } = network
  const loses = `chain = ? AND ${withCoinsAbove(1)}`
  const rows = yield* payments(db, network, loses, [chain, chain, mode, ancestor])
  const watched = rows.map(
    (row): Watched => ({
      ...watchedOf(network, row),
      createdHead: Math.min(row.createdHead ?? ancestor, ancestor),
      // The new branch may contain a spend by the owner, too.
      withNonce: true,
      floor: 0n
    })
  )
  return yield* queriesOf(db, network, watched, undefined, ancestor)
})

/** Whether a round is due at once: a payment's time ended since the last round. */
export const due = (db: Db, network: Network, at: BlockRef) =>
  Effect.flatMap(Ledger.scan(db, network), (scan) =>
    anyRow(db, `SELECT 1 FROM payments WHERE ${isOver} LIMIT 1`, [network.mode, ...overWindow(scan?.checked, at)])
  )

/** Where a page begins: after the last payment of the one before. */
export interface Cursor {
  /** Unix milliseconds. */
  readonly endedAt: number
  readonly sequence: number
}

/**
 * A page of the queries of ended payments, and the cursor of the next page; undefined after the last.
 *
 * @param noncesFrom Unix milliseconds: compare the nonces of payments that ended since too, a call for each address
 */
export const endedPage = Effect.fn("BalancesRepo.endedPage")(function* (
  db: Db,
  network: Network,
  after: Cursor,
  noncesFrom: number,
  limit: number
) {
  const ended = "mode = ? AND ended_at IS NOT NULL AND (ended_at, sequence) > (?, ?)"
  const where = `${ended} ORDER BY ended_at, sequence LIMIT ?`
  const rows = yield* payments(db, network, where, [network.mode, after.endedAt, after.sequence, limit])
  const watched = rows.map((row) => endedOf(network, row, noncesFrom))
  const last = rows.length < limit ? undefined : rows.at(-1)
  const next: Cursor | undefined = last && { endedAt: last.endedAt ?? 0, sequence: last.sequence }
  return { asked: yield* queriesOf(db, network, watched), next }
})

/** The queries of ended payments by their addresses, EIP-55. */
export const endedQueries = Effect.fnUntraced(function* (db: Db, network: Network, addresses: ReadonlyArray<string>) {
  const rows = yield* payments(db, network, "address IN (SELECT value FROM json_each(?))", [JSON.stringify(addresses)])
  return yield* queriesOf(
    db,
    network,
    rows.map((row) => endedOf(network, row))
  )
})

/** The queries of skipped addresses: those that a lost copy of the database may have handed out. */
export const skippedQueries = (db: Db, network: Network, addresses: ReadonlyArray<string>) => {
  const skipped = { own: false, createdHead: undefined, everyRound: false, withNonce: false }
  const watched = addresses.map((address): Watched => ({ ...skipped, address: address.toLowerCase() }))
  return queriesOf(db, network, watched)
}

/** A page of the queries of skipped addresses, and its last address where more may follow. */
export const skippedPage = Effect.fn("BalancesRepo.skippedPage")(function* (
  db: Db,
  network: Network,
  after: string | undefined,
  limit: number
) {
  const rows = yield* db.all<{ address: string }>(
    "SELECT address FROM gap_addresses WHERE mode = ? AND address > ? ORDER BY address LIMIT ?",
    [network.mode, after ?? "", limit]
  )
  const addresses = rows.map(({ address }) => address)
  const next = rows.length < limit ? undefined : addresses.at(-1)
  return { asked: yield* skippedQueries(db, network, addresses), next }
})

/** Deletes the balance points of an address from a block on: the next round compares with the last one left. */
export const forget = ({ chain, mode }: Network, address: string, from = 0) => {
  const key = [chain, mode, address, from]
  return execute("DELETE FROM balances WHERE chain = ? AND mode = ? AND address = ? AND number >= ?", key)
}

/** Stores balance points that later balances are compared with. */
export const keepRows = ({ chain, mode }: Network, rows: ReadonlyArray<BalanceRow>) =>
  Effect.flatMap(Tx, (tx) =>
    tx.runEach(
      `INSERT INTO balances (chain, mode, address, number, balance, nonce) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (chain, mode, address, number) DO UPDATE SET balance = excluded.balance, nonce = excluded.nonce`,
      rows.map(({ address, balance, nonce, number }) => [chain, mode, address, number, balance.toString(), nonce])
    )
  )

/**
 * Deletes an unattributed receipt; the caller stores what replaces it in the same transaction. Returns its amount and
 * the first block that the money may have come in, if the receipt was canonical.
 */
export const dropUnattributed = ({ chain, mode }: Network, address: string, blockHash: string) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const row = yield* tx.get<{ amount: string; canonical: number; since: number }>(
      `DELETE FROM receipts
       WHERE chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position = 'unattributed'
       RETURNING amount, canonical, coalesce(since_number, block_number) AS since`,
      [chain, mode, blockHash, address]
    )
    return row?.canonical === 1 ? { amount: BigInt(row.amount), since: row.since } : undefined
  })

/** Records that every payment of a round has been compared at `at`. */
export const moveChecked = ({ chain, mode }: Network, { number, time }: BlockRef) => {
  const at = [number, time, chain, mode]
  return execute("UPDATE scans SET checked_number = ?, checked_time = ? WHERE chain = ? AND mode = ?", at)
}
