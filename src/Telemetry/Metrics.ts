import { Context, Layer } from "effect"
import { Counter, Histogram, Registry } from "prom-client"
import { failedAfter, lastDelay, ordinal } from "../Domain/DeliveryObject.ts"

const requestBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
// An attempt has 30 s to the response's status, and 5 s more for its body.
const attemptBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 35]
const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * Counters and histograms that are updated where things happen, from the start of the process. Values that can be read on
 * demand are not here but in the handlers of /metrics. docs/monitoring.md lists all metrics.
 */
const makeInstruments = () => {
  const registry = new Registry()
  const registers = [registry]
  const counter = <Label extends string = never>(name: string, help: string, ...labelNames: ReadonlyArray<Label>) =>
    new Counter({ name, help, labelNames, registers })
  const histogram = <Label extends string = never>(
    name: string,
    help: string,
    buckets: Array<number>,
    ...labelNames: ReadonlyArray<Label>
  ) => new Histogram({ name, help, buckets, labelNames, registers })
  return {
    /** All of them. */
    registry,
    httpRequests: counter("tilld_http_requests_total", "API requests, by route template.", "route", "method", "status"),
    httpDuration: histogram(
      "tilld_http_request_duration_seconds",
      "Duration from a complete API request to its response.",
      requestBounds,
      "route",
      "method"
    ),
    httpRateLimited: counter(
      "tilld_http_rate_limited_requests_total",
      "API requests refused with 429: too many requests or streams of their key."
    ),
    requestsNotLogged: counter(
      "tilld_requests_not_logged_total",
      "Requests missing from the request log: above 1000 in a second, or while the store was full."
    ),
    payments: counter(
      "tilld_payments_total",
      "Payments created, and changes to each status.",
      "chain",
      "mode",
      "event"
    ),
    webhookAttempts: counter("tilld_webhook_attempts_total", "Attempts of webhook deliveries, by outcome.", "outcome"),
    webhookAttemptDuration: histogram(
      "tilld_webhook_attempt_duration_seconds",
      "Duration of webhook attempts, including name resolution and connecting.",
      attemptBounds
    ),
    webhookFailures: counter(
      "tilld_webhook_deliveries_failed_total",
      `Webhook deliveries whose ${ordinal(failedAfter)} attempt failed: one more follows, ${lastDelay} later.`
    ),
    rpcCalls: counter(
      "tilld_rpc_calls_total",
      "JSON-RPC calls to the providers of a chain, by host and outcome.",
      "chain",
      "mode",
      "host",
      "method",
      "outcome"
    ),
    storeCommits: counter("tilld_store_commits_total", "Commits of the database's writer."),
    storeCommands: counter("tilld_store_commands_total", "Commands in those commits, including refused ones."),
    storeCommitDuration: histogram(
      "tilld_store_commit_duration_seconds",
      "Duration of successful commits, from the start of the transaction to its disk sync.",
      commitBounds
    ),
    storeFailures: counter(
      "tilld_store_failed_commits_total",
      "Commits that failed with all of their commands: the disk is full, or returns errors."
    ),
    logLinesDropped: counter(
      "tilld_log_lines_dropped_total",
      "Lines missing from the log: its disk is full, or its reader has stopped."
    ),
    clockJumps: counter(
      "tilld_clock_jumps_total",
      "Times that this machine's clock was set by more than 2 seconds, or stopped while the machine slept."
    ),
    processorTime: new Counter({
      name: "tilld_process_cpu_seconds_total",
      help: "Processor time, user and system.",
      registers,
      collect() {
        const { system, user } = process.cpuUsage()
        this.reset()
        this.inc((user + system) / 1e6)
      }
    })
  }
}

export type Instruments = Readonly<ReturnType<typeof makeInstruments>>

/** The process's counters. Counting is synchronous, never fails, and takes less than a microsecond: Effect's own take 3. */
export class Metrics extends Context.Reference<Metrics>()("tilld/Telemetry/Metrics", {
  // For commands without a daemon, whose metrics are not read.
  defaultValue: () => makeInstruments()
}) {
  /** The daemon's. */
  static readonly layer = Layer.sync(Metrics, () => makeInstruments())
}
