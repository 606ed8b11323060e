import { Context, Effect, Layer, Queue } from "effect"
import { Tx } from "../../Sql.ts"

/** Wakes the dispatcher: whoever makes deliveries due rings in that transaction, and it is heard after the commit. */
export class DeliveryBell extends Context.Tag("tilld/Webhooks/DeliveryBell")<
  DeliveryBell,
  {
    /** Rings once this transaction is committed. */
    readonly ring: Effect.Effect<void, never, Tx>
    /** Completes once it has rung since it last did. */
    readonly heard: Effect.Effect<void>
  }
>() {
  static readonly layer = Layer.effect(
    DeliveryBell,
    Effect.map(Queue.sliding<void>(1), (bell) => {
      const offer = () => void bell.unsafeOffer(undefined)
      return { ring: Effect.map(Tx, (tx) => tx.afterCommit(offer)), heard: Queue.take(bell) }
    })
  )
}
