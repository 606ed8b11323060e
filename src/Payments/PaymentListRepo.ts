/**
 * The lists of payments: a merchant's by filters, a page at a time, and an operator's search by any identifier of a
 * payment. Only reads, each by an index. Times in Unix milliseconds.
 */
import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import { toChecksummed } from "../Domain/Address.ts"
import { ChainName, modes } from "../Domain/Chain.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import { type FailureReason, PaymentStatus, referenceOf } from "../Domain/Payment.ts"
import type { Db, Param } from "../Sql.ts"
import { columns, fromRow, type PaymentRow } from "./PaymentsRepo.ts"

/** The last payment of the page before. */
export interface Cursor {
  readonly createdAt: number
  readonly sequence: number
}

export interface ListFilter {
  readonly status?: PaymentStatus | undefined
  /** Only those that were cancelled, of all that have expired; without `status`. */
  readonly cancelled?: true | undefined
  readonly chain?: ChainName | undefined
  readonly merchantRef?: string | undefined
  /** Some that were found otherwise. */
  readonly ids?: ReadonlyArray<PaymentId> | undefined
  /** EIP-55 form. */
  readonly address?: string | undefined
  /** Lower case. */
  readonly txHash?: string | undefined
  /** Payments created then or later. */
  readonly createdAfter?: number | undefined
  /** Payments created before. */
  readonly createdBefore?: number | undefined
  readonly limit: number
  /** From a page of the same filters. */
  readonly after?: Cursor | undefined
}

type Condition = readonly [sql: string, ...params: ReadonlyArray<Param>]

/**
 * The payments of a transaction: it brought a receipt of theirs, in any block, or they show it. A transaction that a
 * reorg orphaned counts too: a webhook may have named it. A transaction's payments are few: they are found first, and
 * looked up by their ids, of which the first index is.
 */
const ofTransaction = (txHash: string): Condition => [
  `(SELECT payment_id FROM receipts INDEXED BY receipts_transaction
      WHERE tx_hash = ? AND payment_id IS NOT NULL AND tx_hash IS NOT NULL
    UNION SELECT id FROM payments INDEXED BY payments_transaction WHERE tx_hash = ? AND tx_hash IS NOT NULL)
   CROSS JOIN payments INDEXED BY sqlite_autoindex_payments_1 ON payments.id = payment_id`,
  txHash,
  txHash
]

/**
 * The source of the rows, in the order of a page, so that the cost does not depend on the size of the table. The index
 * is named: after an ANALYZE, SQLite might prefer to search all rows of a rare chain for a status. A reference and an
 * address are unique, and have the index of that.
 */
const sourceOf = ({ address, cancelled, chain, ids, merchantRef, status, txHash }: ListFilter): Condition => {
  if (ids !== undefined) return ["payments INDEXED BY sqlite_autoindex_payments_1"]
  if (txHash !== undefined) return ofTransaction(txHash)
  if (address !== undefined || merchantRef !== undefined) return ["payments"]
  if (cancelled) return [`payments INDEXED BY payments_list_cancelled${chain === undefined ? "" : "_chain"}`]
  return [`payments INDEXED BY payments_list${status === undefined && chain === undefined ? "" : "_status_chain"}`]
}

/** Whether a page is of a status on every chain, or of a chain in every status. */
const isMerged = ({ address, cancelled, chain, ids, merchantRef, status, txHash }: ListFilter): boolean =>
  (status === undefined) !== (chain === undefined) &&
  !cancelled &&
  (address ?? ids ?? merchantRef ?? txHash) === undefined

/** The ranges of its index that a page is merged of, as conditions; one without any where it is one range. */
const rangesOf = (filter: ListFilter): ReadonlyArray<ReadonlyArray<Condition>> => {
  if (!isMerged(filter)) return [[]]
  return filter.status === undefined
    ? PaymentStatus.literals.map((status) => equal("status", status))
    : ChainName.literals.map((chain) => equal("chain", chain))
}

const equal = (column: string, value: string | undefined): ReadonlyArray<Condition> =>
  value === undefined ? [] : [[`${column} = ?`, value]]

/** A page, newest first. */
export const list = (db: Db, owner: Owner, filter: ListFilter) => {
  const { address, after, cancelled, chain, createdAfter, createdBefore, ids, limit, merchantRef, status } = filter
  // A cursor is below `createdBefore`: of two upper bounds SQLite might search by the wrong one.
  const below = after ?? (createdBefore === undefined ? undefined : { createdAt: createdBefore, sequence: 0 })
  const source = sourceOf(filter)
  const conditions: ReadonlyArray<Condition> = [
    ["account_id = ?", owner.account],
    ["mode = ?", owner.mode],
    ...(ids === undefined ? [] : [["id IN (SELECT value FROM json_each(?))", JSON.stringify(ids)] as const]),
    ...equal("merchant_ref", merchantRef && referenceOf(merchantRef)),
    ...equal("address", address),
    ...equal("status", status),
    ...equal("chain", chain),
    ...(cancelled ? [["failure_reason = 'cancelled'"] as const] : []),
    ...(createdAfter === undefined ? [] : [["created_at >= ?", createdAfter] as const]),
    ...(below === undefined ? [] : [["(created_at, sequence) < (?, ?)", below.createdAt, below.sequence] as const])
  ]
  const [from] = source
  const order = "ORDER BY created_at DESC, sequence DESC LIMIT ?"
  const ranges = rangesOf(filter).map((range) => [...conditions, ...range])
  const selects = ranges.map((range) => `WHERE ${range.map(([sql]) => sql).join(" AND ")}`)
  const params = [source, ...ranges.flat()].flatMap(([, ...given]) => given)
  // SQLite merges ranges that are in order, and reads no more of each than it needs: here only from the index.
  const merged = selects.map((where) => `SELECT sequence, created_at FROM ${from} ${where}`).join("\nUNION ALL ")
  const sql =
    selects.length === 1
      ? `SELECT ${columns} FROM ${from} ${selects.join()} ${order}`
      : `SELECT ${columns} FROM payments
         WHERE sequence IN (SELECT sequence FROM (${merged} ${order})) ORDER BY created_at DESC, sequence DESC`
  return Effect.map(db.all<PaymentRow>(sql, [...params, limit]), (rows) => rows.map(fromRow))
}

const idsOf = (rows: ReadonlyArray<{ readonly id: PaymentId }>) => rows.map(({ id }) => id)

/** From a text to all that begin with it. */
const beginsWith = (column: string, start: string): Condition => [
  `${column} >= ? AND ${column} < ?`,
  start,
  `${start}\u{10ffff}`
]

/** An owner's payments whose reference begins with a text, the first of them in the order of references. */
export const referenceBegins = (db: Db, { account, mode }: Owner, start: string, limit: number) => {
  const [begins, ...range] = beginsWith("merchant_ref", referenceOf(start))
  const sql = `SELECT id FROM payments WHERE account_id = ? AND mode = ? AND ${begins} LIMIT ?`
  return Effect.map(db.all<{ id: PaymentId }>(sql, [account, mode, ...range, limit]), idsOf)
}

/**
 * An owner's payments that show or received a transaction whose hash begins with `start` and ends with `end`, in lower case.
 * The indexes are of all owners: of each no more than `limit` entries are looked at.
 */
export const hashFits = (db: Db, { account, mode }: Owner, start: string, end: string, limit: number) => {
  const [begins, ...range] = beginsWith("tx_hash", start)
  const sql = `SELECT id FROM payments INDEXED BY sqlite_autoindex_payments_1
    WHERE account_id = ? AND mode = ? AND id IN (
      SELECT id FROM (SELECT id, tx_hash FROM payments INDEXED BY payments_transaction
        WHERE tx_hash IS NOT NULL AND ${begins} LIMIT ?) WHERE tx_hash GLOB ?
      UNION SELECT payment_id FROM (SELECT payment_id, tx_hash FROM receipts INDEXED BY receipts_transaction
        WHERE tx_hash IS NOT NULL AND payment_id IS NOT NULL AND ${begins} LIMIT ?) WHERE tx_hash GLOB ?)`
  const params = [...range, limit, `*${end}`]
  return Effect.map(db.all<{ id: PaymentId }>(sql, [account, mode, ...params, ...params]), idsOf)
}

/** A payment that a search has looked at. */
export interface Searched extends Cursor {
  readonly id: PaymentId
  readonly isHit: 0 | 1
}

/** What a search looks for, both in lower case: `address` is a pattern such as `0x12ab*`. */
export interface Sought {
  readonly text: string
  readonly address: string
}

/**
 * So many of an owner's payments behind `after`, newest first. Hits are those whose address fits, or whose metadata has the
 * text; the others say how far the search has come.
 */
export const searched = (
  db: Db,
  { account, mode }: Owner,
  { address, text }: Sought,
  after: Cursor | undefined,
  limit: number
) =>
  db.all<Searched>(
    `SELECT id, created_at AS createdAt, sequence,
       lower(address) GLOB ? OR instr(lower(metadata), ?) > 0 AS isHit
     FROM payments INDEXED BY payments_list
     WHERE account_id = ? AND mode = ? AND (created_at, sequence) < (?, ?)
     ORDER BY created_at DESC, sequence DESC LIMIT ?`,
    [address, text, account, mode, after?.createdAt ?? Number.MAX_SAFE_INTEGER, after?.sequence ?? 0, limit]
  )

/** What became of a payment, for counts. */
export interface Outcome extends Cursor {
  readonly status: PaymentStatus
  readonly failureReason: FailureReason | null
}

/** The outcomes of an owner's payments that were created at `since` or later: a page behind `after`, newest first. */
export const outcomes = (db: Db, { account, mode }: Owner, since: number, after: Cursor | undefined, limit: number) =>
  db.all<Outcome>(
    `SELECT created_at AS createdAt, sequence, status, failure_reason AS failureReason
     FROM payments INDEXED BY payments_list
     WHERE account_id = ? AND mode = ? AND created_at >= ? AND (created_at, sequence) < (?, ?)
     ORDER BY created_at DESC, sequence DESC LIMIT ?`,
    [account, mode, since, after?.createdAt ?? Number.MAX_SAFE_INTEGER, after?.sequence ?? 0, limit]
  )

/** What a confirmed payment brought, for sums. */
export interface Income extends Cursor {
  readonly confirmedAt: number
  readonly currency: string
  readonly chain: ChainName
  /** Base units, as text: what is asked for, and what came in its currency where that is known. */
  readonly amount: string
  readonly received: string | null
  /** Additional accepted money: base units of its currency, separated by commas. */
  readonly surplus: string | null
  /** The requested amount in USD when the payment was created; null where no price was known. */
  readonly usdValue: string | null
}

/** An owner's payments that were confirmed at `since` or later: a page behind `after`, the last confirmed first. */
export const incomes = (db: Db, { account, mode }: Owner, since: number, after: Income | undefined, limit: number) =>
  db.all<Income>(
    `SELECT created_at AS createdAt, sequence, confirmed_at AS confirmedAt, currency, chain, amount,
       amount_received AS received, usd_value AS usdValue,
       (SELECT group_concat(exceptions.amount) FROM exceptions INDEXED BY exceptions_payment
        WHERE payment_id = payments.id AND kind = 'overpaid' AND outcome = 'accepted') AS surplus
     FROM payments INDEXED BY payments_income
     WHERE account_id = ? AND mode = ? AND status = 'confirmed' AND confirmed_at >= ?
       AND (confirmed_at, sequence) < (?, ?)
     ORDER BY confirmed_at DESC, sequence DESC LIMIT ?`,
    [account, mode, since, after?.confirmedAt ?? Number.MAX_SAFE_INTEGER, after?.sequence ?? 0, limit]
  )

/** The references of payments, by their ids. */
export const references = (db: Db, payments: ReadonlyArray<PaymentId>) =>
  Effect.map(
    db.all<{ id: PaymentId; merchant_ref: string }>(
      "SELECT id, merchant_ref FROM payments WHERE id IN (SELECT value FROM json_each(?))",
      [JSON.stringify(payments)]
    ),
    (rows): ReadonlyMap<PaymentId, string> => new Map(rows.map(({ id, merchant_ref }) => [id, merchant_ref]))
  )

const hashForm = /^0x[0-9a-fA-F]{64}$/

/** The possible meanings of a text, the most exact first. */
const searchesOf = (text: string): ReadonlyArray<readonly [from: string, ...where: Condition]> => {
  const address = toChecksummed(text)
  const byTransaction = hashForm.test(text) ? [ofTransaction(text.toLowerCase())] : []
  // The index begins with the owner: one seek for each account and mode.
  const anyOwner = `account_id IN (SELECT id FROM accounts) AND mode IN (${modes.map((mode) => `'${mode}'`).join(", ")})`
  return [
    ["payments", "id = ?", text],
    ...(address === undefined ? [] : [["payments", "address = ?", address] as const]),
    ...byTransaction.map(([from, ...params]) => [from, "true", ...params] as const),
    ["payments", `${anyOwner} AND merchant_ref = ?`, referenceOf(text)]
  ]
}

/**
 * The payments that an operator may mean, of all accounts and modes: the one with that id, else the one with that address,
 * else those of that transaction, else those with that reference. A merchant can choose a reference that looks like
 * another's id: it never stands for that. Newest first.
 */
export const meantBy = Effect.fn("PaymentListRepo.meantBy")(function* (db: Db, text: string, limit: number) {
  for (const [from, where, ...params] of searchesOf(text)) {
    const rows = yield* db.all<PaymentRow>(
      `SELECT ${columns} FROM ${from} WHERE ${where} ORDER BY created_at DESC, sequence DESC LIMIT ?`,
      [...params, limit]
    )
    if (rows.length > 0) return rows.map(fromRow)
  }
  return []
})
