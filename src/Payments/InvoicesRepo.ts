/**
 * The table `invoices`, and the status of each, which follows its payments: `storeTransitions` calls `followPayment` for a
 * payment that is the choice of one. Reads take any connection. Times in Unix milliseconds.
 */
import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { CheckoutToken, InvoiceId } from "../Domain/Ids.ts"
import { type Invoice, type InvoiceStatus, invoiceStatusOf, type PaymentChoice } from "../Domain/Invoice.ts"
import type { Outbox } from "../Events/Outbox.ts"
import { allOf, allRows, type Db, execute, oneRow, oneValue, type Param, Tx, when } from "../Sql.ts"
import * as Payments from "./PaymentsRepo.ts"

interface Row extends Omit<Invoice, "choices" | "price"> {
  readonly amount: string
  readonly currency: Invoice["price"]["currency"]
  /** Separated by spaces. */
  readonly choices: string
}

const columns = `sequence, id, checkout_token AS checkoutToken, account_id AS account, mode, merchant_ref AS merchantRef,
  amount, currency, choices, status, created_at AS createdAt, expires_at AS expiresAt, metadata, redirect_url AS redirectUrl,
  webhook_url AS webhookUrl, language, payment_id AS payment, changes`

const fromRow = ({ amount, choices, currency, ...rest }: Row): Invoice => ({
  ...rest,
  price: { amount, currency },
  choices: choices.split(" ") as ReadonlyArray<PaymentChoice>
})

const select = (condition: string) => `SELECT ${columns} FROM invoices WHERE ${condition}`

const first = (db: Db, condition: string, params: ReadonlyArray<Param>) =>
  Effect.map(oneRow<Row>(db, select(condition), params), (row) => row && fromRow(row))

const all = (db: Db, condition: string, params: ReadonlyArray<Param>) =>
  Effect.map(allRows<Row>(db, select(condition), params), (rows) => rows.map(fromRow))

export const byId = (db: Db, id: string) => first(db, "id = ?", [id])

/** An invoice of this owner; undefined for one of another account or mode. */
export const byOwner = (db: Db, { account, mode }: Owner, id: string) =>
  first(db, "id = ? AND account_id = ? AND mode = ?", [id, account, mode])

/** The invoice of a checkout page; undefined where there is none. */
export const byCheckoutToken = (db: Db, token: CheckoutToken) => first(db, "checkout_token = ?", [token])

/** The owner's newest invoice of a reference. */
export const byMerchantRef = (db: Db, { account, mode }: Owner, merchantRef: string) =>
  first(db, "account_id = ? AND mode = ? AND merchant_ref = ? ORDER BY sequence DESC LIMIT 1", [
    account,
    mode,
    merchantRef
  ])

export interface InvoiceFilter {
  readonly status?: InvoiceStatus | undefined
  readonly merchantRef?: string | undefined
  readonly createdAfter?: number | undefined
  readonly createdBefore?: number | undefined
  readonly limit: number
  readonly after?: Pick<Invoice, "createdAt" | "sequence"> | undefined
}

/** A page of an owner's invoices, newest first. */
export const list = (db: Db, { account, mode }: Owner, filter: InvoiceFilter) => {
  const { after, createdAfter, createdBefore, limit, merchantRef, status } = filter
  const { params, where } = allOf([
    ["account_id = ? AND mode = ?", account, mode],
    ...when("status = ?", status),
    ...when("merchant_ref = ?", merchantRef),
    ...when("created_at >= ?", createdAfter),
    ...when("created_at < ?", createdBefore),
    ...when("(created_at, sequence) < (?, ?)", after?.createdAt, after?.sequence)
  ])
  return all(db, `${where} ORDER BY created_at DESC, sequence DESC LIMIT ?`, [...params, limit])
}

/** Stores a new invoice. */
export const insert = Effect.fnUntraced(function* (invoice: Omit<Invoice, "sequence" | "payment" | "changes">) {
  const tx = yield* Tx
  const { price } = invoice
  const sequence = yield* oneValue<number>(
    tx,
    `INSERT INTO invoices (id, checkout_token, account_id, mode, merchant_ref, amount, currency, choices, status, created_at,
       expires_at, metadata, redirect_url, webhook_url, language)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING sequence`,
    [
      ...[invoice.id, invoice.checkoutToken, invoice.account, invoice.mode, invoice.merchantRef ?? null],
      ...[price.amount, price.currency, invoice.choices.join(" "), invoice.status, invoice.createdAt],
      ...[invoice.expiresAt, invoice.metadata, invoice.redirectUrl ?? null, invoice.webhookUrl ?? null],
      invoice.language ?? null
    ]
  )
  return { ...invoice, sequence: sequence ?? 0, payment: undefined, changes: 0 } satisfies Invoice
})

/** The payment of the customer's choice, or none before the next one. */
export const setPayment = (id: InvoiceId, payment: Invoice["payment"]) =>
  execute("UPDATE invoices SET payment_id = ? WHERE id = ?", [payment ?? null, id])

/** Open invoices without an open payment that end up to `until`, the first of them. */
export const ending = (db: Db, until: number, limit: number) =>
  all(
    db,
    `status = 'open' AND expires_at <= ? AND NOT EXISTS (
       SELECT 1 FROM payments WHERE invoice_id = invoices.id AND status IN ('pending', 'detecting'))
     ORDER BY expires_at LIMIT ?`,
    [until, limit]
  )

/** When the next open invoice ends, of those that end after `after`. */
export const nextEnd = (db: Db, after: number) =>
  oneValue<number>(db, "SELECT min(expires_at) FROM invoices WHERE status = 'open' AND expires_at > ?", [after])

/** Stores a status with its event; one that is open again after a reorg has none. `at` in Unix milliseconds. */
export const setStatus = Effect.fnUntraced(function* (
  outbox: Outbox["Type"],
  before: Invoice,
  status: InvoiceStatus,
  at: number
) {
  const tx = yield* Tx
  const invoice: Invoice = { ...before, status, changes: before.changes + 1 }
  yield* tx.run("UPDATE invoices SET status = ?, changes = ? WHERE id = ?", [status, invoice.changes, invoice.id])
  if (status !== "open") {
    yield* outbox.publishInvoice({ invoice, payments: yield* Payments.ofInvoice(tx, invoice.id) }, at)
  }
  yield* outbox.tellPlugins(invoice.id, at)
})

/** Brings an invoice to the status that its payments give it at `at`, Unix milliseconds. */
export const followPayment = Effect.fnUntraced(function* (outbox: Outbox["Type"], id: InvoiceId, at: number) {
  const tx = yield* Tx
  const invoice = yield* byId(tx, id)
  if (invoice === undefined) return
  const status = invoiceStatusOf(invoice, yield* Payments.ofInvoice(tx, id), at)
  if (status !== invoice.status) yield* setStatus(outbox, invoice, status, at)
})
