import { Deferred, Duration, Effect, FiberId } from "effect"

/** Who asks for a payment waits no longer for a look at its chain than this. */
const patience = Duration.seconds(2)

/** The end of a watcher's next look at its chain's head: all that wait for it wait for the same one. */
export class NextTick {
  #ended: Deferred.Deferred<void> | undefined

  /** Waits for the end of the look under way or of the next one, for two seconds at most. */
  readonly wait: Effect.Effect<void> = Effect.suspend(() => {
    this.#ended ??= Deferred.unsafeMake(FiberId.none)
    return Effect.asVoid(Effect.timeoutOption(Deferred.await(this.#ended), patience))
  })

  /** A look has ended, well or not. */
  end(): void {
    if (this.#ended !== undefined) Deferred.unsafeDone(this.#ended, Effect.void)
    this.#ended = undefined
  }
}
