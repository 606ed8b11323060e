import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { counter, gauge, single } from "./gauge.ts"

/** From one look at the event loop to the next, in milliseconds: each wakes the process up. */
const resolution = 20

/** What is told of the event loop is that of a whole one, the same for all who ask meanwhile. */
const window = "1 minute"

/** Nanoseconds between two looks, as the seconds by which the second was late. */
const lateness = (nanos: number): number => Math.max(0, nanos / 1e6 - resolution) / 1000

/** What the process is and uses. The event loop is watched until the scope ends. */
export const makeProcessFamilies = Effect.gen(function* () {
  const delay = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable())
  )
  const lag = () => {
    // Nothing was looked at yet: the percentiles mean nothing then.
    const [median, p99, worst] = delay.count === 0 ? [0, 0, 0] : [delay.percentile(50), delay.percentile(99), delay.max]
    return { median: lateness(median), p99: lateness(p99), worst: lateness(worst) }
  }
  let last: ReturnType<typeof lag> | undefined
  const turn = Effect.sync(() => {
    last = lag()
    delay.reset()
  })
  yield* Effect.forkScoped(Effect.forever(Effect.delay(turn, window)))

  return () => {
    const { system, user } = process.cpuUsage()
    const { median, p99, worst } = last ?? lag()
    const late = "of the delays of the event loop in the last whole minute; in the first, so far."
    return [
      gauge("tilld_build_info", "Which version runs, on which Node; always 1.", [
        [{ version: packageJson.version, node: process.version }, 1]
      ]),
      gauge("tilld_process_uptime_seconds", "Since the start of the process.", single(process.uptime())),
      gauge("tilld_process_resident_memory_bytes", "Resident memory.", single(process.memoryUsage.rss())),
      counter("tilld_process_cpu_seconds_total", "Processor time, user and system.", single((user + system) / 1e6)),
      gauge("tilld_event_loop_lag_p50_seconds", `The median ${late}`, single(median)),
      gauge("tilld_event_loop_lag_p99_seconds", `The 99th percentile ${late}`, single(p99)),
      gauge("tilld_event_loop_lag_max_seconds", `The longest ${late}`, single(worst))
    ]
  }
})
