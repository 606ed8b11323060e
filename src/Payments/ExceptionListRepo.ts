/** Lists of exceptions: those shown with payments, those for operators to decide, and an owner's own. Only reads. */
import { Array as Arr, Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import type { ShownExceptions } from "../Domain/Event.ts"
import type { ExceptionKind, PaymentException } from "../Domain/Exception.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import { allOf, countRows, type Db, when } from "../Sql.ts"
import { selectExceptions as select } from "./exceptionRows.ts"

// Open before closed; among each, `found_late` and `reorged` first (paid for nothing, or delivered for nothing), then the
// oldest: no number of small exceptions pushes the important ones off the first page.
const pressingFirst = "ORDER BY rank, opened_at, id"

const shown = (found: ReadonlyArray<PaymentException>, limit: number): ShownExceptions => ({
  exceptions: found.slice(0, limit),
  more: found.length > limit
})

/** The first of a payment's exceptions, closed ones too, and whether there are more. */
export const firstOfPayment = (db: Db, payment: PaymentId, limit: number) =>
  Effect.map(select(db, `WHERE payment_id = ? ${pressingFirst} LIMIT ?`, [payment, limit + 1]), (found) =>
    shown(found, limit)
  )

/** Where an exception is in an owner's list. */
export const placeOf = ({ openedAt, sequence }: PaymentException) => ({ createdAt: openedAt, sequence })

/** Maximum count of exceptions of a kind. */
export const countLimit = 10_000

/** How many exceptions of a kind wait for a decision, of all accounts; at most `countLimit` are counted. */
export const countOpenOfKind = (db: Db, mode: Mode, kind: ExceptionKind) =>
  countRows(db, `SELECT 1 FROM exceptions WHERE mode = ? AND kind = ? AND closed_at IS NULL LIMIT ${countLimit}`, [
    mode,
    kind
  ])

/** Maximum number of exceptions that a response shows with a payment. */
export const shownInAnswers = 100

/** The same for each of several payments, in one query. */
export const firstOfPayments = (db: Db, payments: ReadonlyArray<PaymentId>, limit: number) =>
  Effect.map(
    select(
      db,
      pressingFirst,
      [JSON.stringify(payments), limit + 1],
      `(SELECT value AS payment FROM json_each(?)) AS listed CROSS JOIN exceptions ON sequence IN (
         SELECT sequence FROM exceptions WHERE payment_id = listed.payment ${pressingFirst} LIMIT ?)`
    ),
    (found) => {
      const byPayment = Arr.groupBy(found, ({ payment = "" }) => payment)
      return (payment: PaymentId) => shown(byPayment[payment] ?? [], limit)
    }
  )

/** A page of open exceptions. */
export interface OpenFilter {
  readonly limit: number
  /** Of one payment only. */
  readonly payment?: string | undefined
  /** The id of the last exception of the page before. */
  readonly after?: string | undefined
}

/** The open exceptions, a page. */
export const open = (db: Db, { after, limit, payment }: OpenFilter) => {
  // Also where the exception `after` has been closed since: its place in the order is that of an open one.
  const behind = `(rank, opened_at, id) > (
    SELECT iif(kind IN ('found_late', 'reorged'), 0, 1), opened_at, id FROM exceptions WHERE id = ?)`
  const { params, where } = allOf([["closed_at IS NULL"], ...when("payment_id = ?", payment), ...when(behind, after)])
  return select(db, `WHERE ${where} ${pressingFirst} LIMIT ?`, [...params, limit])
}

/** An owner's exceptions, a page. */
export interface ListFilter {
  readonly isOpen?: boolean | undefined
  readonly kind?: ExceptionKind | undefined
  readonly chain?: ChainName | undefined
  readonly payment?: string | undefined
  readonly limit: number
  /** The last one of the page before; Unix milliseconds. */
  readonly after?: { readonly createdAt: number; readonly sequence: number } | undefined
}

/**
 * Newest first. Every combination of status, kind and chain has its own index, and the exceptions of one payment another one.
 * It is named in the query: after an ANALYZE, SQLite might prefer to search all rows of a rare kind.
 */
export const list = (db: Db, owner: Owner, { after, chain, isOpen, kind, limit, payment }: ListFilter) => {
  const { params, where } = allOf([
    ["account_id = ? AND mode = ?", owner.account, owner.mode],
    ...when("payment_id = ?", payment),
    ...when("is_open = ?", isOpen === undefined ? undefined : Number(isOpen)),
    ...when("kind = ?", kind),
    ...when("chain = ?", chain),
    ...when("(opened_at, sequence) < (?, ?)", after?.createdAt, after?.sequence)
  ])
  const by = { _status: isOpen, _kind: kind, _chain: chain }
  const filters = Object.entries(by).flatMap(([name, value]) => (value === undefined ? [] : [name]))
  const index = payment === undefined ? `exceptions_list${filters.join("")}` : "exceptions_list_payment"
  const rest = `WHERE ${where} ORDER BY opened_at DESC, sequence DESC LIMIT ?`
  return select(db, rest, [...params, limit], `exceptions INDEXED BY ${index}`)
}

/** The number of an owner's open exceptions, counted up to `limit`. */
export const countOpen = (db: Db, { account, mode }: Owner, limit: number) =>
  countRows(
    db,
    `SELECT 1 FROM exceptions INDEXED BY exceptions_list_status
     WHERE account_id = ? AND mode = ? AND is_open = 1 LIMIT ?`,
    [account, mode, limit]
  )
