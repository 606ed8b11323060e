/**
 * The ledger of all networks in SQL: the scan (how far each chain has been read, its finality tags), stored blocks, and
 * receipts. A receipt is never deleted; a reorg only makes it non-canonical. Reads take any connection, writes run in
 * the caller's transaction: the watcher's commits, corroboration and repair.
 */
import { Clock, Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import { anyRow, type Db, execute, oneRow, Tx } from "../../Sql.ts"
import type { Transfer } from "./Transfer.ts"
import { currencyFor, type Owner, ownersOf } from "./WatchedAddressesRepo.ts"

interface ScanRow extends Pick<Scan, "finalized" | "safe" | "verified">, BlockRef {
  readonly checkedNumber: number | undefined
  readonly checkedTime: number | undefined
}

/** How far the chain has been read; undefined before its first head. */
export const scan = (db: Db, { chain, mode }: Network) =>
  Effect.map(
    oneRow<ScanRow>(
      db,
      `SELECT head_number AS number, head_hash AS hash, head_time AS time, checked_number AS checkedNumber,
         checked_time AS checkedTime, safe_number AS safe, finalized_number AS finalized, verified_number AS verified
       FROM scans WHERE chain = ? AND mode = ?`,
      [chain, mode]
    ),
    (row): Scan | undefined => {
      if (row === undefined) return undefined
      const { checkedNumber, checkedTime, finalized, hash, number, safe, time, verified } = row
      const isChecked = checkedNumber !== undefined && checkedTime !== undefined
      const checked = isChecked ? { number: checkedNumber, time: checkedTime } : undefined
      return { chain, mode, head: { number, hash, time }, checked, safe, finalized, verified }
    }
  )

/** The hash of the chain's first block, as stored when reading started; undefined where no node had it. */
export const genesisHash = (db: Db, { chain, mode }: Network) =>
  Effect.map(
    db.get<{ hash: string | null }>("SELECT genesis_hash AS hash FROM scans WHERE chain = ? AND mode = ?", [
      chain,
      mode
    ]),
    (row) => row?.hash ?? undefined
  )

/** Stores that reading starts above `checkpoint`. An existing scan is kept. `genesis`: the hash of the first block. */
export const startScan = (
  { chain, mode }: Network,
  { hash, number, time }: BlockRef,
  genesis: string | undefined,
  chainId?: number
) =>
  execute(
    `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number, genesis_hash, chain_id)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (chain, mode) DO NOTHING`,
    [chain, mode, number + 1, number, hash, time, number, genesis ?? null, chainId ?? null]
  )

/** Stores that every block up to `head` has been read. */
export const moveScan = ({ chain, mode }: Network, { hash, number, time }: BlockRef) =>
  execute(
    `UPDATE scans SET head_number = ?, head_hash = ?, head_time = ?
       WHERE chain = ? AND mode = ?`,
    [number, hash, time, chain, mode]
  )

/** Stored blocks below `number`, newest first. */
export const blocksBelow = (db: Db, { chain, mode }: Network, number: number, limit: number) =>
  db.all<BlockRef>(
    `SELECT number, hash, time FROM blocks WHERE chain = ? AND mode = ? AND number < ? ORDER BY number DESC LIMIT ?`,
    [chain, mode, number, limit]
  )

/** The newest stored block at or below `number`. */
export const newestBlockAt = (db: Db, network: Network, number: number) =>
  Effect.map(blocksBelow(db, network, number + 1, 1), ([block]) => block)

/** Whether the ledger has one of the blocks with another hash. */
export const contradicts = (
  db: Db,
  { chain, mode }: Network,
  blocks: ReadonlyArray<{ readonly blockNumber: number; readonly blockHash: string }>
) =>
  Effect.exists(blocks, ({ blockHash, blockNumber }) =>
    anyRow(db, "SELECT 1 AS found FROM blocks WHERE chain = ? AND mode = ? AND number = ? AND hash <> ?", [
      chain,
      mode,
      blockNumber,
      blockHash
    ])
  )

/** Stores blocks, to find the common ancestor of a later reorg. A block with the same number is replaced. */
export const keepBlocks = ({ chain, mode }: Network, blocks: Iterable<BlockRef>) =>
  Effect.flatMap(Tx, (tx) =>
    tx.runEach(
      `INSERT INTO blocks (chain, mode, number, hash, time) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (chain, mode, number) DO UPDATE SET hash = excluded.hash, time = excluded.time`,
      Array.from(blocks, ({ hash, number, time }) => [chain, mode, number, hash, time])
    )
  )

/** Stores another time of a stored block. */
export const setBlockTime = ({ chain, mode }: Network, { hash, number, time }: BlockRef) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const ofBlock = [time, chain, mode, number, hash]
    yield* tx.run("UPDATE blocks SET time = ? WHERE chain = ? AND mode = ? AND number = ? AND hash = ?", ofBlock)
    const ofHead = [time, chain, mode, hash]
    yield* tx.run("UPDATE scans SET head_time = ? WHERE chain = ? AND mode = ? AND head_hash = ?", ofHead)
  })

/** Whose receipts a commit has changed: a payment, or an address (lower case) whose payment is lost; undefined: no one's. */
export type Touched = PaymentId | `0x${string}` | undefined

/** SQL: the same of a row of receipts. */
export const touchedSql = "coalesce(payment_id, address)"

/** Whether it is an address whose payment is lost. */
export const isLost = (touched: Touched): touched is `0x${string}` => touched?.startsWith("0x") === true

/**
 * A page of the stored blocks above `after` and below `before`: `last`, its last number, undefined on the last page,
 * and the numbers of the `unneeded` ones, which no receipt is in and no open payment counts from.
 */
export const oldBlocks = (db: Db, { chain, mode }: Network, after: number, before: number, limit: number) =>
  Effect.map(
    db.all<{ number: number; needed: number }>(
      `SELECT number, EXISTS (SELECT 1 FROM receipts AS r
           WHERE r.chain = b.chain AND r.mode = b.mode AND r.block_number = b.number)
         OR number IN (SELECT created_head FROM payments
           WHERE status IN ('pending', 'detecting') AND chain = ? AND mode = ?) AS needed
       FROM blocks AS b WHERE chain = ? AND mode = ? AND number > ? AND number < ? ORDER BY number LIMIT ?`,
      [chain, mode, chain, mode, after, before, limit]
    ),
    (rows) => ({
      last: rows.length < limit ? undefined : rows.at(-1)?.number,
      unneeded: rows.flatMap((row) => (row.needed === 1 ? [] : [row.number]))
    })
  )

/** Deletes stored blocks. */
export const dropBlocks = ({ chain, mode }: Network, numbers: ReadonlyArray<number>) =>
  execute(
    `DELETE FROM blocks
       WHERE chain = ? AND mode = ? AND number IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`,
    [chain, mode, JSON.stringify(numbers)]
  )

/** Orphans the blocks above `block`, and what was stored by them. Returns whose receipts no longer count. */
export const orphanAbove = ({ chain, mode }: Network, block: BlockRef) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const where = [chain, mode, block.number]
    yield* tx.run("DELETE FROM blocks WHERE chain = ? AND mode = ? AND number > ?", where)
    yield* tx.run("DELETE FROM balances WHERE chain = ? AND mode = ? AND number > ?", where)
    // Money without a transaction may have come in a block that stays: a balance stored since would hide it.
    yield* tx.run(
      `DELETE FROM balances WHERE (chain, mode, address, number) IN (
         SELECT later.chain, later.mode, later.address, later.number FROM receipts AS r JOIN balances AS later
           ON later.chain = r.chain AND later.mode = r.mode AND later.address = r.address AND later.number >= r.since_number
         WHERE r.chain = ? AND r.mode = ? AND r.block_number > ? AND r.canonical = 1 AND r.since_number IS NOT NULL)`,
      where
    )
    yield* tx.run("DELETE FROM searches WHERE chain = ? AND mode = ? AND number > ?", where)
    yield* tx.run(
      `UPDATE scans SET checked_number = ?, checked_time = ?
       WHERE chain = ? AND mode = ? AND checked_number > ?`,
      [block.number, block.time, ...where]
    )
    for (const column of ["verified_number", "safe_number", "finalized_number"]) {
      const lowered = `UPDATE scans SET ${column} = ? WHERE chain = ? AND mode = ? AND ${column} > ?`
      yield* tx.run(lowered, [block.number, ...where])
    }
    const rows = yield* tx.all<{ touched: Touched }>(
      `UPDATE receipts SET canonical = 0 WHERE chain = ? AND mode = ? AND block_number > ? AND canonical = 1
       RETURNING ${touchedSql} AS touched`,
      where
    )
    return rows.map(({ touched }) => touched)
  })

/** A transfer with the time of its block. `txHash` is undefined where the transaction is unknown. */
export interface DatedTransfer extends Omit<Transfer, "txHash" | "place"> {
  readonly txHash: string | undefined
  /** 0 where it is absent. */
  readonly place?: number
  /** Unix seconds. */
  readonly blockTime: number
  /** Number of the first block in which it may have been, where transaction and block are unknown. */
  readonly since?: number
  /** The host of the provider that reported it, where only one did. */
  readonly reportedBy?: string
}

/** What identifies a receipt on its network. */
export interface ReceiptKey {
  readonly blockHash: string
  readonly address: string
  readonly position: string
}

/** SQL: a receipt by its key, with `paramsOf`. */
export const isReceipt = "chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position = ?"
export const paramsOf = ({ chain, mode }: Network, { address, blockHash, position }: ReceiptKey) => [
  ...[chain, mode, blockHash],
  ...[address, position]
]

/** A key for maps and sets. */
export const keyOf = ({ address, blockHash, position }: ReceiptKey): string => `${blockHash} ${address} ${position}`

/**
 * Whether a new report contradicts an uncorroborated receipt. A transaction sends one amount, by its value or from
 * inside a contract, only one transaction is at an index of a block, and a block has one number: so one of the two
 * reports is wrong, and the last one counts until it is corroborated.
 */
const isContradicting = `receipts.corroborated = 0 AND (receipts.block_number <> excluded.block_number
  OR (receipts.position GLOB 'tx:*' OR receipts.position GLOB 'call:*')
    AND (receipts.amount <> excluded.amount OR receipts.tx_hash <> excluded.tx_hash))`
const replaced = (column: string): string =>
  `${column} = iif(${isContradicting}, excluded.${column}, receipts.${column})`

/** What settlement reads a transfer as. Money without a transaction may still become more: it is always read. */
const listedAs = ({ chain }: Network, { own }: Owner, currency: string, { amount, position }: DatedTransfer) => {
  if (own?.chain !== chain || own.currency !== currency) return "stray"
  return amount < own.floor && /^(log|tx):/.test(position) ? null : "own"
}

/**
 * Stores transfers as receipts of the payments that own the addresses. An existing receipt becomes canonical again,
 * unless it was refuted; an uncorroborated one is replaced by a report that contradicts it. A transfer that a reorg moves to
 * another block keeps the name of its currency, whatever the configuration calls it by now. Transfers to addresses that were
 * never handed out are skipped. Returns whom they concern.
 *
 * A transfer of the payment's own below its floor is not listed, so that a hundred thousand of them cost settlement nothing.
 *
 * @param corroborated whether the receipts count as corroborated, without a second provider
 */
export const keepReceipts = (network: Network, transfers: ReadonlyArray<DatedTransfer>, corroborated: boolean) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const now = yield* Clock.currentTimeMillis
    const touched: Array<Touched> = []
    const addresses = transfers.map(({ address }) => address)
    const owners = yield* ownersOf(tx, network.mode, addresses)
    for (const transfer of transfers) {
      const owner = owners.get(transfer.address)
      if (owner === undefined) continue
      const [payment, txHash] = [owner.payment ?? null, transfer.txHash ?? null]
      const key = paramsOf(network, transfer)
      const block = [transfer.place ?? 0, transfer.blockNumber, transfer.blockTime]
      const currency = currencyFor(network, owner, transfer)
      const named = [txHash, payment, transfer.position, currency]
      const reported = [
        transfer.reportedBy ?? null,
        transfer.sender ?? null,
        listedAs(network, owner, currency, transfer)
      ]
      const rest = [transfer.amount.toString(), payment, payment, corroborated ? 1 : 0, now, ...reported]
      // The newest stored block up to the first possible one is not after the transfer: its time dates the interval.
      const since = (transfer.since ?? transfer.blockNumber) < transfer.blockNumber ? transfer.since : undefined
      const stored = since === undefined ? undefined : yield* newestBlockAt(tx, network, since)
      const interval = since === undefined ? [null, null] : [since, stored?.time ?? 0]
      yield* tx.run(
        `INSERT INTO receipts (chain, mode, block_hash, address, position, place, block_number, block_time, tx_hash,
           currency, amount, payment_id, account_id, canonical, corroborated, seen_at, reported_by, sender, listed,
           since_number, since_time)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce((SELECT currency FROM receipts
           WHERE tx_hash = ? AND payment_id = ? AND position = ? AND canonical = 0 LIMIT 1), ?), ?, ?,
           (SELECT account_id FROM payments WHERE id = ?), 1, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (chain, mode, block_hash, address, position) DO UPDATE SET
           ${["amount", "tx_hash", "sender", "listed", "block_number", "block_time", "reported_by"].map(replaced).join(", ")},
           refuted = iif(${isContradicting}, 0, receipts.refuted),
           unverifiable = iif(${isContradicting}, 0, receipts.unverifiable),
           denied_by = iif(${isContradicting}, NULL, receipts.denied_by), canonical = iif(${isContradicting}, 1, 1 - receipts.refuted)`,
        [...key, ...block, txHash, ...named, ...rest, ...interval]
      )
      touched.push(owner.payment ?? (transfer.address as `0x${string}`))
    }
    return touched
  })

/** The keys of those receipts that are in the ledger and canonical. */
export const countedKeys = (db: Db, network: Network, receipts: ReadonlyArray<ReceiptKey>) =>
  Effect.map(
    Effect.filter(receipts, (key) =>
      anyRow(db, `SELECT 1 FROM receipts WHERE ${isReceipt} AND canonical = 1`, paramsOf(network, key))
    ),
    (counted) => new Set(counted.map(keyOf))
  )

/** Stores that the verification pass has read every block up to `number`. */
export const moveVerified = ({ chain, mode }: Network, number: number) =>
  execute("UPDATE scans SET verified_number = ? WHERE chain = ? AND mode = ?", [number, chain, mode])

/** Stores the finality tags where they grow: a node with lower ones lags. A reorg lowers them in `orphanAbove`. */
export const setTags = (
  { chain, mode }: Network,
  { finalized, safe }: { readonly safe: number | undefined; readonly finalized: number | undefined }
) =>
  execute(
    `UPDATE scans SET safe_number = max(coalesce(safe_number, ?), coalesce(?, safe_number)),
         finalized_number = max(coalesce(finalized_number, ?), coalesce(?, finalized_number))
       WHERE chain = ? AND mode = ?`,
    [safe ?? null, safe ?? null, finalized ?? null, finalized ?? null, chain, mode]
  )
