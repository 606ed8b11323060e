/**
 * The table `exceptions`. `sync` brings the stored exceptions of an address in line with those that follow from its receipts
 * (`exceptions.ts`); `close` and `sendBack` record operators' decisions. An exception keeps its id and its key for ever, and
 * is never deleted: it is closed, and opened again where its money is there again.
 */
import { Effect } from "effect"
import type { ChainName, Mode, Network } from "../Domain/Chain.ts"
import {
  type ExceptionContent,
  type ExceptionKind,
  type ExceptionStatus,
  isCertain,
  type PaymentException
} from "../Domain/Exception.ts"
import { exceptionId, type PaymentId } from "../Domain/Ids.ts"
import { type Db, type Param, Tx } from "../Sql.ts"

interface ExceptionRow {
  readonly id: string
  readonly address: string
  readonly key: string
  readonly payment_id: string | null
  readonly kind: ExceptionKind
  readonly chain: ChainName
  readonly mode: Mode
  readonly tx_hash: string | null
  readonly currency: string
  readonly amount: string
  readonly sent_back: string
  readonly block_number: number | null
  readonly opened_at: number
  readonly outcome: Exclude<ExceptionStatus, "open"> | null
}

const columns =
  "id, address, key, payment_id, kind, chain, mode, tx_hash, currency, amount, sent_back, block_number, opened_at, outcome"

const fromRow = (row: ExceptionRow): PaymentException => ({
  id: row.id,
  address: row.address,
  key: row.key,
  payment: (row.payment_id ?? undefined) as PaymentId | undefined,
  kind: row.kind,
  chain: row.chain,
  mode: row.mode,
  txHash: row.tx_hash ?? undefined,
  currency: row.currency,
  amount: BigInt(row.amount),
  sentBack: BigInt(row.sent_back),
  block: row.block_number ?? undefined,
  openedAt: row.opened_at,
  status: row.outcome ?? "open"
})

const select = (db: Db, rest: string, params: ReadonlyArray<Param>) =>
  Effect.map(db.all<ExceptionRow>(`SELECT ${columns} FROM exceptions ${rest}`, params), (rows) => rows.map(fromRow))

const oldestFirst = "ORDER BY opened_at, id"

/** All exceptions of a payment, closed ones too. */
export const ofPayment = (db: Db, payment: PaymentId) => select(db, `WHERE payment_id = ? ${oldestFirst}`, [payment])

// Open before closed; among each, `found_late` and `reorged` first (paid for nothing, or delivered for nothing), then the
// oldest: no number of small exceptions pushes the important ones off the first page.
const pressingFirst = "ORDER BY rank, opened_at, id"

/** The first of a payment's exceptions, closed ones too, and whether there are more. */
export const firstOfPayment = (db: Db, payment: PaymentId, limit: number) =>
  Effect.map(select(db, `WHERE payment_id = ? ${pressingFirst} LIMIT ?`, [payment, limit + 1]), (found) => ({
    exceptions: found.slice(0, limit),
    more: found.length > limit
  }))

/** The exceptions on a chain of an address (lower case) whose payment is lost. */
export const unknownAt = (db: Db, { chain, mode }: Network, address: string) =>
  select(db, "WHERE address = ? AND payment_id IS NULL AND chain = ? AND mode = ?", [address, chain, mode])

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
  const conditions: ReadonlyArray<readonly [sql: string, ...params: ReadonlyArray<Param>]> = [
    ["closed_at IS NULL"],
    ...(payment === undefined ? [] : [["payment_id = ?", payment] as const]),
    ...(after === undefined ? [] : [[behind, after] as const])
  ]
  return select(db, `WHERE ${conditions.map(([sql]) => sql).join(" AND ")} ${pressingFirst} LIMIT ?`, [
    ...conditions.flatMap(([, ...params]) => params),
    limit
  ])
}

export const byId = (db: Db, id: string) => Effect.map(select(db, "WHERE id = ?", [id]), ([found]) => found)

/** The address of exceptions, and its payment. */
export interface ExceptionCursor {
  /** Lower case. */
  readonly address: string
  readonly mode: Mode
  readonly payment: PaymentId | undefined
}

/** What was found, less the refunded money that `withoutSentBack` could not take out of the receipts. */
const outstanding = (
  known: ReadonlyMap<string, PaymentException>,
  found: ReadonlyArray<ExceptionContent>
): ReadonlyArray<ExceptionContent> =>
  found.flatMap((one) => {
    const amount = one.amount - (isCertain(one) ? 0n : (known.get(one.key)?.sentBack ?? 0n))
    return amount > 0n ? [{ ...one, amount }] : []
  })

/** What was found, and of each open exception as much as is still reported. */
const withHeld = (
  stored: ReadonlyArray<PaymentException>,
  found: ReadonlyArray<ExceptionContent>,
  reported: ReadonlyArray<ExceptionContent>
): ReadonlyArray<ExceptionContent> => {
  const all = new Map(found.map((one) => [one.key, one]))
  const open = new Map(stored.flatMap((one) => (one.status === "open" ? [[one.key, one.amount]] : [])))
  for (const one of reported) {
    const before = open.get(one.key) ?? 0n
    const held = before < one.amount ? before : one.amount
    if (held > (all.get(one.key)?.amount ?? 0n)) all.set(one.key, { ...one, amount: held })
  }
  return [...all.values()]
}

/**
 * Brings the stored exceptions of an address in line with its receipts: opens new ones and those whose money is there again,
 * and closes as `gone` those whose money is not there any more. An accepted one stays closed unless it is more money by now.
 * Refunded money is not in `found` any more; anything found under such a key is further money, and open. Gives the exceptions
 * that were opened.
 *
 * @param stored all exceptions stored for the address
 * @param found the exceptions by corroborated receipts
 * @param at Unix milliseconds
 * @param reported the exceptions by all receipts. They open nothing, but keep open ones as they are: after a reorg, money
 *   that is mined again is uncorroborated at first
 */
export const sync = (
  place: ExceptionCursor,
  stored: ReadonlyArray<PaymentException>,
  found: ReadonlyArray<ExceptionContent>,
  at: number,
  reported: ReadonlyArray<ExceptionContent> = found
) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const known = new Map(stored.map((exception) => [exception.key, exception]))
    const opened: Array<ExceptionContent> = []
    for (const one of withHeld(stored, outstanding(known, found), outstanding(known, reported))) {
      const before = known.get(one.key)
      known.delete(one.key)
      if (before?.status === "accepted" && one.amount <= before.amount) continue
      if (before?.status === "open" && before.amount === one.amount) continue
      yield* tx.run(
        `INSERT INTO exceptions (id, address, key, payment_id, kind, chain, mode, tx_hash, currency, amount, block_number,
           opened_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (address, key) DO UPDATE SET amount = excluded.amount, closed_at = NULL, outcome = NULL`,
        [
          exceptionId(place.address, one.key),
          place.address,
          one.key,
          place.payment ?? null,
          one.kind,
          one.chain,
          place.mode,
          one.txHash ?? null,
          one.currency,
          one.amount.toString(),
          one.block ?? null,
          at
        ]
      )
      if (before?.status !== "open") opened.push(one)
    }
    for (const { id, status } of known.values()) if (status === "open") yield* close(id, "gone", at)
    return opened
  })

/** Records that `part` of an open exception's money was sent back; it stays open for the rest. `at` in Unix milliseconds. */
export const sendBack = ({ amount, id, sentBack }: PaymentException, part: bigint, at: number) =>
  Effect.flatMap(Tx, (tx) => {
    const all = sentBack + part
    const rest = amount - part
    const isAll = rest <= 0n
    return tx.run(
      "UPDATE exceptions SET amount = ?, sent_back = ?, closed_at = ?, outcome = ? WHERE id = ? AND closed_at IS NULL",
      [`${isAll ? all : rest}`, `${all}`, isAll ? at : null, isAll ? "refunded" : null, id]
    )
  })

/** Closes an open exception; `at` in Unix milliseconds. */
export const close = (id: string, outcome: "accepted" | "gone", at: number) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run("UPDATE exceptions SET closed_at = ?, outcome = ? WHERE id = ? AND closed_at IS NULL", [at, outcome, id])
  )
