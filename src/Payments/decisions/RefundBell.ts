import { Context, Effect, Layer, Queue } from "effect"
import { Tx } from "../../Sql.ts"

const makeBell = () => {
  const bell = Effect.runSync(Queue.sliding<void>(1))
  return {
    /** Rings once this transaction is committed. */
    ring: Effect.map(Tx, (tx) => tx.afterCommit(() => void bell.unsafeOffer(undefined))),
    /** Completes when the bell has rung since `rung` last completed; waits until then. */
    rung: Queue.take(bell)
  }
}

/** Wakes the lookup of refunds: the transaction of one was named. */
export class RefundBell extends Context.Reference<RefundBell>()("tilld/Payments/RefundBell", {
  // For tests, where nothing looks refunds up.
  defaultValue: makeBell
}) {
  /** The daemon's. */
  static readonly layer = Layer.sync(RefundBell, makeBell)
}
