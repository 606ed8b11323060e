import { Clock, Deferred, Duration, Effect, FiberId } from "effect"

/**
 * Shares one result among all callers while it is computed, and until it expires, counted from the start of the
 * computation. It is completed even if its first caller is interrupted.
 */
export const keptFor = <A, E>(
  goodFor: (made: A) => Duration.DurationInput,
  make: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  let last: { readonly made: Deferred.Deferred<A, E>; until: bigint | undefined } | undefined
  return Effect.flatMap(Clock.currentTimeNanos, (now) => {
    if (last !== undefined && (last.until === undefined || now < last.until)) return Deferred.await(last.made)
    const making = { made: Deferred.unsafeMake<A, E>(FiberId.none), until: undefined as bigint | undefined }
    last = making
    const kept = Effect.onExit(make, (exit) =>
      Effect.sync(() => {
        making.until = exit._tag === "Success" ? now + BigInt(Duration.toMillis(goodFor(exit.value))) * 1_000_000n : now
      })
    )
    return Effect.zipRight(Effect.forkDaemon(Effect.intoDeferred(kept, making.made)), Deferred.await(making.made))
  })
}
