import { Clock, Effect } from "effect"
import { LogLimit } from "./LogLimit.ts"
import { Metrics } from "./Metrics.ts"
import { Workers } from "./Workers.ts"

const interval = "1 second"
/** A time service slews smaller differences. Milliseconds. */
const tolerance = 2_000

/** Milliseconds by which the wall clock is ahead of the monotonic one: it changes only when the clock is set. */
const offset = Effect.zipWith(
  Clock.currentTimeMillis,
  Clock.currentTimeNanos,
  (wall, monotonic) => wall - Number(monotonic / 1_000_000n)
)

/**
 * The worker that notices when this machine's clock is set, by comparing it with the monotonic clock each second.
 * Payments expire, quotes end and webhooks are retried by the clock: the log then shows the reason.
 */
export const watchClock = Effect.gen(function* () {
  const { clockJumps } = yield* Metrics
  const heartbeat = (yield* Workers).worker("clock", interval)
  const limited = new LogLimit({ perKey: 10, inAll: 10 })
  let before = yield* offset

  const look = Effect.gen(function* () {
    const now = yield* offset
    const by = now - before
    if (Math.abs(by) < tolerance) return
    before = now
    clockJumps.inc()
    const direction = by > 0 ? "forward" : "back"
    const line = Effect.logWarning(`this machine's clock was set ${direction}: see what sets it, such as chrony`)
    yield* limited.write("", Effect.annotateLogs(line, { bySeconds: by / 1000 }))
  })
  return yield* Effect.forever(Effect.zipRight(heartbeat(look), Effect.sleep(interval))).pipe(
    Effect.annotateLogs({ service: "clock" })
  )
})
