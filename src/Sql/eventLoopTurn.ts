import { Effect } from "effect"

/** Yields to the event loop once, so that sockets and timers run before a long computation or write goes on. */
export const eventLoopTurn = Effect.async<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})
