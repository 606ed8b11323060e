/** What an operator does with invoices: look at them, cancel one. */
import { Clock, Effect, Schema } from "effect"
import { mustExist } from "../Auth/accountOperations.ts"
import { UnknownAccount } from "../Domain/Account.ts"
import { Mode, modes } from "../Domain/Chain.ts"
import {
  type Invoice,
  InvoiceNotOpen,
  InvoiceObject,
  InvoiceStatus,
  type InvoiceWithPayments,
  notOpen
} from "../Domain/Invoice.ts"
import { isEnded } from "../Domain/Payment.ts"
import { Outbox } from "../Events/Outbox.ts"
import { invoiceObject } from "../Events/paymentObject.ts"
import { alternatives, must } from "../lib/annotations.ts"
import { defaultPageSize } from "../lib/parameters.ts"
import { AccountField, maybe, NotFound, pageFields, SomeMode } from "../Operations/inputFields.ts"
import { operation, withFlag } from "../Operations/operation.ts"
import { endCancelled } from "../Payments/cancellation.ts"
import * as InvoicesRepo from "../Payments/InvoicesRepo.ts"
import * as PaymentsRepo from "../Payments/PaymentsRepo.ts"
import { Settings } from "../Settings.ts"
import { type CommitWith, type Db, Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"

const OperatorInvoice = Schema.Struct({ account: Schema.String, mode: Mode, ...InvoiceObject.fields })
export type OperatorInvoice = typeof OperatorInvoice.Type

const noInvoice = (id: string) =>
  new NotFound({ message: `There is no invoice ${id}: tilld invoices list shows the ids` })

const view = Effect.fnUntraced(function* (found: InvoiceWithPayments) {
  const { account, mode } = found.invoice
  return { account, mode, ...invoiceObject(found, yield* Settings) }
})

const InvoiceField = withFlag(Schema.String, {
  about: "The invoice, inv_…, as tilld invoices list shows it",
  value: "ID",
  isArgument: true
})

export const listInvoices = operation({
  name: "invoices list",
  summary: "Show invoices, newest first",
  input: {
    account: AccountField,
    mode: SomeMode,
    status: withFlag(maybe(must(`be ${alternatives(InvoiceStatus.literals)}`, InvoiceStatus)), {
      about: "Only invoices in this state; otherwise all"
    }),
    reference: withFlag(maybe(Schema.String), { about: "Only invoices with this merchantRef", value: "TEXT" }),
    ...pageFields("invoices", defaultPageSize)
  },
  output: Schema.Array(OperatorInvoice),
  refusals: [UnknownAccount, NotFound],
  run: Effect.fnUntraced(function* ({ account, after, limit, mode: only, reference, status }) {
    yield* mustExist(account)
    const reader = yield* Reader
    const last = after === undefined ? undefined : yield* InvoicesRepo.byId(reader, after)
    if (after !== undefined && last === undefined) return yield* noInvoice(after)
    const filter = { status, merchantRef: reference, limit, after: last }
    const pages = yield* Effect.forEach(
      modes.filter((mode) => mode === (only ?? mode)),
      (mode) => InvoicesRepo.list(reader, { account, mode }, filter),
      { concurrency: 1 }
    )
    const newestFirst = pages.flat().sort((a, b) => b.createdAt - a.createdAt || b.sequence - a.sequence)
    return yield* Effect.forEach(
      newestFirst.slice(0, limit),
      (invoice) =>
        Effect.flatMap(PaymentsRepo.ofInvoice(reader, invoice.id), (all) => view({ invoice, payments: all })),
      { concurrency: 1 }
    )
  })
})

export const showInvoice = operation({
  name: "invoices show",
  summary: "Show an invoice with the payments of its choices",
  input: { id: InvoiceField },
  output: OperatorInvoice,
  refusals: [NotFound],
  run: Effect.fnUntraced(function* ({ id }) {
    const reader = yield* Reader
    const invoice = yield* InvoicesRepo.byId(reader, id)
    if (invoice === undefined) return yield* noInvoice(id)
    return yield* view({ invoice, payments: yield* PaymentsRepo.ofInvoice(reader, invoice.id) })
  })
})

/**
 * Cancels an invoice that is open or has money under way, with its open payment: money of that becomes an exception. A
 * repetition changes nothing. Undefined where there is no invoice.
 *
 * @param find reads the invoice
 * @param alsoCommit also commits, in the same transaction
 */
export const cancelInvoice = Effect.fn("Invoices.cancel")(function* (
  find: (db: Db) => Effect.Effect<Invoice | undefined, StoreUnavailable>,
  alsoCommit: CommitWith<InvoiceWithPayments> = () => Effect.void
) {
  const writer = yield* Writer
  const outbox = yield* Outbox
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const found = yield* find(tx)
      if (found === undefined) return undefined
      const { id, status } = found
      if (status !== "open" && status !== "processing" && status !== "cancelled") return yield* notOpen(status)
      const open = (yield* PaymentsRepo.ofInvoice(tx, id)).filter((payment) => !isEnded(payment.status))
      for (const payment of open) yield* Effect.orDie(endCancelled(outbox, payment))
      const left = (yield* InvoicesRepo.byId(tx, id)) ?? found
      if (left.status !== "cancelled") {
        yield* InvoicesRepo.setStatus(outbox, left, "cancelled", yield* Clock.currentTimeMillis)
      }
      const result = {
        invoice: (yield* InvoicesRepo.byId(tx, id)) ?? left,
        payments: yield* PaymentsRepo.ofInvoice(tx, id)
      }
      yield* alsoCommit(result)
      return result
    })
  )
})

export const cancelOpenInvoice = operation({
  name: "invoices cancel",
  summary: "End an open invoice and its open payment now. What came for that, or still comes, is an exception",
  input: { id: InvoiceField },
  output: OperatorInvoice,
  refusals: [NotFound, InvoiceNotOpen],
  audit: ({ id }) => ({ id }),
  run: Effect.fnUntraced(function* ({ id }) {
    const cancelled = yield* cancelInvoice((db) => InvoicesRepo.byId(db, id))
    return cancelled === undefined ? yield* noInvoice(id) : yield* view(cancelled)
  })
})
