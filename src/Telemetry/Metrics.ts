import { Context, Layer } from "effect"
import { failedAfter, lastDelay, ordinal } from "../Domain/DeliveryObject.ts"
import { Counter, type Family, Histogram } from "./instruments.ts"

const requestBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
// An attempt has 30 s to the response's status, and 5 s more for its body.
const attemptBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 35]
const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * Counters and histograms that are updated where things happen, from the start of the process. Values that can be read on
 * demand are not here but in the handlers of /metrics. docs/monitoring.md lists all metrics.
 */
const makeInstruments = () => ({
  httpRequests: new Counter({
    name: "tilld_http_requests_total",
    help: "API requests, by route template.",
    labels: ["route", "method", "status"]
  }),
  httpDuration: new Histogram(
    {
      name: "tilld_http_request_duration_seconds",
      help: "Duration from a complete API request to its response.",
      labels: ["route", "method"]
    },
    requestBounds
  ),
  httpRateLimited: new Counter({
    name: "tilld_http_rate_limited_requests_total",
    help: "API requests refused with 429: too many requests or streams of their key."
  }),
  requestsNotLogged: new Counter({
    name: "tilld_requests_not_logged_total",
    help: "Requests missing from the request log: above 1000 in a second, or while the store was full."
  }),

  payments: new Counter({
    name: "tilld_payments_total",
    help: "Payments created, and changes to each status.",
    labels: ["event"]
  }),

  webhookAttempts: new Counter({
    name: "tilld_webhook_attempts_total",
    help: "Attempts of webhook deliveries, by outcome.",
    labels: ["outcome"]
  }),
  webhookAttemptDuration: new Histogram(
    {
      name: "tilld_webhook_attempt_duration_seconds",
      help: "Duration of webhook attempts, including name resolution and connecting."
    },
    attemptBounds
  ),
  webhookFailures: new Counter({
    name: "tilld_webhook_deliveries_failed_total",
    help: `Webhook deliveries whose ${ordinal(failedAfter)} attempt failed: one more follows, ${lastDelay} later.`
  }),

  rpcCalls: new Counter({
    name: "tilld_rpc_calls_total",
    help: "JSON-RPC calls to the providers of a chain, by outcome.",
    labels: ["chain", "mode", "method", "outcome"]
  }),

  storeCommits: new Counter({
    name: "tilld_store_commits_total",
    help: "Commits of the database's writer."
  }),
  storeCommands: new Counter({
    name: "tilld_store_commands_total",
    help: "Commands in those commits, including refused ones."
  }),
  storeCommitDuration: new Histogram(
    {
      name: "tilld_store_commit_duration_seconds",
      help: "Duration of successful commits, from the start of the transaction to its disk sync."
    },
    commitBounds
  ),
  storeFailures: new Counter({
    name: "tilld_store_failed_commits_total",
    help: "Commits that failed with all of their commands: the disk is full, or returns errors."
  }),

  logLinesDropped: new Counter({
    name: "tilld_log_lines_dropped_total",
    help: "Lines missing from the log: its disk is full, or its reader has stopped."
  }),

  clockJumps: new Counter({
    name: "tilld_clock_jumps_total",
    help: "Times that this machine's clock was set by more than 2 seconds, or stopped while the machine slept."
  })
})

export type Instruments = Readonly<ReturnType<typeof makeInstruments>>

export const familiesOf = (instruments: Instruments): ReadonlyArray<Family> =>
  Object.values(instruments).map(({ family }) => family)

/** The process's counters. Counting is synchronous, never fails, and takes a tenth of a microsecond. */
export class Metrics extends Context.Reference<Metrics>()("tilld/Telemetry/Metrics", {
  // For commands without a daemon, whose metrics are not read.
  defaultValue: () => makeInstruments()
}) {
  /** The daemon's. */
  static readonly layer = Layer.sync(Metrics, () => makeInstruments())
}
