import { Data, Deferred, Effect, Layer } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { appLayer } from "./App.ts"
import { Keys, RateLimits } from "./Auth.ts"
import { Settlement } from "./Chains/ledger/SettlementTag.ts"
import { Chains } from "./Chains.ts"
import { Conditions } from "./Conditions/standing.ts"
import * as Control from "./Control/controlSockets.ts"
import { Housekeeping } from "./Housekeeping.ts"
import { Idempotency } from "./Http/idempotency.ts"
import { RequestLog } from "./Http/RequestLog.ts"
import { Invoices } from "./Invoices.ts"
import { Addresses } from "./Payments/addresses/Addresses.ts"
import { refuseLost, refuseMissingFolder } from "./Payments/addresses/IndexMark.ts"
import { Uncollected } from "./Payments/addresses/Uncollected.ts"
import { refundLookup } from "./Payments/decisions/refundLookup.ts"
import { Prices } from "./Quotes/Prices.ts"
import { HttpServer } from "./Server.ts"
import { load, Settings, type SettingsShape, type SettingsSource, summaryOf } from "./Settings.ts"
import * as InstanceLock from "./Sql/InstanceLock.ts"
import { StoreHealth, Writer } from "./Sql.ts"
import { watchClock } from "./Telemetry/clockJumps.ts"
import { watchDescriptors } from "./Telemetry/fileDescriptors.ts"
import { isJournal } from "./Telemetry/journal.ts"
import { watchLog } from "./Telemetry/LogSink.ts"
import { loggingLayer } from "./Telemetry/logging.ts"
import { retryPatiently } from "./Telemetry/patience.ts"
import { logProcessWarnings } from "./Telemetry/processWarnings.ts"
import { notifyServiceManager } from "./Telemetry/serviceManager.ts"
import { Dispatcher } from "./Webhooks/Dispatcher.ts"

/** All workers, under one root: a defect of any one ends all, and with them the process. */
export const workers = Effect.gen(function* () {
  const settings = yield* Settings
  const chains = yield* Chains
  const settlement = yield* Settlement
  const dispatcher = yield* Dispatcher
  const addresses = yield* Addresses
  const prices = yield* Prices
  const keys = yield* Keys
  const limits = yield* RateLimits
  const idempotency = yield* Idempotency
  const requestLog = yield* RequestLog
  const invoices = yield* Invoices
  const housekeeping = yield* Housekeeping
  const uncollected = yield* Uncollected
  const refunds = yield* refundLookup
  const conditions = yield* Conditions
  const health = yield* StoreHealth
  const { write } = yield* Writer
  const control = yield* Control.startSockets(settings)
  yield* Effect.all(
    [
      control,
      chains.run,
      prices.run,
      settlement.expire,
      dispatcher.run,
      addresses.run,
      keys.run,
      limits.run,
      idempotency.run,
      requestLog.run,
      invoices.run,
      housekeeping.run,
      uncollected.run,
      refunds.run,
      conditions.run,
      health.run(write),
      watchClock,
      watchLog,
      watchDescriptors()
    ],
    { concurrency: "unbounded", discard: true }
  )
  return yield* Effect.never
}).pipe(Effect.scoped)

/** Another process has held the database for longer than a start waits. A later start may succeed. */
class DatabaseHeld extends Data.TaggedError("DatabaseHeld")<{ readonly message: string }> {}

/** Waits for a daemon that is stopping, and for a command that works without one, such as a restore. */
const lock = (path: string) =>
  InstanceLock.acquire(path, "serve").pipe(
    retryPatiently((error) => error._tag === "InstanceLocked"),
    Effect.catchTag("InstanceLocked", ({ message }) => new DatabaseHeld({ message }))
  )

/** The operator's listener, if it is configured. Its code is loaded only then. */
const adminLayer = ({ admin }: SettingsShape) =>
  admin === undefined
    ? Layer.empty
    : Layer.unwrapEffect(
        Effect.map(
          Effect.promise(() => import("./Admin.ts")),
          ({ Admin }) => Admin.layer(admin)
        )
      )

/** Never returns. The log says at once what stops the daemon: what is in flight may take 30 seconds to end. */
const untilStopped = Effect.acquireUseRelease(
  Effect.sync(() => {
    const anError = "an error, which follows"
    const stop = { reason: anError }
    const note = (signal: NodeJS.Signals) => {
      if (stop.reason === anError) stop.reason = signal
    }
    // First: the runtime's own listener interrupts.
    const listeners = (["SIGTERM", "SIGINT", "SIGHUP"] as const).map((signal) => {
      process.prependListener(signal, note)
      return () => process.off(signal, note)
    })
    return { stop, listeners }
  }),
  ({ stop }) =>
    Effect.onInterrupt(Effect.never, () => Effect.annotateLogs(Effect.logInfo("tilld is stopping"), { ...stop })),
  ({ listeners }) =>
    Effect.sync(() => {
      for (const remove of listeners) remove()
    })
)

/** SIGHUP, a closed terminal, stops the daemon as SIGTERM does: it has nothing to reload. */
const stopAtHangup = Effect.acquireRelease(
  Effect.sync(() => {
    const stop = () => process.kill(process.pid, "SIGTERM")
    process.on("SIGHUP", stop)
    return stop
  }),
  (stop) => Effect.sync(() => process.off("SIGHUP", stop))
)

/** Runs the daemon until it is interrupted. `newDatabase`: an empty one may take the place of one that was lost. */
export const runDaemon = Effect.fnUntraced(function* (source: SettingsSource, newDatabase = false) {
  const settings = yield* load(source)
  yield* stopAtHangup
  yield* refuseMissingFolder(settings.database)
  yield* Effect.provide(lock(settings.database.path), loggingLayer(settings.log, isJournal(source.env)))
  if (!newDatabase) yield* refuseLost(settings.database)
  return yield* Effect.gen(function* () {
    yield* logProcessWarnings
    yield* Effect.logInfo("tilld starts").pipe(
      Effect.annotateLogs({ version: packageJson.version, node: process.version, ...summaryOf(settings) })
    )
    // Concurrent: a stop ends both at once, so that no payment is accepted while the last deliveries finish.
    // The listeners start first: the workers can wait until the port is open.
    // The operator's listener opens before the API's and closes after it, so that a shutdown can be observed.
    const listening = yield* Deferred.make<void>()
    const listeners = Layer.provide(HttpServer.layer, adminLayer(settings)).pipe(
      Layer.tap(() => Deferred.succeed(listening, undefined))
    )
    const notify = notifyServiceManager(source.env, Deferred.await(listening))
    return yield* Effect.all([Layer.launch(listeners), workers, notify, untilStopped], {
      concurrency: "unbounded",
      discard: true
    })
  }).pipe(
    Effect.provide(appLayer(settings, source.env)),
    Effect.onInterrupt(() => Effect.logInfo("tilld has stopped")),
    Effect.provide(loggingLayer(settings.log, isJournal(source.env)))
  )
}, Effect.scoped)
