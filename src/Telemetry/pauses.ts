/**
 * Notices that the process was stopped for a while (SIGSTOP, Ctrl-Z, a debugger): neither the disk nor the processor
 * was slow then. SIGCONT reports it. Used by `watchClock`, and by the writer.
 */
import { Context, Effect, Runtime } from "effect"

/** Shorter pauses are ignored. Milliseconds. */
const shortest = 5_000
const second = 1_000_000_000n

/** When the process last resumed, by the monotonic clock in nanoseconds; undefined: it was never stopped. */
export class Pauses extends Context.Reference<Pauses>()("tilld/Telemetry/Pauses", {
  defaultValue: (): { continuedAt: bigint | undefined } => ({ continuedAt: undefined })
}) {}

/** Logs pauses until the scope ends. `note` is to be run once a second, to know when the process last ran. */
export const watchPauses = Effect.gen(function* () {
  const pauses = yield* Pauses
  const clock = yield* Effect.clock
  const runtime = yield* Effect.runtime<never>()
  let last = clock.unsafeCurrentTimeNanos()
  let beforeLast = last
  const onContinue = () => {
    const now = clock.unsafeCurrentTimeNanos()
    pauses.continuedAt = now
    // A timer that was due may have run before this listener.
    const ran = now - last < second ? beforeLast : last
    const millis = Number(now - ran) / 1e6
    if (millis < shortest) return
    const line = Effect.logWarning(`the process was paused for ${Math.round(millis / 1000)} s`)
    Runtime.runFork(runtime)(Effect.annotateLogs(line, { reason: "SIGSTOP, Ctrl-Z or a debugger" }))
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGCONT", onContinue)),
    () => Effect.sync(() => process.off("SIGCONT", onContinue))
  )
  const note = Effect.sync(() => {
    beforeLast = last
    last = clock.unsafeCurrentTimeNanos()
  })
  return { note }
})
