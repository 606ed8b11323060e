/**
 * The lists of payments: a merchant's by filters, a page at a time, and an operator's search by any identifier of a
 * payment. Only reads, each by an index. Times in Unix milliseconds.
 */
import { Effect, Schema } from "effect"
import type { Owner } from "../Domain/Account.ts"
import { toChecksummed } from "../Domain/Address.ts"
import { ChainName, modes } from "../Domain/Chain.ts"
import { CheckoutToken, type PaymentId } from "../Domain/Ids.ts"
import { termsOf } from "../Domain/Metadata.ts"
import { type FailureReason, type Payment, PaymentStatus, referenceOf } from "../Domain/Payment.ts"
import { betweenParts } from "../Http/parts.ts"
import { allOf, allValues, type Db, oneValue, type SqlCondition, when } from "../Sql.ts"
import { lastIndexed } from "./metadata.ts"
import { columns, fromRow, type PaymentRow } from "./PaymentsRepo.ts"

/** The last payment of the page before. */
export interface Cursor {
  readonly createdAt: number
  readonly sequence: number
}

export interface ListFilter {
  readonly status?: PaymentStatus | undefined
  /** Only those that were cancelled, of all that have expired, without `status`; false: none of them. */
  readonly cancelled?: boolean | undefined
  readonly chain?: ChainName | undefined
  readonly merchantRef?: string | undefined
  /** Some that were found otherwise. */
  readonly ids?: ReadonlyArray<PaymentId> | undefined
  /** What has an id and one payment, see `objects`; or a checkout page, by its address or its token. */
  readonly object?: string | undefined
  /** EIP-55 form. */
  readonly address?: string | undefined
  /** Lower case. */
  readonly txHash?: string | undefined
  /** Who sent something to the payment; lower case. */
  readonly from?: string | undefined
  /** Values in its metadata, by their keys; in any case of letters. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** The value of any key of its metadata; in any case of letters. */
  readonly value?: string | undefined
  /** What names payments as a whole, see `namedBy`. */
  readonly search?: string | undefined
  /** Payments created then or later. */
  readonly createdAfter?: number | undefined
  /** Payments created before. */
  readonly createdBefore?: number | undefined
  readonly limit: number
  /** From a page of the same filters. */
  readonly after?: Cursor | undefined
}

/** A filter that a text stands for. */
type Meaning = Pick<ListFilter, "address" | "from" | "merchantRef" | "object" | "txHash" | "value">

/** How the payment of an object is found by its id, by the prefix of that. */
const objects: ReadonlyMap<string, string> = new Map([
  ["pay", "?"],
  ["exc", "(SELECT payment_id FROM exceptions WHERE id = ?)"],
  ["ref", "(SELECT payment_id FROM refunds WHERE id = ?)"],
  ["quote", "(SELECT id FROM payments WHERE quote_id = ?)"],
  ["inv", "(SELECT payment_id FROM invoices WHERE id = ?)"]
])

const ofPage = `SELECT id FROM payments WHERE checkout_token = ?
  UNION SELECT payment_id FROM invoices WHERE checkout_token = ?`

/** The condition for the payment of an object; undefined for a text that names none. */
const ofObject = (text: string): SqlCondition | undefined => {
  const [prefix = ""] = text.split("_", 1)
  const found = objects.get(prefix)
  if (found !== undefined) return [`id = ${found}`, text]
  const [, token = text] = /^https?:\/\/\S+\/pay\/([A-Za-z0-9_-]{30})(?:[/?#]|$)/.exec(text) ?? []
  return Schema.is(CheckoutToken)(token) ? [`id IN (${ofPage})`, token, token] : undefined
}

/**
 * The payments of a transaction: it brought a receipt of theirs, in any block, or they show it. A transaction that a
 * reorg orphaned counts too: a webhook may have named it. A transaction's payments are few: they are found first, and
 * looked up by their ids, of which the first index is.
 */
const ofTransaction = (txHash: string): SqlCondition => [
  `(SELECT payment_id FROM receipts INDEXED BY receipts_transaction
      WHERE tx_hash = ? AND payment_id IS NOT NULL AND tx_hash IS NOT NULL
    UNION SELECT id FROM payments INDEXED BY payments_transaction WHERE tx_hash = ? AND tx_hash IS NOT NULL)
   CROSS JOIN payments INDEXED BY sqlite_autoindex_payments_1 ON payments.id = payment_id`,
  txHash,
  txHash
]

const isUnique = ({ address, ids, merchantRef, object, txHash }: ListFilter): boolean =>
  (address ?? ids ?? merchantRef ?? object ?? txHash) !== undefined

/**
 * The source of the rows, in the order of a page, so that the cost does not depend on the size of the table. The index
 * is named: after an ANALYZE, SQLite might prefer to search all rows of a rare chain for a status. A reference and an
 * address are unique, and have the index of that.
 */
const sourceOf = (filter: ListFilter): SqlCondition => {
  const { cancelled, chain, ids, object, status, txHash } = filter
  if (ids !== undefined || object !== undefined) return ["payments INDEXED BY sqlite_autoindex_payments_1"]
  if (txHash !== undefined) return ofTransaction(txHash)
  if (isUnique(filter)) return ["payments"]
  if (cancelled) return [`payments INDEXED BY payments_list_cancelled${chain === undefined ? "" : "_chain"}`]
  return [`payments INDEXED BY payments_list${status === undefined && chain === undefined ? "" : "_status_chain"}`]
}

/** The conditions of each range of its index that a page is merged of: for a status every chain, for a chain every status. */
const withRanges = (
  conditions: ReadonlyArray<SqlCondition>,
  filter: ListFilter
): ReadonlyArray<ReadonlyArray<SqlCondition>> => {
  const { cancelled, chain, status } = filter
  const isMerged = (status === undefined) !== (chain === undefined) && !cancelled && !isUnique(filter)
  if (!isMerged) return [conditions]
  const [column, values] = status === undefined ? ["status", PaymentStatus.literals] : ["chain", ChainName.literals]
  return values.map((value) => [...conditions, ...when(`${column} = ?`, value)])
}

// The indexes of references begin with the owner: one seek for each account and mode.
const anyOwner = `account_id IN (SELECT id FROM accounts) AND mode IN (${modes.map((mode) => `'${mode}'`).join(", ")})`

/** Whose payments, of which page. */
const placed = (owner: Owner | undefined, filter: ListFilter): ReadonlyArray<SqlCondition> => {
  const { after, createdAfter, createdBefore } = filter
  // A cursor is below `createdBefore`: of two upper bounds SQLite might search by the wrong one.
  const below = after ?? (createdBefore === undefined ? undefined : { createdAt: createdBefore, sequence: 0 })
  return [
    owner === undefined ? [anyOwner] : ["account_id = ? AND mode = ?", owner.account, owner.mode],
    ...when("created_at >= ?", createdAfter),
    ...when("(created_at, sequence) < (?, ?)", below?.createdAt, below?.sequence)
  ]
}

const isFrom = `EXISTS (SELECT 1 FROM payment_senders AS sent WHERE sent.account_id = payments.account_id
  AND sent.mode = payments.mode AND sender = ? AND sent.created_at = payments.created_at
  AND sent.sequence = payments.sequence)`

const hasTerm = `(sequence > ${lastIndexed} OR EXISTS (SELECT 1 FROM metadata_terms AS term
  WHERE term.account_id = payments.account_id AND term.mode = payments.mode AND key = ? AND value = ?
  AND term.created_at = payments.created_at AND term.sequence = payments.sequence))`

const conditionsOf = ({
  address,
  cancelled,
  chain,
  from,
  ids,
  merchantRef,
  metadata = {},
  object,
  status
}: ListFilter): ReadonlyArray<SqlCondition> => [
  ...when("id IN (SELECT value FROM json_each(?))", ids && JSON.stringify(ids)),
  ...(object === undefined ? [] : [ofObject(object) ?? (["false"] as const)]),
  ...when("merchant_ref = ?", merchantRef && referenceOf(merchantRef)),
  ...when("address = ?", address),
  ...when("status = ?", status),
  ...when("chain = ?", chain),
  ...(cancelled === undefined ? [] : [[`failure_reason ${cancelled ? "=" : "IS DISTINCT FROM"} 'cancelled'`] as const]),
  ...when(isFrom, from),
  ...Object.entries(metadata).map(([key, value]) => [hasTerm, key, value.toLowerCase()] as const)
]

const newestFirst = "ORDER BY created_at DESC, sequence DESC"

const amongPlaces = (places: ReadonlyArray<Cursor>): SqlCondition => [
  "sequence IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
  JSON.stringify(places.map(({ sequence }) => sequence))
]

const rowsBy = (
  db: Db,
  [from, ...given]: SqlCondition,
  ranges: ReadonlyArray<ReadonlyArray<SqlCondition>>,
  limit: number
) => {
  const selects = ranges.map((range) => `WHERE ${allOf(range).where}`)
  const params = [...given, ...allOf(ranges.flat()).params, limit]
  // SQLite merges ranges that are in order, and reads no more of each than it needs: here only from the index.
  const merged = selects.map((where) => `SELECT sequence, created_at FROM ${from} ${where}`).join("\nUNION ALL ")
  const sql =
    selects.length === 1
      ? `SELECT ${columns} FROM ${from} ${selects.join()} ${newestFirst} LIMIT ?`
      : `SELECT ${columns} FROM payments
         WHERE sequence IN (SELECT sequence FROM (${merged} ${newestFirst} LIMIT ?)) ${newestFirst}`
  return Effect.map(db.all<PaymentRow>(sql, params), (rows) => rows.map(fromRow))
}

/** Keys of an owner's metadata that are searched for a value. */
const mostKeys = 50

const keysOf = (db: Db, { account, mode }: Owner) => {
  const next = "SELECT min(key) FROM metadata_terms WHERE account_id = ? AND mode = ?"
  const sql = `WITH RECURSIVE keys (key) AS (
      ${next} UNION ALL SELECT (${next} AND key > keys.key) FROM keys WHERE keys.key IS NOT NULL)
    SELECT key FROM keys WHERE key IS NOT NULL LIMIT ${mostKeys}`
  return allValues<string>(db, sql, [account, mode, account, mode])
}

/** Where payments are found by one filter, newest first: tables with the beginning of a condition. */
type Found = ReadonlyArray<SqlCondition>

/** `key`: undefined for any. */
const byValue = (keys: ReadonlyArray<string>, value: string, key?: string): Found => [
  ...keys.map((each) => ["metadata_terms WHERE key = ? AND value = ?", each, value.toLowerCase()] as const),
  // Those of the last seconds, which `hasTerms` looks through.
  [
    `payments NOT INDEXED WHERE sequence > ${lastIndexed} AND instr(metadata, ?) > 0`,
    key === undefined ? ":" : `${JSON.stringify(key)}:`
  ]
]

/** The places of the next payments that are found so, whatever the other filters. */
const placesBy = (db: Db, owner: Owner, found: Found, filter: ListFilter, limit: number) => {
  const page = allOf(placed(owner, filter))
  // Each by its index, and no more of it than the page has.
  const selects = found.map(
    ([sql]) => `SELECT * FROM (SELECT created_at AS createdAt, sequence
      FROM ${sql} AND ${page.where} ${newestFirst} LIMIT ?)`
  )
  const params = found.flatMap(([, ...given]) => [...given, ...page.params, limit])
  return db.all<Cursor>(`${selects.join("\nUNION ")} ORDER BY createdAt DESC, sequence DESC LIMIT ?`, [
    ...params,
    limit
  ])
}

/** Of a payment whose metadata is not indexed yet. */
const hasTerms = ({ metadata }: Payment, { metadata: sought = {}, value }: ListFilter): boolean => {
  const terms = new Map(termsOf(metadata))
  return (
    Object.entries(sought).every(([key, each]) => terms.get(key) === each.toLowerCase()) &&
    (value === undefined || [...terms.values()].includes(value.toLowerCase()))
  )
}

/** Payments that are looked at between two turns of the event loop. */
const atOnce = 1_000

/** Where a sender and metadata lead: to a value anywhere, or else, of several, by which the fewest are found. */
const rarestOf = Effect.fnUntraced(function* (db: Db, owner: Owner, filter: ListFilter) {
  const { from, metadata = {}, value } = filter
  if (value !== undefined) return byValue(yield* keysOf(db, owner), value)
  const all: ReadonlyArray<Found> = [
    ...when("payment_senders WHERE sender = ?", from).map((one) => [one]),
    ...Object.entries(metadata).map(([key, each]) => byValue([key], each, key))
  ]
  if (all.length < 2) return all[0]
  const count = (found: Found) => Effect.map(placesBy(db, owner, found, filter, atOnce), (places) => places.length)
  const counts = yield* Effect.forEach(all, count, { concurrency: 1 })
  return all[counts.indexOf(Math.min(...counts))]
})

/** A page by a filter without `search`. */
const pageBy = Effect.fnUntraced(function* (db: Db, owner: Owner | undefined, filter: ListFilter) {
  const { limit, metadata, value } = filter
  const isSought = metadata !== undefined || value !== undefined
  const indexedTo = isSought ? ((yield* oneValue<number>(db, `SELECT ${lastIndexed}`)) ?? 0) : undefined
  const isIndexed = ({ sequence }: Payment) => indexedTo === undefined || sequence <= indexedTo
  const found = owner === undefined || isUnique(filter) ? undefined : yield* rarestOf(db, owner, filter)
  const kept: Array<Payment> = []
  let { after } = filter
  // All of the page at first; then more, where other filters leave out some of what was found.
  for (let size = limit; ; size = atOnce) {
    const next = { ...filter, after }
    const places = owner && found && (yield* placesBy(db, owner, found, next, size))
    const rows = yield* places === undefined
      ? rowsBy(db, sourceOf(filter), withRanges([...placed(owner, next), ...conditionsOf(filter)], filter), size)
      : rowsBy(db, ["payments"], [[amongPlaces(places), ...conditionsOf(filter)]], size)
    kept.push(...rows.filter((payment) => isIndexed(payment) || hasTerms(payment, filter)))
    const looked: ReadonlyArray<Cursor> = places ?? rows
    if (kept.length >= limit || looked.length < size) return kept.slice(0, limit)
    after = looked.at(-1)
    yield* betweenParts
  }
})

/** A page, newest first. Without an owner: of all, by what only few payments have. */
export const list = Effect.fnUntraced(function* (db: Db, owner: Owner | undefined, filter: ListFilter) {
  const { search } = filter
  if (search === undefined) return yield* pageBy(db, owner, filter)
  const named: Partial<ListFilter> | undefined = yield* namedBy(db, owner, search.trim())
  // What it stands for, and another value of the same filter: nothing is both.
  const isBoth = Object.entries({ ...named }).some(
    ([name, value]) => (filter[name as keyof ListFilter] ?? value) !== value
  )
  return named === undefined || isBoth ? [] : yield* pageBy(db, owner, { ...filter, ...named })
})

/** From a text to all that begin with it. */
const beginsWith = (column: string, start: string): SqlCondition => [
  `${column} >= ? AND ${column} < ?`,
  start,
  `${start}\u{10ffff}`
]

/** An owner's payments whose reference begins with a text, the first of them in the order of references. */
export const referenceBegins = (db: Db, { account, mode }: Owner, start: string, limit: number) => {
  const [begins, ...range] = beginsWith("merchant_ref", referenceOf(start))
  const sql = `SELECT id FROM payments WHERE account_id = ? AND mode = ? AND ${begins} LIMIT ?`
  return allValues<PaymentId>(db, sql, [account, mode, ...range, limit])
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
        WHERE tx_hash IS NOT NULL AND ${begins} LIMIT ?) WHERE tx_hash LIKE ?
      UNION SELECT payment_id FROM (SELECT payment_id, tx_hash FROM receipts INDEXED BY receipts_transaction
        WHERE tx_hash IS NOT NULL AND payment_id IS NOT NULL AND ${begins} LIMIT ?) WHERE tx_hash LIKE ?)`
  const params = [...range, limit, `%${end}`]
  return allValues<PaymentId>(db, sql, [account, mode, ...params, ...params])
}

/** A payment that a search has looked at. */
export interface Searched extends Cursor {
  readonly id: PaymentId
  readonly isHit: 0 | 1
}

/** What a search looks for, both in lower case: `address` is a pattern of LIKE such as `0x12ab%`. */
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
       lower(address) LIKE ? OR instr(lower(metadata), ?) > 0 AS isHit
     FROM payments INDEXED BY payments_list
     WHERE account_id = ? AND mode = ? AND (created_at, sequence) < (?, ?)
     ORDER BY created_at DESC, sequence DESC LIMIT ?`,
    [address, text, account, mode, after?.createdAt ?? Number.MAX_SAFE_INTEGER, after?.sequence ?? 0, limit]
  )

/** What became of a payment, for counts. */
export interface Outcome extends Cursor {
  readonly status: PaymentStatus
  readonly failureReason: FailureReason | null
  readonly confirmedAt: number | null
}

/** The outcomes of an owner's payments that were created at `since` or later: a page behind `after`, newest first. */
export const outcomes = (db: Db, { account, mode }: Owner, since: number, after: Cursor | undefined, limit: number) =>
  db.all<Outcome>(
    `SELECT created_at AS createdAt, sequence, status, failure_reason AS failureReason, confirmed_at AS confirmedAt
     FROM payments INDEXED BY payments_list
     WHERE account_id = ? AND mode = ? AND created_at >= ? AND (created_at, sequence) < (?, ?)
     ORDER BY created_at DESC, sequence DESC LIMIT ?`,
    [account, mode, since, after?.createdAt ?? Number.MAX_SAFE_INTEGER, after?.sequence ?? 0, limit]
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

/** What a text may stand for, the most exact first. */
const meaningsOf = (text: string): ReadonlyArray<Meaning> => {
  const address = toChecksummed(text)
  return [
    ...(ofObject(text) === undefined ? [] : [{ object: text }]),
    ...(address === undefined ? [] : [{ address }, { from: address.toLowerCase() }]),
    ...(/^0x[0-9a-fA-F]{64}$/.test(text) ? [{ txHash: text.toLowerCase() }] : []),
    { merchantRef: text },
    { value: text }
  ]
}

/**
 * The filter by which a text names payments as a whole: of what it may stand for, the first that there are any of. A merchant
 * can choose a reference that looks like another's id: it never stands for that. Undefined where there are none.
 *
 * @param owner without one, of all accounts and modes, and neither by a sender nor by metadata
 */
export const namedBy = Effect.fn("PaymentListRepo.namedBy")(function* (db: Db, owner: Owner | undefined, text: string) {
  for (const meaning of meaningsOf(text)) {
    if (owner === undefined && ("from" in meaning || "value" in meaning)) continue
    if ((yield* pageBy(db, owner, { ...meaning, limit: 1 })).length > 0) return meaning
  }
  return undefined
})

/** The payments that an operator may mean, of all accounts and modes. Newest first. */
export const meantBy = Effect.fn("PaymentListRepo.meantBy")(function* (db: Db, text: string, limit: number) {
  const named = yield* namedBy(db, undefined, text)
  return named === undefined ? [] : yield* list(db, undefined, { ...named, limit })
})
