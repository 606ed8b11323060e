import { type Duration, Effect, Option } from "effect"

/** Yields to the event loop once, so that sockets and timers run before a long computation or write goes on. */
export const eventLoopTurn = Effect.async<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/**
 * Waits for an effect, but not longer than this; none when it did not end in time. Can be interrupted at any moment:
 * `Effect.timeoutOption` waits in an uninterruptible region and passes an interruption on to its two fibers, so that one
 * that comes just before they are made is held up until the time is over. For waits that may be long.
 */
export const waitAtMost = <A, E, R>(effect: Effect.Effect<A, E, R>, duration: Duration.DurationInput) =>
  Effect.raceFirst(Effect.asSome(effect), Effect.as(Effect.sleep(duration), Option.none<A>()))
