/**
 * The columns of `receipts` that corroboration reads and writes: `corroborated`, `denied_by`, `unverifiable`,
 * `refuted`. `corroborate.ts` uses it for each receipt, the other files of this folder for parts of it. Functions that
 * change a receipt run in the caller's transaction and give whom it concerns, which the caller settles.
 */
import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import { anyRow, type Db, type Param, Tx } from "../../Sql.ts"
import * as Balances from "../balances/BalancesRepo.ts"
import { isReceipt, keyOf, paramsOf, type ReceiptKey, type Touched, touchedSql } from "../ledger/LedgerRepo.ts"
import * as Searches from "./SearchesRepo.ts"

/** A receipt that no second provider has corroborated. */
export interface Uncorroborated extends ReceiptKey {
  readonly blockNumber: number
  readonly txHash: string
  readonly currency: string
  /** Base units. */
  readonly amount: bigint
  /** Unix milliseconds. */
  readonly seenAt: number
  /** Host of the first provider that lacked the receipt, although its head was high enough. */
  readonly deniedBy: string | undefined
  /** A provider lacked this receipt, or another one of the same transaction in the same block. */
  readonly isDenied: boolean
  /** Host of the provider that reported it, where known. */
  readonly reportedBy: string | undefined
  /** No other provider was able to check it for 10 minutes. */
  readonly unverifiable: boolean
}

type UncorroboratedRow = Omit<Uncorroborated, "amount" | "deniedBy" | "isDenied" | "reportedBy" | "unverifiable"> & {
  readonly amount: string
  readonly deniedBy: string | null
  readonly isDenied: number
  readonly reportedBy: string | null
  readonly unverifiable: number
}

/** SQL: a provider denies a receipt of the same transaction in the same block, and it is not corroborated. */
export const isDenied = `EXISTS (SELECT 1 FROM receipts AS denied
  WHERE denied.denied_by IS NOT NULL AND denied.corroborated = 0 AND denied.chain = receipts.chain AND denied.mode = receipts.mode
    AND denied.tx_hash = receipts.tx_hash AND denied.block_hash = receipts.block_hash)`

const columns = `block_hash AS blockHash, address, position, block_number AS blockNumber, tx_hash AS txHash, currency,
  amount, seen_at AS seenAt, denied_by AS deniedBy, reported_by AS reportedBy, unverifiable, ${isDenied} AS isDenied`

const fromRow = (row: UncorroboratedRow): Uncorroborated => ({
  ...row,
  amount: BigInt(row.amount),
  deniedBy: row.deniedBy ?? undefined,
  isDenied: row.isDenied === 1,
  reportedBy: row.reportedBy ?? undefined,
  unverifiable: row.unverifiable === 1
})

/** A position in the order of `uncorroborated`. */
type UncorroboratedCursor = Pick<Uncorroborated, "blockNumber" | "blockHash" | "address" | "position">

/** Whether the first comes before the second in the order of `uncorroborated`. */
export const isNewer = (first: UncorroboratedCursor, second: UncorroboratedCursor): boolean =>
  first.blockNumber === second.blockNumber ? keyOf(first) > keyOf(second) : first.blockNumber > second.blockNumber

/** A page of listed uncorroborated receipts in blocks up to `upTo`, newest first, from below `after`. */
export const uncorroborated = (
  db: Db,
  { chain, mode }: Network,
  listed: "own" | "stray",
  upTo: number,
  limit: number,
  after: UncorroboratedCursor = { blockNumber: upTo + 1, blockHash: "", address: "", position: "" }
) =>
  Effect.map(
    db.all<UncorroboratedRow>(
      `SELECT ${columns} FROM receipts
       WHERE chain = ? AND mode = ? AND canonical = 1 AND corroborated = 0 AND tx_hash IS NOT NULL AND listed = ?
         AND (block_number, block_hash, address, position) < (?, ?, ?, ?)
       ORDER BY block_number DESC, block_hash DESC, address DESC, position DESC LIMIT ?`,
      [chain, mode, listed, after.blockNumber, after.blockHash, after.address, after.position, limit]
    ),
    (rows) => rows.map(fromRow)
  )

/** An address's receipts in one block that moved inside contracts, corroborated or not: wei by position. */
export const internalAmounts = (
  db: Db,
  { chain, mode }: Network,
  { address, blockHash }: Pick<ReceiptKey, "address" | "blockHash">
) =>
  Effect.map(
    db.all<{ amount: string; position: string }>(
      `SELECT position, amount FROM receipts
       WHERE chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position GLOB 'call:*' AND canonical = 1`,
      [chain, mode, blockHash, address]
    ),
    (rows) => new Map(rows.map(({ amount, position }) => [position, BigInt(amount)]))
  )

/** SQL: a payment waits for the receipt, or its payment is lost. A confirmed payment waits for nothing. */
const isAwaited = "NOT EXISTS (SELECT 1 FROM payments WHERE id = receipts.payment_id AND status = 'confirmed')"

/** A receipt as /readyz names it. */
export interface NamedReceipt {
  readonly txHash: string
  /** The payment's id, or the address where the payment is lost. */
  readonly owner: string
}

/**
 * An uncorroborated receipt up to block `number` that a payment waits for, first seen at `seenAt` (Unix milliseconds) or
 * before; undefined where there is none.
 */
export const anyOverdue = (db: Db, { chain, mode }: Network, number: number, seenAt: number) =>
  db.get<NamedReceipt>(
    `SELECT tx_hash AS txHash, coalesce(payment_id, address) AS owner FROM receipts
     WHERE chain = ? AND mode = ? AND canonical = 1 AND corroborated = 0 AND listed IS NOT NULL AND tx_hash IS NOT NULL
       AND block_number <= ? AND seen_at <= ? AND ${isAwaited} LIMIT 1`,
    [chain, mode, number, seenAt]
  )

/** How many payments wait for receipts up to block `number` that are uncorroborated. */
export const countWaiting = (db: Db, { chain, mode }: Network, number: number) =>
  Effect.map(
    db.get<{ payments: number }>(
      `SELECT count(DISTINCT coalesce(payment_id, address)) AS payments FROM receipts
       WHERE chain = ? AND mode = ? AND canonical = 1 AND corroborated = 0 AND listed IS NOT NULL AND tx_hash IS NOT NULL
         AND block_number <= ? AND ${isAwaited}`,
      [chain, mode, number]
    ),
    (row) => row?.payments ?? 0
  )

/** Whether a listed receipt up to block `upTo` is uncorroborated, or one above `after` is refuted. */
export const anyUncorroborated = (db: Db, { chain, mode }: Network, after: number, upTo: number) =>
  anyRow(
    db,
    `SELECT 1 FROM receipts
     WHERE chain = ? AND mode = ? AND canonical = 1 AND corroborated = 0 AND listed IS NOT NULL AND block_number <= ?
     UNION ALL
     SELECT 1 FROM receipts
     WHERE chain = ? AND mode = ? AND canonical = 0 AND refuted = 1 AND block_number > ? AND block_number <= ?
     LIMIT 1`,
    [chain, mode, upTo, chain, mode, after, upTo]
  )

/** Changes a receipt. Gives whom it concerns; undefined where the receipt is gone. */
const change = (network: Network, key: ReceiptKey, set: string, params: ReadonlyArray<Param> = []) =>
  Effect.flatMap(Tx, (tx) =>
    Effect.map(
      tx.get<{ touched: Touched }>(`UPDATE receipts SET ${set} WHERE ${isReceipt} RETURNING ${touchedSql} AS touched`, [
        ...params,
        ...paramsOf(network, key)
      ]),
      (row) => row?.touched
    )
  )

/**
 * Marks a receipt as corroborated. `blockTime`: the block time of the quorum, Unix seconds, and `sender`, who sent it
 * by the quorum: both may differ from the values of the reporting provider.
 */
export const setCorroborated = (
  network: Network,
  key: ReceiptKey,
  { blockTime, sender }: { readonly blockTime?: number | undefined; readonly sender?: string | undefined } = {}
) =>
  change(network, key, "corroborated = 1, block_time = coalesce(?, block_time), sender = ?", [
    blockTime ?? null,
    sender ?? null
  ])

/** Maximum number of denied receipts that are read for their providers. */
const maxDenied = 1_000

/** A provider that denies receipts, with one of them. */
export interface Denial extends NamedReceipt {
  readonly host: string
}

/** The providers that deny receipts in blocks up to `number` that payments wait for. */
export const denials = (db: Db, { chain, mode }: Network, number: number) =>
  db.all<Denial>(
    `SELECT host, txHash, owner FROM (
       SELECT *, row_number() OVER (PARTITION BY host ORDER BY txHash, owner) AS place FROM (
         SELECT denied_by AS host, tx_hash AS txHash, coalesce(payment_id, address) AS owner FROM receipts
         WHERE chain = ? AND mode = ? AND canonical = 1 AND corroborated = 0 AND listed IS NOT NULL AND block_number <= ?
           AND denied_by IS NOT NULL AND ${isAwaited}
         LIMIT ?) AS denied) AS placed
     WHERE place = 1 ORDER BY host`,
    [chain, mode, number, maxDenied]
  )

/** Records that the provider `host` lacks the receipt. */
export const setDenied = (network: Network, key: ReceiptKey, host: string) =>
  change(network, key, "denied_by = ?, unverifiable = 0", [host])

/** Records that no other provider is able to check the receipt. */
export const setUnverifiable = (network: Network, key: ReceiptKey) => change(network, key, "unverifiable = 1")

/**
 * Refutes a receipt that two providers deny: it does not count, also when it is reported again. Stored balances of its
 * address are dropped: they may come from the provider that reported it, and hide money that really arrived. The payment
 * is searched again before it ends, now without this receipt.
 */
export const refute = (network: Network, key: ReceiptKey) =>
  Effect.tap(change(network, key, "canonical = 0, refuted = 1"), (payment) =>
    Effect.zipRight(
      key.position.startsWith("log:") ? Effect.void : Balances.forget(network, key.address),
      Searches.forget(network, payment)
    )
  )
