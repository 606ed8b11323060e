import { Context, Effect, Layer, Queue } from "effect"
import { kindOf, type WebhookEvent } from "../Domain/Event.ts"
import { eventId } from "../Domain/Ids.ts"
import { type Payment, toObject } from "../Domain/Payment.ts"
import { iso } from "../Domain/Timestamp.ts"
import { type StoreUnavailable, Tx } from "../Sql.ts"
import { enqueue } from "../Webhooks/DeliveriesRepo.ts"

/** Where a transition becomes an event and its deliveries, in the transaction of the transition itself. */
export class Outbox extends Context.Tag("tilld/Events/Outbox")<
  Outbox,
  {
    /** Tells of the status that `payment` has now reached, `at` Unix milliseconds. */
    readonly publish: (payment: Payment, at: number) => Effect.Effect<void, StoreUnavailable, Tx>
    /** Deliveries are made due in this transaction: the dispatcher hears of it after the commit. */
    readonly announce: Effect.Effect<void, never, Tx>
    /** Completes once deliveries have been committed since it last did: what wakes the dispatcher. */
    readonly newDeliveries: Effect.Effect<void>
  }
>() {
  static readonly layer = Layer.effect(
    Outbox,
    Effect.gen(function* () {
      const bell = yield* Queue.sliding<void>(1)
      const ring = () => void bell.unsafeOffer(undefined)
      const announce = Effect.flatMap(Tx, (tx) => tx.afterCommit(ring))

      const publish = Effect.fnUntraced(function* (payment: Payment, at: number) {
        const tx = yield* Tx
        const kind = kindOf(payment.status)
        const id = eventId(payment.id, kind, yield* ordinalOf(tx, payment, kind))
        const event: WebhookEvent = {
          id,
          event: kind,
          createdAt: iso(at),
          data: toObject(payment)
        }
        yield* tx.run(
          "INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
          [id, payment.account, payment.mode, payment.id, kind, JSON.stringify(event), at]
        )
        const { account, mode } = payment
        const deliveries = yield* enqueue({ id, account, mode, paymentId: payment.id, kind }, payment.webhookUrl, at)
        if (deliveries > 0) yield* announce
      })

      return { publish, announce, newDeliveries: Queue.take(bell) }
    })
  )
}

// A payment is created once; the other kinds can come again after a reorg. Counted by the transitions, which stay when old
// events are forgotten: an id that was used is never given to another event.
const ordinalOf = (tx: Tx["Type"], payment: Payment, kind: WebhookEvent["event"]) =>
  kind === "payment.created"
    ? Effect.succeed(0)
    : Effect.map(
        tx.get<{ count: number }>("SELECT count(*) AS count FROM transitions WHERE payment_id = ? AND to_status = ?", [
          payment.id,
          payment.status
        ]),
        (row) => Math.max(0, (row?.count ?? 0) - 1)
      )
