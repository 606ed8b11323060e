/**
 * The table `payments`, and the transitions of each payment's status. Reads take any connection; `insert` and `update` run
 * in the transaction of the caller. `PaymentListRepo.ts` lists and searches. Times in Unix milliseconds, amounts in base
 * units.
 */
import { Duration, Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { Network } from "../Domain/Chain.ts"
import type { PaymentCurrency } from "../Domain/Currency.ts"
import type { InvoiceId, PaymentId } from "../Domain/Ids.ts"
import { deadlineSql, type NewPayment, type Payment, type PricedInvoice } from "../Domain/Payment.ts"
import { allRows, anyRow, countRows, type Db, oneValue, type Param, Tx, withoutNulls } from "../Sql.ts"
import type { AddressSource } from "./addresses/Addresses.ts"

/** The fields of a payment that are stored in another form. */
type Converted = Pick<Payment, "amount" | "amountReceived" | "floor" | "invoice" | "received" | "refunded" | "token">

export interface PaymentRow extends Omit<Payment, keyof Converted> {
  readonly amount: string
  readonly amountReceived: string | undefined
  readonly floor: string
  readonly received: string
  readonly refunded: string
  /** JSON. */
  readonly token: string | undefined
  readonly invoice: string | undefined
}

/** The columns of a `PaymentRow`. */
export const columns = `sequence, id, checkout_token AS checkoutToken, account_id AS account, mode, merchant_ref AS merchantRef,
  amount, currency,
  (SELECT json_object('id', id, 'contract', contract, 'decimals', decimals) FROM tokens WHERE id = token) AS token,
  (SELECT json_object('id', id, 'checkoutToken', checkout_token, 'merchantRef', merchant_ref,
     'price', json_object('amount', amount, 'currency', currency)) FROM invoices WHERE id = invoice_id) AS invoice,
  chain, address, status, created_at AS createdAt, expires_at AS expiresAt, due_at AS dueAt, settle_grace AS settleGrace,
  tolerance_bps AS toleranceBps, floor, created_head AS createdHead, metadata, webhook_url AS webhookUrl,
  redirect_url AS redirectUrl, quote_id AS quoteId, usd_value AS usdValue, amount_received AS amountReceived,
  tx_hash AS txHash, confirmed_at AS confirmedAt, failure_reason AS failureReason, ended_at AS endedAt, updates, received,
  refunded`

const pricedInvoice = ({ merchantRef, ...invoice }: PricedInvoice & { readonly merchantRef: string | null }) => ({
  ...invoice,
  merchantRef: merchantRef ?? undefined
})

/** In the row itself: to copy so many fields takes several times as long. */
export const fromRow = (row: PaymentRow): Payment => {
  const fields: Omit<Payment, keyof Converted> = withoutNulls(row)
  const { amount, amountReceived, floor, invoice, received, refunded, token } = row
  const converted: Converted = {
    amount: BigInt(amount),
    amountReceived: amountReceived === undefined ? undefined : BigInt(amountReceived),
    floor: BigInt(floor),
    invoice: invoice === undefined ? undefined : pricedInvoice(JSON.parse(invoice)),
    received: BigInt(received),
    refunded: BigInt(refunded),
    token: token === undefined ? undefined : JSON.parse(token)
  }
  return Object.assign(fields, converted)
}

/**
 * Stores a new payment and assigns its `sequence`, `createdHead` and `dueAt`. Undefined where the account already has a
 * payment with that `merchantRef` in that mode.
 *
 * `dueAt` is set where the chain's clock is ahead of this machine's, since receipts are dated by the chain's clock.
 *
 * @param behind milliseconds by which this machine's clock is behind the chain's. Where that is unknown, the time of the
 *   chain's stored head counts: no other provider has corroborated it.
 */
export const insert = (payment: NewPayment, source: AddressSource, behind?: number) =>
  Effect.map(
    Effect.flatMap(Tx, (tx) =>
      tx.get<{ sequence: number; created_head: number | null; due_at: number | null }>(
        `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, token, chain, address,
         wallet, wallet_index, status, created_at, expires_at, settle_grace, tolerance_bps, floor, created_head, due_at,
         metadata, webhook_url, redirect_url, quote_id, invoice_id, usd_value)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT head_number FROM scans WHERE chain = ? AND mode = ?),
         nullif(max(? + ?, (SELECT coalesce(max(head_time), 0) * ? FROM scans WHERE chain = ? AND mode = ?) + ?), ?),
         ?, ?, ?, ?, ?, ?)
       ON CONFLICT (account_id, mode, merchant_ref) DO NOTHING
       RETURNING sequence, created_head, due_at`,
        [
          payment.id,
          payment.checkoutToken,
          payment.account,
          payment.mode,
          payment.merchantRef,
          payment.amount.toString(),
          payment.currency,
          payment.token?.id ?? null,
          payment.chain,
          payment.address,
          source.wallet,
          source.index,
          payment.status,
          payment.createdAt,
          payment.expiresAt,
          payment.settleGrace,
          payment.toleranceBps,
          payment.floor.toString(),
          payment.chain,
          payment.mode,
          payment.expiresAt,
          behind ?? 0,
          behind === undefined ? 1000 : 0,
          payment.chain,
          payment.mode,
          payment.expiresAt - payment.createdAt,
          payment.expiresAt,
          payment.metadata,
          payment.webhookUrl ?? null,
          payment.redirectUrl ?? null,
          payment.quoteId ?? null,
          payment.invoice?.id ?? null,
          payment.usdValue ?? null
        ]
      )
    ),
    (row): Payment | undefined =>
      row && {
        sequence: row.sequence,
        createdHead: row.created_head ?? undefined,
        dueAt: row.due_at ?? undefined,
        endedAt: undefined,
        updates: 0,
        received: 0n,
        refunded: 0n,
        // Last: fields after such a large spread take 6 µs.
        ...payment,
        usdValue: payment.usdValue
      }
  )

/** Stores the new state of a payment, and the transition where its status changed; `at` in Unix milliseconds. */
export const update = (before: Payment, after: Payment, at: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    yield* tx.run(
      `UPDATE payments SET status = ?, amount_received = ?, tx_hash = ?, confirmed_at = ?, failure_reason = ?, ended_at = ?,
         updates = ?, received = ?, refunded = ? WHERE id = ?`,
      [
        after.status,
        after.amountReceived?.toString() ?? null,
        after.txHash ?? null,
        after.confirmedAt ?? null,
        after.failureReason ?? null,
        after.endedAt ?? null,
        after.updates,
        `${after.received}`,
        `${after.refunded}`,
        after.id
      ]
    )
    if (before.status === after.status) return
    yield* tx.run(
      `INSERT INTO transitions (payment_id, ordinal, from_status, to_status, at)
       VALUES (?, (SELECT count(*) FROM transitions WHERE payment_id = ?), ?, ?, ?)`,
      [after.id, after.id, before.status, after.status, at]
    )
  })

// Built once: looking up a newly built text among the prepared statements takes longer than reading the row.
const where = (condition: string) => `SELECT ${columns} FROM payments WHERE ${condition}`
const selects = {
  id: where("id = ?"),
  checkoutToken: where("checkout_token = ?"),
  owner: where("id = ? AND account_id = ? AND mode = ?")
}

const first = (db: Db, sql: string, params: ReadonlyArray<Param>) =>
  Effect.map(db.get<PaymentRow>(sql, params), (row) => (row === undefined ? undefined : fromRow(row)))

const all = (db: Db, condition: string, params: ReadonlyArray<Param>) =>
  Effect.map(db.all<PaymentRow>(where(condition), params), (rows) => rows.map(fromRow))

export const byId = (db: Db, id: string) => first(db, selects.id, [id])

/** The payments of an invoice's choices, oldest first. */
export const ofInvoice = (db: Db, invoice: InvoiceId) => all(db, "invoice_id = ? ORDER BY sequence", [invoice])

/** The payment of a checkout page; undefined where there is none. */
export const byCheckoutToken = (db: Db, token: string) => first(db, selects.checkoutToken, [token])

/** A payment of this owner; undefined for one of another account or mode. */
export const byOwner = (db: Db, owner: Owner, id: string) => first(db, selects.owner, [id, owner.account, owner.mode])

export const idByMerchantRef = (db: Db, owner: Owner, merchantRef: string) =>
  oneValue<PaymentId>(db, "SELECT id FROM payments WHERE account_id = ? AND mode = ? AND merchant_ref = ?", [
    owner.account,
    owner.mode,
    merchantRef
  ])

/** Detecting payments with money in a block up to number `deepest`, which has its confirmations: they may confirm now. */
export const detectingDownTo = (db: Db, { chain, mode }: Network, deepest: number) =>
  all(
    db,
    `status = 'detecting' AND chain = ? AND mode = ? AND EXISTS (
       SELECT 1 FROM receipts WHERE payment_id = payments.id AND chain = payments.chain AND listed = 'own' AND canonical = 1 AND block_number <= ?)`,
    [chain, mode, deepest]
  )

/**
 * Open payments of a chain that are due before `before`, Unix milliseconds, in that order, behind the cursor `after`.
 *
 * @param searched only payments for which a second provider has been searched
 */
export const openExpiredBefore = (
  db: Db,
  { chain, mode }: Network,
  before: number,
  after: { readonly deadline: number; readonly sequence: number },
  limit: number,
  searched: boolean
) =>
  all(
    db,
    `status IN ('pending', 'detecting') AND chain = ? AND mode = ? AND ${deadlineSql} < ?
       ${searched ? "AND EXISTS (SELECT 1 FROM searches WHERE payment_id = payments.id)" : ""}
       AND (${deadlineSql}, sequence) > (?, ?)
     ORDER BY ${deadlineSql}, sequence LIMIT ?`,
    [chain, mode, before, after.deadline, after.sequence, limit]
  )

/** The open payments of a chain that are due first; `currency`: only those in it. */
export const openOn = (db: Db, { chain, mode }: Network, currency: PaymentCurrency | undefined, limit: number) =>
  all(
    db,
    `status IN ('pending', 'detecting') AND chain = ? AND mode = ?
       AND currency = coalesce(?, currency) ORDER BY ${deadlineSql}, sequence LIMIT ?`,
    [chain, mode, currency ?? null, limit]
  )

/** Confirmed payments of a chain with orphaned receipts in blocks above `above`, up to `upTo`. */
export const confirmedWithOrphans = (db: Db, { chain, mode }: Network, above: number, upTo: number) =>
  all(
    db,
    `status = 'confirmed' AND chain = ? AND id IN (
       SELECT payment_id FROM receipts
       WHERE canonical = 0 AND chain = ? AND mode = ? AND block_number > ? AND block_number <= ?)`,
    [chain, chain, mode, above, upTo]
  )

/**
 * The oldest thousand detecting payments of a chain whose money, however much it is, has its confirmations: the last block of it,
 * and since when that was seen and was so, Unix milliseconds.
 */
export const paidDownTo = (db: Db, { chain, mode }: Network, head: number, confirmations: number) =>
  allRows<{
    readonly id: PaymentId
    readonly amount: string
    readonly received: string
    readonly toleranceBps: number
    readonly usdValue?: string
    readonly block: number
    readonly since: number
  }>(
    db,
    `SELECT *, max(seen, 1000 * coalesce((SELECT time FROM blocks
         WHERE chain = ? AND mode = ? AND number >= block + ? - 1 ORDER BY number LIMIT 1), 0)) AS since
     FROM (SELECT p.id, p.amount, amount_received AS received, tolerance_bps AS toleranceBps, usd_value AS usdValue,
         max(block_number) AS block, max(seen_at) AS seen
       FROM (SELECT * FROM payments INDEXED BY payments_detecting
         WHERE status = 'detecting' AND chain = ? AND mode = ? LIMIT 1000) p
       CROSS JOIN receipts r INDEXED BY receipts_payment ON payment_id = p.id AND listed = 'own' AND canonical = 1
       GROUP BY p.sequence, p.id, p.amount, amount_received, tolerance_bps, usd_value) AS reached
     WHERE block <= ?`,
    [chain, mode, confirmations, chain, mode, head - confirmations + 1]
  )

const confirmedOn = "payments INDEXED BY payments_confirmed WHERE chain = ? AND mode = ? AND confirmed_at"

/** When the last payment of a chain was confirmed, Unix milliseconds. */
export const lastConfirmed = (db: Db, { chain, mode }: Network) =>
  oneValue<number>(db, `SELECT max(confirmed_at) FROM ${confirmedOn} IS NOT NULL`, [chain, mode])

const week = Duration.toMillis("1 week")

/**
 * Whether payments were confirmed steadily in the four weeks before the last one: twenty at least, for two weeks or more, and
 * always less than `gap` apart. A step goes as far as the gap allows: there are few, however many payments there are.
 */
export const confirmedSteadily = (db: Db, { chain, mode }: Network, last: number, gap: number) => {
  const on = [chain, mode]
  const from = last - 4 * week
  return anyRow(
    db,
    `WITH RECURSIVE step (at) AS (
       SELECT min(confirmed_at) FROM ${confirmedOn} >= ?
       UNION ALL SELECT (SELECT max(confirmed_at) FROM ${confirmedOn} > at AND confirmed_at < at + ?)
         FROM step WHERE at IS NOT NULL)
     SELECT 1 FROM step WHERE at = ? AND (SELECT min(confirmed_at) FROM ${confirmedOn} >= ?) <= ?
       AND (SELECT count(*) FROM (SELECT 1 FROM ${confirmedOn} >= ? LIMIT 20)) = 20`,
    [...on, from, ...on, gap, last, ...on, from, last - 2 * week, ...on, from]
  )
}

/** The number of open payments of a chain, counted up to `limit`. */
export const countOpen = (db: Db, { chain, mode }: Network, limit: number) =>
  countRows(db, `SELECT 1 FROM payments WHERE chain = ? AND mode = ? AND status IN ('pending', 'detecting') LIMIT ?`, [
    chain,
    mode,
    limit
  ])
