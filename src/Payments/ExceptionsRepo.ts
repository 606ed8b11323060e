/**
 * The table `exceptions`. `sync` brings the stored exceptions of an address in line with those that follow from its
 * receipts (`exceptions.ts`); `close` and `sendBack` record decisions. An exception keeps its id and its key
 * permanently, and is never deleted: it is closed, and reopened where its money is back. Each change increments its
 * revision, until `report` gives it to the outbox.
 */
import { Effect } from "effect"
import { getAddress, type Hex } from "viem"
import type { Mode, Network } from "../Domain/Chain.ts"
import { type ExceptionContent, isCertain, type PaymentException, type Refund } from "../Domain/Exception.ts"
import { exceptionId, type PaymentId } from "../Domain/Ids.ts"
import { type Db, execute, Tx } from "../Sql.ts"
import { refundsText, selectExceptions as select } from "./exceptionRows.ts"

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

/** The exceptions found, less refunded money that `withoutSentBack` could not subtract from the receipts. */
const outstanding = (
  known: ReadonlyMap<string, PaymentException>,
  found: ReadonlyArray<ExceptionContent>
): ReadonlyArray<ExceptionContent> =>
  found.flatMap((one) => {
    const amount = one.amount - (isCertain(one) ? 0n : (known.get(one.key)?.sentBack ?? 0n))
    return amount > 0n ? [{ ...one, amount }] : []
  })

/** The exceptions found, and the part of each open exception that is still reported. */
const withHeld = (
  stored: ReadonlyArray<PaymentException>,
  found: ReadonlyArray<ExceptionContent>,
  reported: ReadonlyArray<ExceptionContent>
): ReadonlyArray<ExceptionContent> => {
  const all = new Map(found.map((one) => [one.key, one]))
  const open = new Map(stored.flatMap((one) => (one.status === "open" ? [[one.key, one]] : [])))
  for (const one of reported) {
    const before = open.get(one.key)
    const known = before?.amount ?? 0n
    const kept = known < one.amount ? known : one.amount
    // The sender stays as corroborated receipts reported it.
    if (kept > (all.get(one.key)?.amount ?? 0n)) all.set(one.key, { ...one, sender: before?.sender, amount: kept })
  }
  return [...all.values()]
}

/**
 * Opens an exception, or reopens a closed one, with that amount; earlier refunds of it stay recorded. `at` in Unix
 * milliseconds.
 */
export const open = (place: ExceptionCursor, one: ExceptionContent, at: number) =>
  execute(
    `INSERT INTO exceptions (id, address, key, payment_id, account_id, wallet, wallet_index, kind, chain, mode, tx_hash,
         sender, currency, amount, block_number, opened_at)
       SELECT ?, ?, ?, owner.*, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM (
         SELECT id, account_id, wallet, wallet_index FROM payments WHERE id = ?
         UNION ALL SELECT NULL, NULL, wallet, wallet_index FROM gap_addresses WHERE address = ? AND ? IS NULL
         UNION ALL SELECT NULL, NULL, NULL, NULL LIMIT 1) AS owner
       WHERE true
       ON CONFLICT (address, key) DO UPDATE SET amount = excluded.amount, sender = excluded.sender, closed_at = NULL,
         outcome = NULL, revision = revision + 1, decision_tx = iif(sent_back = '0', NULL, decision_tx),
         note = iif(sent_back = '0', NULL, note)`,
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

/**
 * Brings the stored exceptions of an address in line with its receipts: opens new ones and those whose money is back,
 * and closes as `gone` those whose money is no longer there. An accepted one stays closed unless its money has grown.
 * Refunded money is no longer in `found`; anything found under such a key is further money, and open. Gives the
 * exceptions that were opened.
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
    const known = new Map(stored.map((exception) => [exception.key, exception]))
    const opened: Array<ExceptionContent> = []
    for (const one of withHeld(stored, outstanding(known, found), outstanding(known, reported))) {
      const before = known.get(one.key)
      known.delete(one.key)
      if (before?.status === "accepted" && one.amount <= before.amount) continue
      if (before?.status === "open" && before.amount === one.amount) continue
      yield* open(place, one, at)
      if (before?.status !== "open") opened.push(one)
    }
    for (const { id, status } of known.values()) if (status === "open") yield* close(id, "gone", at)
    return opened
  })

/**
 * The input of a decision: the transaction of a refund, or the one that was accepted, a note, and whether money is decided on
 * that no second provider has.
 */
export interface DecisionDetail {
  readonly txHash?: string | undefined
  readonly note?: string | undefined
  readonly uncorroborated?: boolean | undefined
}

/** Records that `part` of an open exception's money was sent back; it stays open for the rest. `at` in Unix milliseconds. */
export const sendBack = (
  { amount, id, refunds, sentBack }: PaymentException,
  part: bigint,
  at: number,
  { note, txHash }: DecisionDetail = {}
) =>
  Effect.flatMap(Tx, (tx) => {
    const all = sentBack + part
    const rest = amount - part
    const isAll = rest <= 0n
    return tx.run(
      `UPDATE exceptions SET amount = ?, sent_back = ?, refunds = ?, closed_at = ?, outcome = ?, revision = revision + 1,
         decision_tx = coalesce(?, decision_tx), note = coalesce(?, note) WHERE id = ? AND closed_at IS NULL`,
      [
        `${isAll ? all : rest}`,
        `${all}`,
        refundsText([...refunds, { amount: part, at, txHash, note }]),
        isAll ? at : null,
        isAll ? "refunded" : null,
        txHash ?? null,
        note ?? null,
        id
      ]
    )
  })

/** Adds the transaction to a part that was sent back and noted without one. Nothing else of the exception changes. */
export const nameRefund = ({ decisionTx, id, refunds, status }: PaymentException, part: Refund, txHash: string) =>
  Effect.flatMap(Tx, (tx) => {
    const named = refunds.map((one) => (one === part ? { ...one, txHash } : one))
    const last = named.findLast((one) => one.txHash !== undefined)?.txHash
    return tx.run("UPDATE exceptions SET refunds = ?, decision_tx = ? WHERE id = ?", [
      refundsText(named),
      (status === "accepted" ? decisionTx : last) ?? null,
      id
    ])
  })

/** Closes an open exception; `at` in Unix milliseconds. */
export const close = (id: string, outcome: "accepted" | "gone", at: number, { note, txHash }: DecisionDetail = {}) =>
  execute(
    `UPDATE exceptions SET closed_at = ?, outcome = ?, revision = revision + 1,
         decision_tx = iif(? = 'accepted', ?, decision_tx), note = iif(? = 'accepted', ?, note)
       WHERE id = ? AND closed_at IS NULL`,
    [at, outcome, outcome, txHash ?? null, outcome, note ?? null, id]
  )
