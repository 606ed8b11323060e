import { Effect } from "effect"

/** Lets waiting sockets and timers have their turn before a loop that computes or writes goes on. */
export const eventLoopTurn = Effect.async<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})
