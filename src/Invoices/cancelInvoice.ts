import { Clock, Effect } from "effect"
import { type Invoice, type InvoiceWithPayments, notOpen } from "../Domain/Invoice.ts"
import { isEnded } from "../Domain/Payment.ts"
import { Outbox } from "../Events/Outbox.ts"
import { endCancelled } from "../Payments/cancellation.ts"
import * as Repo from "../Payments/InvoicesRepo.ts"
import * as Payments from "../Payments/PaymentsRepo.ts"
import { type CommitWith, type Db, type StoreUnavailable, Tx, Writer } from "../Sql.ts"

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
      const open = (yield* Payments.ofInvoice(tx, id)).filter((payment) => !isEnded(payment.status))
      for (const payment of open) yield* Effect.orDie(endCancelled(outbox, payment))
      const left = (yield* Repo.byId(tx, id)) ?? found
      if (left.status !== "cancelled") {
        yield* Repo.setStatus(outbox, left, "cancelled", yield* Clock.currentTimeMillis)
      }
      const result = { invoice: (yield* Repo.byId(tx, id)) ?? left, payments: yield* Payments.ofInvoice(tx, id) }
      yield* alsoCommit(result)
      return result
    })
  )
})
