import { Deferred, Duration, Effect, FiberId } from "effect"
import { waitAtMost } from "../../Domain/waitAtMost.ts"

/** How long the creation of a payment waits at most for a look at its chain. */
const patience = Duration.seconds(2)

/** Opens at the end of each look of a watcher at its chain's head. The creation of a payment waits for one. */
export class LookLatch {
  #ended: Deferred.Deferred<void> | undefined

  /** Waits for the end of the look under way or of the next one, for two seconds at most. */
  readonly wait: Effect.Effect<void> = Effect.suspend(() => {
    this.#ended ??= Deferred.unsafeMake(FiberId.none)
    return Effect.asVoid(waitAtMost(Deferred.await(this.#ended), patience))
  })

  /** Notes that a look has ended, successful or not. */
  end(): void {
    if (this.#ended !== undefined) Deferred.unsafeDone(this.#ended, Effect.void)
    this.#ended = undefined
  }
}
