/**
 * The table `exceptions`. `sync` brings the stored exceptions of an address in line with those that follow from its
 * money (`standing.ts`); `accept` records a decision, and refunds have a table of their own. An exception keeps its id and its key
 * permanently, and is never deleted: it is closed, and reopened where its money is back. Each change increments its
 * revision, until `report` gives it to the outbox.
 */
import { Effect } from "effect"
import { getAddress, type Hex } from "viem"
import { sum } from "../Domain/Amount.ts"
import type { Mode, Network } from "../Domain/Chain.ts"
import type { ExceptionContent, PaymentException } from "../Domain/Exception.ts"
import { exceptionId, type PaymentId } from "../Domain/Ids.ts"
import { isStanding } from "../Domain/Refund.ts"
import { type Db, execute, Tx } from "../Sql.ts"
import { selectExceptions as select } from "./exceptionRows.ts"

const oldestFirst = "ORDER BY opened_at, id"

/** All exceptions of a payment, closed ones too. */
export const ofPayment = (db: Db, payment: PaymentId) => select(db, `WHERE payment_id = ? ${oldestFirst}`, [payment])

/** The exceptions on a chain of an address (lower case) whose payment is lost. */
export const unknownAt = (db: Db, { chain, mode }: Network, address: string) =>
  select(db, "WHERE address = ? AND payment_id IS NULL AND chain = ? AND mode = ?", [address, chain, mode])

export const byId = (db: Db, id: string) => Effect.map(select(db, "WHERE id = ?", [id]), ([found]) => found)

/** The exceptions of a payment with changes that have no event yet, oldest first. They count as reported from now on. */
export const report = (payment: PaymentId) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const changed = yield* select(tx, "WHERE payment_id = ? AND revision > reported ORDER BY opened_at, sequence", [
      payment
    ])
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
const open = (place: ExceptionCursor, one: ExceptionContent, at: number) =>
  execute(
    `INSERT INTO exceptions (id, address, key, payment_id, account_id, wallet, wallet_index, kind, chain, mode, tx_hash,
         sender, currency, amount, block_number, opened_at)
       SELECT ?, ?, ?, owner.*, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM (
         SELECT id, account_id, wallet, wallet_index FROM payments WHERE id = ?
         UNION ALL SELECT NULL, NULL, wallet, wallet_index FROM gap_addresses WHERE address = ? AND ? IS NULL
         UNION ALL SELECT NULL, NULL, NULL, NULL LIMIT 1) AS owner
       WHERE true
       ON CONFLICT (address, key) DO UPDATE SET amount = excluded.amount, sender = excluded.sender, closed_at = NULL,
         outcome = NULL, revision = revision + 1, decision_tx = NULL, note = NULL`,
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
      yield* open(place, one, at)
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
