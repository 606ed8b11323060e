import { Effect, Layer, Schedule } from "effect"
import { appLayer } from "./App.ts"
import { Keys, RateLimits } from "./Auth.ts"
import { Settlement } from "./Chains/ledger/SettlementTag.ts"
import { Chains } from "./Chains.ts"
import * as Control from "./Control/controlSockets.ts"
import { Housekeeping } from "./Housekeeping.ts"
import { Idempotency } from "./Http/idempotency.ts"
import { RequestLog } from "./Http/RequestLog.ts"
import { Addresses } from "./Payments/addresses/Addresses.ts"
import { Prices } from "./Quotes/Prices.ts"
import { HttpServer } from "./Server.ts"
import { load, Settings, type SettingsShape, type SettingsSource } from "./Settings.ts"
import * as InstanceLock from "./Sql/InstanceLock.ts"
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
  const housekeeping = yield* Housekeeping
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
      housekeeping.run
    ],
    { concurrency: "unbounded", discard: true }
  )
  return yield* Effect.never
}).pipe(Effect.scoped)

// A command that found no daemon holds the lock briefly. Failing at once would make systemd give up.
const lockRetry = Schedule.spaced("100 millis").pipe(Schedule.upTo("3 seconds"))

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

/** Runs the daemon until it is interrupted. */
export const runDaemon = Effect.fn("serve")(function* (source: SettingsSource) {
  const { settings, unread } = yield* load(source)
  yield* InstanceLock.acquire(settings.database.path, "serve").pipe(Effect.retry(lockRetry))
  return yield* Effect.gen(function* () {
    if (unread.length > 0) {
      yield* Effect.logWarning("keys of the configuration that this version does not use yet").pipe(
        Effect.annotateLogs({ keys: unread.join(", ") })
      )
    }
    // Concurrent: a stop ends both at once, so that no payment is accepted while the last deliveries finish.
    // The listeners start first: the workers can wait until the port is open.
    // The operator's listener opens before the API's and closes after it, so that a shutdown can be observed.
    const listeners = Layer.provide(HttpServer.layer, adminLayer(settings))
    return yield* Effect.all([Layer.launch(listeners), workers], { concurrency: "unbounded", discard: true })
  }).pipe(Effect.provide(appLayer(settings, source.env)))
}, Effect.scoped)
