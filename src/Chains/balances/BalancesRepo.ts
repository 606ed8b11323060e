import { Array as Arr, Effect } from "effect"
import { type ChainName, chainNames, type Network } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import { dueTimeSql, overBefore } from "../../Domain/deadline.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import { type Db, type Param, Tx } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { balanceQueryOf, type CreditRow, type KnownRow, type RoundBounds, type Watched } from "./balanceQuery.ts"
import type { BalanceQuery } from "./discrepancy.ts"
import type { BalanceRow } from "./reconcile.ts"

/** Addresses whose rows are looked up at once. */
const lookedUpAtOnce = 1000

// One seek a chain: the index starts with it.
const everyChain = `chain IN (${chainNames.map((name) => `'${name}'`).join(", ")})`
const isOpen = "status IN ('pending', 'detecting')"

interface PaymentRow {
  readonly address: string
  readonly chain: ChainName
  readonly currency: string
  readonly created_head: number | null
  readonly due_at: number
  readonly status: string
  readonly amount: string
  readonly amount_received: string | null
}

/** With receipts of blocks up to `upTo`, and points of blocks up to `pointsUpTo`. */
const withRows = (
  db: Db,
  network: Network,
  watched: ReadonlyArray<Watched>,
  since?: RoundBounds,
  upTo = Number.MAX_SAFE_INTEGER,
  pointsUpTo = upTo
) =>
  Effect.gen(function* () {
    const { chain, mode } = network
    const roundQueries: Array<BalanceQuery> = []
    for (const part of Arr.chunksOf(watched, lookedUpAtOnce)) {
      const addresses = JSON.stringify(part.map(({ address }) => address))
      const points = yield* db.all<KnownRow>(
        `SELECT address, number, balance, nonce FROM balances
         WHERE chain = ? AND mode = ? AND address IN (SELECT value FROM json_each(?)) AND number <= ?
         ORDER BY address, number`,
        [chain, mode, addresses, pointsUpTo]
      )
      const receipts = yield* db.all<CreditRow>(
        `SELECT address, block_number, block_hash, block_time, position, tx_hash, amount FROM receipts
         WHERE chain = ? AND mode = ? AND position NOT GLOB 'log:*' AND canonical = 1
           AND address IN (SELECT value FROM json_each(?)) AND block_number <= ?
         ORDER BY address, block_number`,
        [chain, mode, addresses, upTo]
      )
      const pointsOf = Arr.groupBy(points, (row) => row.address)
      const receiptsOf = Arr.groupBy(receipts, (row) => row.address)
      for (const one of part) {
        roundQueries.push(balanceQueryOf(one, since, pointsOf[one.address] ?? [], receiptsOf[one.address] ?? []))
      }
    }
    return roundQueries
  })

/** What is known of payments, as a network sees them: the first three parameters are its chain, twice, and its mode. */
const columns = `address, chain, currency, ${dueTimeSql} AS due_at, status, amount, amount_received,
  CASE WHEN chain = ? THEN created_head ELSE (
    SELECT number FROM blocks WHERE blocks.chain = ? AND blocks.mode = ? AND blocks.time <= created_at / 1000
    ORDER BY blocks.time DESC, number DESC LIMIT 1
  ) END AS created_head`

/** What a payment in the chain's coin asks for. */
const dueOf = ({ chain }: Network, row: PaymentRow): Watched["due"] => {
  if (row.chain !== chain || row.currency !== nativeToken(chain)) return undefined
  const amount = BigInt(row.amount)
  const isOpen = row.status === "pending" || row.status === "detecting"
  return { amount, missing: isOpen ? amount - BigInt(row.amount_received ?? "0") : 0n }
}

const payments = (db: Db, { chain, mode }: Network, where: string, params: ReadonlyArray<Param> = []) =>
  db.all<PaymentRow>(`SELECT ${columns} FROM payments WHERE ${where}`, [chain, chain, mode, ...params])

/** Unix milliseconds between which payments expired that are over at `at` and have not been compared since. */
const overWindow = (checked: Scan["checked"], at: BlockRef, settleGraceMs: number): readonly [number, number] => [
  checked === undefined ? 0 : overBefore(checked.time, settleGraceMs),
  overBefore(at.time, settleGraceMs)
]
const isIn = ([from, below]: readonly [number, number], time: number): boolean => time >= from && time < below
const isOver = `${isOpen} AND ${everyChain} AND mode = ? AND ${dueTimeSql} >= ? AND ${dueTimeSql} < ?`

const isCoin = "position NOT GLOB 'log:*'"

/**
 * The addresses of a round at the block `at`: of the chain's open payments in its own coin; of those that a reorg has
 * taken coins from in blocks that are not final, or that no round has covered since; and of every payment of the mode,
 * on any chain and in any currency, whose time is over by `at` and was not by the last round.
 */
export const asked = Effect.fn("BalancesRepo.asked")(function* (
  db: Db,
  network: Network,
  at: BlockRef,
  settleGraceMs: number,
  final: number
) {
  const { chain, mode } = network
  const { checked } = (yield* Ledger.scan(db, network)) ?? { checked: undefined }
  const window = overWindow(checked, at, settleGraceMs)
  const isNative = (row: PaymentRow) => row.chain === chain && row.currency === nativeToken(chain)
  const native = yield* payments(db, network, `${isOpen} AND chain = ? AND mode = ? AND currency = ?`, [
    chain,
    mode,
    nativeToken(chain)
  ])
  const undone = yield* payments(
    db,
    network,
    `status = 'confirmed' AND id IN (SELECT payment_id FROM receipts
       WHERE chain = ? AND mode = ? AND canonical = 0 AND ${isCoin} AND block_number > ?)`,
    [chain, mode, Math.min(final, checked?.number ?? -1)]
  )
  const over = yield* payments(db, network, isOver, [mode, ...window])
  const watched = [...native, ...undone.filter(isNative), ...over.filter((row) => !isNative(row))].map(
    (row): Watched => ({
      address: row.address.toLowerCase(),
      own: row.chain === chain,
      createdHead: row.created_head ?? (row.chain === chain ? at.number : undefined),
      everyRound: isNative(row) && row.status !== "confirmed",
      // Coins that were mined again may have been collected since: the balance alone does not tell.
      withNonce: isNative(row) && (row.status === "confirmed" || isIn(window, row.due_at)),
      due: dueOf(network, row)
    })
  )
  return yield* withRows(db, network, watched, checked && { checked, at })
})

/** What is known of addresses up to a block. */
export const knownUpTo = (db: Db, network: Network, watched: ReadonlyArray<Watched>, number: number) =>
  withRows(db, network, watched, undefined, number)

/** What came to addresses up to a block, from when their payments were made: nothing that a balance was compared with. */
export const sinceCreation = (db: Db, network: Network, watched: ReadonlyArray<Watched>, number: number) =>
  withRows(db, network, watched, undefined, number, -1)

/** The payments that a reorg of the blocks above `ancestor` takes coins from, with what is known up to there. */
export const orphanedQueries = Effect.fn("BalancesRepo.takenBack")(function* (
  db: Db,
  network: Network,
  ancestor: number
) {
  const { chain, mode } = network
  const rows = yield* payments(
    db,
    network,
    `chain = ? AND id IN (SELECT payment_id FROM receipts
       WHERE chain = ? AND mode = ? AND canonical = 1 AND ${isCoin} AND block_number > ?)`,
    [chain, chain, mode, ancestor]
  )
  const watched = rows.map(
    (row): Watched => ({
      address: row.address.toLowerCase(),
      own: true,
      createdHead: Math.min(row.created_head ?? ancestor, ancestor),
      everyRound: false,
      // The new branch may have the owner's collection of them, too.
      withNonce: true
    })
  )
  return yield* withRows(db, network, watched, undefined, ancestor)
})

/** Whether a round is wanted at once: a payment's time is over by `at`, and was not by the last round. */
export const due = (db: Db, network: Network, at: BlockRef, settleGraceMs: number) =>
  Effect.gen(function* () {
    const { checked } = (yield* Ledger.scan(db, network)) ?? { checked: undefined }
    const found = yield* db.get(`SELECT 1 FROM payments WHERE ${isOver} LIMIT 1`, [
      network.mode,
      ...overWindow(checked, at, settleGraceMs)
    ])
    return found !== undefined
  })

/** The last payment of a page: the next one begins after it. */
export interface Cursor {
  /** Unix milliseconds. */
  readonly endedAt: number
  readonly sequence: number
}

/**
 * Addresses of payments that have ended since, Unix milliseconds: a page of them, and where the next one begins;
 * undefined after the last.
 */
export const endedPage = Effect.fn("BalancesRepo.endedPage")(function* (
  db: Db,
  network: Network,
  since: number,
  after: Cursor | undefined,
  limit: number
) {
  const { chain, mode } = network
  const rows = yield* db.all<PaymentRow & { readonly ended_at: number; readonly sequence: number }>(
    `SELECT ${columns}, ended_at, sequence FROM payments
     WHERE mode = ? AND ended_at IS NOT NULL AND (ended_at, sequence) > (?, ?) ORDER BY ended_at, sequence LIMIT ?`,
    [chain, chain, mode, mode, after?.endedAt ?? since, after?.sequence ?? 0, limit]
  )
  const watched = rows.map(
    (row): Watched => ({
      address: row.address.toLowerCase(),
      own: row.chain === chain && row.created_head !== null,
      createdHead: row.created_head ?? undefined,
      everyRound: false,
      withNonce: false,
      due: dueOf(network, row)
    })
  )
  const last = rows.length < limit ? undefined : rows.at(-1)
  const next: Cursor | undefined = last && { endedAt: last.ended_at, sequence: last.sequence }
  return { asked: yield* withRows(db, network, watched), next }
})

const ofGaps = (addresses: ReadonlyArray<string>) =>
  addresses.map(
    (address): Watched => ({
      address: address.toLowerCase(),
      own: false,
      createdHead: undefined,
      everyRound: false,
      withNonce: false
    })
  )

/** Of addresses that a lost copy of the database may have handed out, what is known. */
export const skippedQueries = (db: Db, network: Network, addresses: ReadonlyArray<string>) =>
  withRows(db, network, ofGaps(addresses))

/** Addresses that a lost copy of the database may have handed out: a page of them, and the last where more may follow. */
export const skippedPage = Effect.fn("BalancesRepo.gapPage")(function* (
  db: Db,
  network: Network,
  after: string | undefined,
  limit: number
) {
  const rows = yield* db.all<{ address: string }>(
    "SELECT address FROM gap_addresses WHERE mode = ? AND address > ? ORDER BY address LIMIT ?",
    [network.mode, after ?? "", limit]
  )
  const next = rows.length < limit ? undefined : rows.at(-1)?.address
  return {
    asked: yield* skippedQueries(
      db,
      network,
      rows.map(({ address }) => address)
    ),
    next
  }
})

/** Forgets the points of an address from a block on, or all: it is compared from the last that is left again. */
export const forget = ({ chain, mode }: Network, address: string, from = 0) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run("DELETE FROM balances WHERE chain = ? AND mode = ? AND address = ? AND number >= ?", [
      ...[chain, mode, address],
      from
    ])
  )

/** Keeps points that later balances are compared with. */
export const keepRows = ({ chain, mode }: Network, rows: ReadonlyArray<BalanceRow>) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const { address, balance, nonce, number } of rows) {
      yield* tx.run(
        `INSERT INTO balances (chain, mode, address, number, balance, nonce) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (chain, mode, address, number) DO UPDATE SET balance = excluded.balance, nonce = excluded.nonce`,
        [chain, mode, address, number, balance.toString(), nonce]
      )
    }
  })

/**
 * Takes an unattributed receipt out of the ledger: others take its place in the same transaction. Gives its amount, and
 * the first block that it may have come with, if it counted.
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

/** All open payments in the chain's coin, and all that were over by then, have been compared at `at`. */
export const moveChecked = ({ chain, mode }: Network, at: BlockRef) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run("UPDATE scans SET checked_number = ?, checked_time = ? WHERE chain = ? AND mode = ?", [
      at.number,
      at.time,
      chain,
      mode
    ])
  )
