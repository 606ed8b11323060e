import { Context, Effect, Layer, Queue } from "effect"
import { Tx } from "../../Sql.ts"

/**
 * Wakes the dispatcher. A transaction that makes deliveries due rings the bell; the dispatcher is woken after the commit.
 */
export class DeliveryBell extends Context.Tag("tilld/Webhooks/DeliveryBell")<
  DeliveryBell,
  {
    /** Rings once this transaction is committed. */
    readonly ring: Effect.Effect<void, never, Tx>
    /** Completes when the bell has rung since `rung` last completed; waits until then. */
    readonly rung: Effect.Effect<void>
  }
>() {
  static readonly layer = Layer.effect(
    DeliveryBell,
    Effect.map(Queue.sliding<void>(1), (bell) => {
      const offer = () => void bell.unsafeOffer(undefined)
      return { ring: Effect.map(Tx, (tx) => tx.afterCommit(offer)), rung: Queue.take(bell) }
    })
  )
}
