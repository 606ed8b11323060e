import { Clock, Deferred, Duration, Effect, FiberId } from "effect"

/** Shares one result among all who ask within `time`. It is completed even if the first one goes away meanwhile. */
export const keptFor = <A, E>(time: Duration.DurationInput, make: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  const kept = BigInt(Duration.toMillis(time)) * 1_000_000n
  let last: { readonly at: bigint; readonly made: Deferred.Deferred<A, E> } | undefined
  return Effect.flatMap(Clock.currentTimeNanos, (now) => {
    if (last !== undefined && now - last.at < kept) return Deferred.await(last.made)
    const made = Deferred.unsafeMake<A, E>(FiberId.none)
    last = { at: now, made }
    return Effect.zipRight(Effect.forkDaemon(Effect.intoDeferred(make, made)), Deferred.await(made))
  })
}
