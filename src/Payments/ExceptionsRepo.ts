/**
 * The table `exceptions`. `sync` brings the stored exceptions of an address in line with those that follow from its
 * money (`standing.ts`); `accept` records a decision, and refunds have a table of their own. An exception keeps its id and its key
 * permanently, and is never deleted: it is closed, and reopened where its money is back. Each change increments its
 * revision, until `report` gives it to the outbox. Lists: those shown with payments, those for operators, and an owner's own.
 */
import { Array as Arr, Effect } from "effect"
import { getAddress, type Hex } from "viem"
import type { Owner } from "../Domain/Account.ts"
import { sum } from "../Domain/Amount.ts"
import type { ChainName, Mode, Network } from "../Domain/Chain.ts"
import type { ShownExceptions } from "../Domain/Event.ts"
import type { ExceptionContent, ExceptionKind, PaymentException } from "../Domain/Exception.ts"
import { exceptionId, type PaymentId } from "../Domain/Ids.ts"
import { isStanding, type RefundedPart } from "../Domain/Refund.ts"
import { allOf, allRows, countRows, type Db, execute, type Param, Tx, when, withoutNulls } from "../Sql.ts"

interface ExceptionRow extends Omit<PaymentException, "amount" | "refunds" | "sentBack"> {
  readonly amount: string
  readonly sentBack: string
  /** JSON. */
  readonly refunds: string
}

const columns = `sequence, id, address, key, payment_id AS payment, account_id AS account, wallet_index AS "index",
  account_number AS walletAccount, kind, chain, mode, tx_hash AS txHash, sender, currency, amount, sent_back AS sentBack,
  block_number AS block, opened_at AS openedAt, closed_at AS closedAt, coalesce(outcome, 'open') AS status,
  decision_tx AS decisionTx, note, revision,
  (SELECT json_group_array(json_object('id', r.id, 'amount', p.amount, 'status', r.status, 'txHash', r.tx_hash,
     'note', r.note, 'at', r.created_at) ORDER BY r.sequence)
   FROM refund_parts p JOIN refunds r ON r.id = p.refund_id WHERE p.exception_id = exceptions.id) AS refunds,
  (SELECT merchant_ref FROM payments WHERE payments.id = payment_id) AS merchantRef`

interface StoredPart extends Omit<RefundedPart, "amount"> {
  readonly amount: string
}

const withWallet = "LEFT JOIN wallets ON fingerprint = wallet"

const toException = ({ amount, decisionTx, refunds: stored, sentBack, ...row }: ExceptionRow): PaymentException => {
  const refunds = (JSON.parse(stored) as ReadonlyArray<StoredPart>).map(
    (part): RefundedPart => ({ ...withoutNulls(part), amount: BigInt(part.amount) })
  )
  const sent = refunds.findLast((one) => isStanding(one) && one.txHash !== undefined)
  return {
    ...row,
    amount: BigInt(amount),
    sentBack: BigInt(sentBack),
    refunds,
    decisionTx: decisionTx ?? (row.status === "accepted" ? undefined : sent?.txHash)
  }
}

/** The exceptions that `rest` selects. `from`: the table, as the query names it. */
export const selectExceptions = (db: Db, rest: string, params: ReadonlyArray<Param>, from = "exceptions") =>
  Effect.map(allRows<ExceptionRow>(db, `SELECT ${columns} FROM ${from} ${withWallet} ${rest}`, params), (rows) =>
    rows.map(toException)
  )

const oldestFirst = "ORDER BY opened_at, id"

/** All exceptions of a payment, closed ones too. */
export const ofPayment = (db: Db, payment: PaymentId) =>
  selectExceptions(db, `WHERE payment_id = ? ${oldestFirst}`, [payment])

/** The exceptions on a chain of an address (lower case) whose payment is lost. */
export const unknownAt = (db: Db, { chain, mode }: Network, address: string) =>
  selectExceptions(db, "WHERE address = ? AND payment_id IS NULL AND chain = ? AND mode = ?", [address, chain, mode])

export const byId = (db: Db, id: string) => Effect.map(selectExceptions(db, "WHERE id = ?", [id]), ([found]) => found)

/** The exceptions of a payment with changes that have no event yet, oldest first. They count as reported from now on. */
export const report = (payment: PaymentId) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const changed = yield* selectExceptions(
      tx,
      "WHERE payment_id = ? AND revision > reported ORDER BY opened_at, sequence",
      [payment]
    )
    if (changed.length > 0) {
      yield* tx.run("UPDATE exceptions SET reported = revision WHERE payment_id = ? AND revision > reported", [payment])
    }
    return changed
  })

/** The address of exceptions, and its payment. */
export interface ExceptionCursor {
  /** Lower case. */
  readonly address: string
  readonly mode: Mode
  readonly payment: PaymentId | undefined
}

/** Opens an exception, or reopens a closed one, with that amount. `at` in Unix milliseconds. */
const openOne = (place: ExceptionCursor, one: ExceptionContent, at: number) =>
  execute(
    `INSERT INTO exceptions (id, address, key, payment_id, account_id, wallet, wallet_index, kind, chain, mode, tx_hash,
         sender, currency, amount, block_number, opened_at)
       SELECT ?, ?, ?, owner.*, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM (
         SELECT id, account_id, wallet, wallet_index FROM payments WHERE id = ?
         UNION ALL SELECT NULL, NULL, wallet, wallet_index FROM gap_addresses WHERE address = ? AND CAST(? AS TEXT) IS NULL
         UNION ALL SELECT NULL, NULL, NULL, NULL LIMIT 1) AS owner
       WHERE true
       ON CONFLICT (address, key) DO UPDATE SET amount = excluded.amount, sender = excluded.sender, closed_at = NULL,
         outcome = NULL, revision = exceptions.revision + 1, decision_tx = NULL, note = NULL`,
    [
      exceptionId(place.address, one.key),
      place.address,
      one.key,
      one.kind,
      one.chain,
      place.mode,
      one.txHash ?? null,
      one.sender ?? null,
      one.currency,
      one.amount.toString(),
      one.block ?? null,
      at,
      place.payment ?? null,
      getAddress(place.address as Hex),
      place.payment ?? null
    ]
  )

/** Base units of an exception's money that count as sent back. */
const returnedOf = ({ refunds }: PaymentException): bigint =>
  sum(refunds.filter(isStanding).map(({ amount }) => amount))

/** Closes as `gone` what is no longer there, and as `refunded` where refunds since have sent all of it back. */
const closeMissing = Effect.fnUntraced(function* (one: PaymentException, at: number) {
  const { amount, id, sentBack } = one
  const returned = returnedOf(one)
  const isRefunded = returned > sentBack && returned - sentBack >= amount
  yield* execute(`UPDATE exceptions SET closed_at = ?, outcome = ?, amount = ?, revision = revision + 1 WHERE id = ?`, [
    at,
    isRefunded ? "refunded" : "gone",
    `${isRefunded ? returned : amount}`,
    id
  ])
})

/**
 * Brings the stored exceptions of an address in line with what the fold of its money says: opens new ones and those whose
 * money is back, and closes those whose money is no longer there, or was sent back. An accepted one stays closed unless its
 * money has grown. Gives the exceptions that were opened.
 *
 * @param stored all exceptions stored for the address
 * @param due the exceptions that there should be
 * @param at Unix milliseconds
 */
export const sync = (
  place: ExceptionCursor,
  stored: ReadonlyArray<PaymentException>,
  due: ReadonlyArray<ExceptionContent>,
  at: number
) =>
  Effect.gen(function* () {
    const known = new Map(stored.map((exception) => [exception.key, exception]))
    const opened: Array<ExceptionContent> = []
    for (const one of due) {
      const before = known.get(one.key)
      known.delete(one.key)
      if (before?.status === "accepted" && one.amount <= before.amount) continue
      if (before?.status === "open" && before.amount === one.amount) continue
      yield* openOne(place, one, at)
      if (before?.status !== "open") opened.push(one)
    }
    for (const one of known.values()) if (one.status === "open") yield* closeMissing(one, at)
    for (const one of stored) {
      const returned = returnedOf(one)
      if (returned !== one.sentBack) {
        yield* execute("UPDATE exceptions SET sent_back = ? WHERE id = ?", [`${returned}`, one.id])
      }
    }
    return opened
  })

/**
 * The input of a decision: the transaction that paid, or that sends money back, a note, and whether money is decided on that no
 * second provider has.
 */
export interface DecisionDetail {
  readonly txHash?: string | undefined
  readonly note?: string | undefined
  readonly uncorroborated?: boolean | undefined
}

/** Accepts the money of an open exception; `at` in Unix milliseconds. */
export const accept = (id: string, at: number, { note, txHash }: DecisionDetail = {}) =>
  execute(
    `UPDATE exceptions SET closed_at = ?, outcome = 'accepted', revision = revision + 1, decision_tx = ?, note = ?
       WHERE id = ? AND closed_at IS NULL`,
    [at, txHash ?? null, note ?? null, id]
  )

// Open before closed; among each, `found_late` and `reorged` first (paid for nothing, or delivered for nothing), then the
// oldest: no number of small exceptions pushes the important ones off the first page.
const pressingFirst = "ORDER BY rank, opened_at, id"

const shown = (found: ReadonlyArray<PaymentException>, limit: number): ShownExceptions => ({
  exceptions: found.slice(0, limit),
  more: found.length > limit
})

/** The first of a payment's exceptions, closed ones too, and whether there are more. */
export const firstOfPayment = (db: Db, payment: PaymentId, limit: number) =>
  Effect.map(selectExceptions(db, `WHERE payment_id = ? ${pressingFirst} LIMIT ?`, [payment, limit + 1]), (found) =>
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
    selectExceptions(
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
  return selectExceptions(db, `WHERE ${where} ${pressingFirst} LIMIT ?`, [...params, limit])
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
  return selectExceptions(db, rest, [...params, limit], `exceptions INDEXED BY ${index}`)
}

/** The number of an owner's open exceptions, counted up to `limit`. */
export const countOpen = (db: Db, { account, mode }: Owner, limit: number) =>
  countRows(
    db,
    `SELECT 1 FROM exceptions INDEXED BY exceptions_list_status
     WHERE account_id = ? AND mode = ? AND is_open = 1 LIMIT ?`,
    [account, mode, limit]
  )
