/** Ending open payments by hand: one that is cancelled, and all of a chain that is given up. */
import { Clock, Effect } from "effect"
import type { Network } from "../Domain/Chain.ts"
import type { PaymentCurrency } from "../Domain/Currency.ts"
import type { Accounted } from "../Domain/Event.ts"
import { isEnded, type Payment, PaymentNotPending } from "../Domain/Payment.ts"
import { Outbox } from "../Events/Outbox.ts"
import { type CommitWith, type Db, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { dropUndecided } from "./openNeeds.ts"
import * as Repo from "./PaymentsRepo.ts"
import { shownMoney } from "./shownMoney.ts"
import { counted, withReceived } from "./statusMachine.ts"
import { standingOf, storeTransitions } from "./storeTransitions.ts"

/**
 * Cancels an open payment, with the reason `cancelled` and its event: it ends as `expired`, or as `failed` where money counts
 * for it. A repetition changes nothing. Undefined where there is no payment.
 *
 * It decides nothing about money. What counts for the payment becomes an exception, `underpaid`, as when a payment ends with
 * too little. No receipt can come between the check and the end, since settlement writes in the same queue of transactions.
 * Its address stays watched as after any end: a transfer that was under way, in a block that is read later or on another
 * branch, becomes an exception, `found_late` where it was on time; so does money of another token that has come already.
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
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const found = yield* find(tx)
      if (found === undefined) return undefined
      const payment = yield* endCancelled(outbox, found)
      const cancelled: Accounted = { payment, ...(yield* shownMoney(tx, payment.id)) }
      yield* alsoCommit(cancelled)
      return cancelled
    })
  )
})

/** The same inside a transaction, of a payment that was read there. */
export const endCancelled = Effect.fnUntraced(function* (outbox: Outbox["Type"], payment: Payment) {
  if (payment.failureReason === "cancelled") return payment
  if (isEnded(payment.status)) return yield* PaymentNotPending.of(payment.status)
  const now = yield* Clock.currentTimeMillis
  const had = counted(payment, (yield* standingOf(payment)).receipts).filter(({ corroborated }) => corroborated)
  const ended: Payment = {
    ...withReceived(payment, had),
    status: had.length > 0 ? "failed" : "expired",
    failureReason: "cancelled",
    endedAt: now
  }
  const steps = [{ payment: ended, announced: true, isDecision: true }]
  const { after } = yield* storeTransitions(outbox, { payment, steps, receiptsChanged: false }, now)
  return after
})

/** Payments that one commit ends at most. */
const abandonChunk = 100

/**
 * Fails every open payment of a chain, or of one currency there (`abandoned`), neither of which need be configured. For
 * a whole chain, then drops undecided money there, which no one will decide, with its exceptions. Gives the number of
 * both. What a scan of the chain finds again counts again.
 */
export const abandon = Effect.fn("Payments.abandon")(function* (network: Network, currency?: PaymentCurrency) {
  const writer = yield* Writer
  const outbox = yield* Outbox
  const chunk = Effect.gen(function* () {
    const tx = yield* Tx
    const now = yield* Clock.currentTimeMillis
    const payments = yield* Repo.openOn(tx, network, currency, abandonChunk)
    for (const payment of payments) {
      const ended: Payment = { ...payment, status: "failed", failureReason: "abandoned", endedAt: now }
      const steps = [{ payment: ended, announced: true, isDecision: true }]
      yield* storeTransitions(outbox, { payment, steps, receiptsChanged: true }, now)
    }
    return payments.length
  })
  let ended = 0
  while (true) {
    const count = yield* writer.write(chunk)
    ended += count
    if (count < abandonChunk) break
  }
  if (currency !== undefined) return { abandoned: ended, givenUp: 0 }
  const givenUp = yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const now = yield* Clock.currentTimeMillis
      const dropped = yield* dropUndecided(network)
      for (const id of new Set(dropped)) {
        const payment = id && (yield* Repo.byId(tx, id))
        if (payment !== undefined) {
          yield* storeTransitions(outbox, { payment, steps: [], receiptsChanged: true }, now)
        }
      }
      return dropped.length
    })
  )
  return { abandoned: ended, givenUp }
})
