import { Clock, Effect } from "effect"
import type { Accounted } from "../Domain/AccountedPayment.ts"
import type { Payment } from "../Domain/Payment.ts"
import { PaymentNotPending } from "../Domain/PaymentErrors.ts"
import { Outbox } from "../Events/Outbox.ts"
import { type CommitWith, type Db, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import * as ExceptionLists from "./ExceptionListRepo.ts"
import { rulesOf } from "./operatorDecisions.ts"
import { storeTransitions } from "./storeTransitions.ts"

/**
 * Cancels a pending payment: it ends as `expired`, with the reason `cancelled` and its event. A repetition changes nothing.
 * Undefined where there is no payment.
 *
 * It decides nothing about money. No receipt can come between the check and the end, since settlement writes in the same
 * queue of transactions. Its address stays watched as after any end: a transfer that was under way, in a block that is read
 * later or on another branch, becomes an exception, `found_late` where it was on time; so does money of another token that
 * has come already.
 *
 * @param find reads the payment
 * @param alsoCommit also commits, in the same transaction
 */
export const cancelPayment = Effect.fn("Payments.cancel")(function* (
  find: (db: Db) => Effect.Effect<Payment | undefined, StoreUnavailable>,
  alsoCommit: CommitWith<Accounted> = () => Effect.void
) {
  const writer = yield* Writer
  const outbox = yield* Outbox
  const rules = yield* rulesOf
  const end = Effect.fnUntraced(function* (payment: Payment) {
    if (payment.failureReason === "cancelled") return payment
    if (payment.status !== "pending") return yield* PaymentNotPending.of(payment.status)
    const now = yield* Clock.currentTimeMillis
    const ended: Payment = { ...payment, status: "expired", failureReason: "cancelled", endedAt: now }
    const steps = [{ payment: ended, announced: true }]
    const { after } = yield* storeTransitions(outbox, { payment, steps, rules, receiptsChanged: false }, now)
    return after
  })
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const found = yield* find(tx)
      if (found === undefined) return undefined
      const payment = yield* end(found)
      const cancelled: Accounted = { payment, ...(yield* ExceptionLists.shownWith(tx, payment.id)) }
      yield* alsoCommit(cancelled)
      return cancelled
    })
  )
})
