import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { readDescriptors } from "../Telemetry/fileDescriptors.ts"
import { counter, gauge, single } from "./gauge.ts"

/** Milliseconds between two samples of the event loop's lag. Each sample wakes the process up. */
const resolution = 20

/** The period of the lag percentiles. All scrapes within a period get the same values. */
const window = "1 minute"

/** From nanoseconds between two samples to the lag of the second in seconds. */
const lateness = (nanos: number): number => Math.max(0, nanos / 1e6 - resolution) / 1000

/**
 * Metrics of the process: version, memory, processor time, event loop lag. Samples the event loop until the scope ends.
 */
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
    // Without samples the percentiles are meaningless.
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
    const descriptors = readDescriptors()
    const late = "event loop lag in the last full minute; during the first minute, so far."
    return [
      gauge("tilld_build_info", "Version of tilld and of Node; always 1.", [
        [{ version: packageJson.version, node: process.version }, 1]
      ]),
      gauge("tilld_process_uptime_seconds", "Uptime of the process.", single(process.uptime())),
      gauge("tilld_process_resident_memory_bytes", "Resident memory.", single(process.memoryUsage.rss())),
      counter("tilld_process_cpu_seconds_total", "Processor time, user and system.", single((user + system) / 1e6)),
      gauge("tilld_process_open_descriptors", "Open file descriptors, sockets included.", single(descriptors?.open)),
      gauge("tilld_process_max_descriptors", "Open descriptors allowed: LimitNOFILE.", single(descriptors?.limit)),
      gauge("tilld_event_loop_lag_p50_seconds", `Median ${late}`, single(median)),
      gauge("tilld_event_loop_lag_p99_seconds", `99th percentile of the ${late}`, single(p99)),
      gauge("tilld_event_loop_lag_max_seconds", `Maximum ${late}`, single(worst))
    ]
  }
})
