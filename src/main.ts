import { isatty } from "node:tty"
import { Data, Deferred, Effect, Exit, Layer, Queue, Scope } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { appLayer, type Store } from "./App.ts"
import { Keys, RateLimits } from "./Auth.ts"
import { Settlement } from "./Chains/ledger/SettlementTag.ts"
import { Chains } from "./Chains.ts"
import { Conditions } from "./Conditions/standing.ts"
import * as Control from "./Control/controlSockets.ts"
import { Housekeeping } from "./Housekeeping.ts"
import { onlyCalledBy } from "./Http/hostNames.ts"
import { ApiListener, type KeptListener, serveHttp } from "./Http/listener.ts"
import { RequestLog } from "./Http/RequestLog.ts"
import { standbyRespond } from "./Http/standby.ts"
import { Invoices } from "./Invoices.ts"
import { type Act, noteOfDaemon } from "./Operations/auditLog.ts"
import { Addresses, refuseSharedWallets } from "./Payments/addresses/Addresses.ts"
import { refuseLost, refuseMissingFolder } from "./Payments/addresses/IndexMark.ts"
import { Uncollected } from "./Payments/addresses/Uncollected.ts"
import { refundLookup } from "./Payments/decisions/refundLookup.ts"
import { refuseDroppedChains } from "./Payments/openNeeds.ts"
import { Prices } from "./Quotes/Prices.ts"
import type { Secrets } from "./Secrets.ts"
import { HttpServer } from "./Server.ts"
import { differing, load, Settings, type SettingsShape, type SettingsSource, takenBy } from "./Settings.ts"
import * as InstanceLock from "./Sql/InstanceLock.ts"
import type { NodeStanding } from "./Sql/postgres/lease.ts"
import * as Sql from "./Sql.ts"
import { type Reader, StoreHealth, Writer } from "./Sql.ts"
import { logProcessWarnings, watchClock, watchDescriptors } from "./Telemetry/host.ts"
import { watchLog } from "./Telemetry/LogSink.ts"
import { isJournal, loggingLayer } from "./Telemetry/logging.ts"
import { retryPatiently } from "./Telemetry/patience.ts"
import { notifyServiceManager } from "./Telemetry/serviceManager.ts"
import { Workers } from "./Telemetry/Workers.ts"
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
    const listeners = (["SIGTERM", "SIGINT"] as const).map((signal) => {
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

/**
 * SIGHUP asks for a reload: takes the next one. Where the daemon was started from a terminal it says that this was closed, and
 * stops the daemon as SIGTERM does.
 */
const hangups = Effect.gen(function* () {
  const asked = yield* Queue.sliding<void>(1)
  const isOnTerminal = isatty(0) || isatty(2)
  const onHangup = () => (isOnTerminal ? process.kill(process.pid, "SIGTERM") : asked.unsafeOffer())
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGHUP", onHangup)),
    () => Effect.sync(() => process.off("SIGHUP", onHangup))
  )
  return { hangup: Queue.take(asked) }
})

/** The parts of the daemon end, and begin again with other settings. */
class Reloaded extends Data.TaggedError("Reloaded")<{ readonly settings: SettingsShape }> {}

/** What lasts while the parts are replaced. */
interface Lasting {
  /** Opens the store. */
  readonly store: Store
  readonly env: SettingsSource["env"]
  /** Completes when a reload is asked for. */
  readonly hangup: Effect.Effect<void>
  readonly listener: KeptListener
  readonly listening: Deferred.Deferred<void>
}

/** Takes the configuration at each `hangup`. Fails with what to go on with, where that can be used. */
const reloads = Effect.fnUntraced(function* ({ hangup, listener }: Lasting) {
  const settings = yield* Settings
  const { write } = yield* Writer
  const services = yield* Effect.context<Reader | Secrets>()
  const note = (detail: Act["detail"]) => Effect.ignore(write(noteOfDaemon({ act: "reload", detail })))
  const reload = Effect.gen(function* () {
    yield* hangup
    const onDisk = yield* settings.again
    // What a start would refuse is refused before anything ends.
    yield* Layer.build(Layer.merge(refuseDroppedChains, refuseSharedWallets)).pipe(
      Effect.provideService(Settings, onDisk),
      Effect.provide(services),
      Effect.scoped
    )
    const next = takenBy(settings, onDisk)
    const found = {
      changed: differing(settings.values, next.values),
      needRestart: differing(next.values, onDisk.values)
    }
    yield* note(found)
    yield* Effect.annotateLogs(Effect.logInfo("the configuration was read again"), found)
    // Also where no key has changed: a file that one names may have.
    listener.isReloading = true
    return yield* new Reloaded({ settings: next })
  })
  return yield* Effect.forever(
    Effect.catchIf(
      reload,
      (error) => error._tag !== "Reloaded",
      ({ message }) => Effect.zipRight(note({ refused: message }), Effect.logError(`nothing was reloaded: ${message}`))
    )
  )
})

/** Longest that requests wait at a reload for prices and heads, which the API needs and the new parts do not know yet. */
const warmUp = "3 seconds"

/**
 * Runs the parts of the daemon until a reload, and gives the settings to go on with. The workers end first, while requests are
 * still answered; then these wait until the next parts have begun.
 */
const live = (settings: SettingsShape, lasting: Lasting) =>
  Effect.gen(function* () {
    const { listener, listening } = lasting
    const { health } = yield* Chains
    const { refresh } = yield* Prices
    const isRead = Effect.repeat(Effect.delay(health, "20 millis"), { until: (all) => all.every(({ ready }) => ready) })
    const warm = Effect.timeoutOption(Effect.zip(refresh, isRead, { concurrent: true }), warmUp)
    // Concurrent: a stop ends both at once, so that no payment is accepted while the last deliveries finish.
    // The listeners start first: the workers can wait until the port is open.
    // The operator's listener opens before the API's and closes after it, so that a shutdown can be observed.
    const listeners = Layer.provide(HttpServer.layer, adminLayer(settings)).pipe(
      Layer.tap(() => Deferred.succeed(listening, undefined))
    )
    const listen = Effect.zipRight(listener.isReloading ? warm : Effect.void, Layer.launch(listeners))
    const work = Effect.all([workers, reloads(lasting)], { concurrency: "unbounded", discard: true })
    return yield* Effect.all([listen, work], { concurrency: "unbounded", discard: true })
  }).pipe(
    Effect.provideService(ApiListener, lasting.listener),
    Effect.provide(appLayer(settings, lasting.env, lasting.store)),
    Effect.zipRight(Effect.never),
    Effect.catchTag("Reloaded", ({ settings: next }) => Effect.succeed(next)),
    Effect.provide(loggingLayer(settings.log, isJournal(lasting.env)))
  )

/** Lives one after the other. What a configuration can be refused for is known before the former parts end. */
const lives = (
  settings: SettingsShape,
  lasting: Lasting
): Effect.Effect<never, Effect.Effect.Error<ReturnType<typeof live>>> =>
  Effect.flatMap(live(settings, lasting), (next) => lives(next, lasting))

/** What a node that waits says of the one that works: to anybody, and to the operator. */
const holderText = ({ holder }: NodeStanding): string =>
  `standby; ${holder === undefined ? "no node is active" : `active is ${holder.node}`}`
const standingText = (standing: NodeStanding): string =>
  `${holderText(standing)}${standing.problem === undefined ? "" : "; this node could not take over, and its log says why"}`
const reasonText = (standing: NodeStanding): string => {
  const version = standing.holder === undefined ? "" : ` with tilld ${standing.holder.version}`
  const problem = standing.problem === undefined ? "" : `; this node could not take over: ${standing.problem}`
  return `${holderText(standing)}${version}${problem}`
}

/**
 * Waits until this node may work with the store in PostgreSQL, and answers meanwhile that it is a standby. The listener stays
 * open for the parts that begin then.
 */
const untilActive = (
  settings: SettingsShape,
  env: SettingsSource["env"],
  listener: KeptListener,
  listening: Effect.Effect<unknown>
) =>
  Effect.gen(function* () {
    const { admin, node, postgres, server } = settings
    if (postgres === undefined) return { store: Sql.layer(settings.database.path), lost: Effect.never }
    const { takeTurn } = yield* Effect.promise(() => import("./Sql/postgres/turn.ts"))
    let standing = "standby; this node has just started"
    const serving = yield* Scope.make()
    yield* Effect.addFinalizer((exit) => Scope.close(serving, exit))
    const reason = () => standing
    const serve = (...of: Parameters<typeof serveHttp>) =>
      serveHttp(...of).pipe(Scope.extend(serving), Effect.provide(Workers.layer))
    const address = yield* serve(standbyRespond(reason), { host: server.host, port: server.port }, {}, listener)
    const forOperator =
      admin && (yield* serve(onlyCalledBy([admin.host, ...admin.names], standbyRespond(reason, node.name)), admin))
    yield* listening
    let told = ""
    const tell = (text: string) =>
      Effect.suspend(() => {
        if (text === told) return Effect.void
        told = text
        return Effect.annotateLogs(Effect.logInfo("this node is a standby"), {
          node: node.name,
          port: address.port,
          operatorPort: forOperator?.port,
          reason: text
        })
      })
    const turn = yield* takeTurn(postgres, node.name, env, (next) => {
      standing = standingText(next)
      return tell(reasonText(next))
    })
    yield* Effect.annotateLogs(Effect.logInfo("this node is active"), { node: node.name })
    listener.isReloading = true
    yield* Scope.close(serving, Exit.void)
    return turn
  })

/** Runs the daemon until it is interrupted. `newDatabase`: an empty one may take the place of one that was lost. */
export const runDaemon = Effect.fnUntraced(function* (source: SettingsSource, newDatabase = false) {
  const settings = yield* load(source)
  const { env } = source
  const { hangup } = yield* hangups
  yield* refuseMissingFolder(settings.database)
  const log = loggingLayer(settings.log, isJournal(env))
  yield* Effect.provide(lock(settings.database.path), log)
  if (!newDatabase && settings.postgres === undefined) yield* refuseLost(settings.database)
  yield* Effect.provide(logProcessWarnings, log)
  yield* Effect.logInfo("tilld starts").pipe(
    Effect.annotateLogs({ version: packageJson.version, node: process.version, ...settings.values }),
    Effect.provide(log)
  )
  const listening = yield* Deferred.make<void>()
  const beside = Effect.all([notifyServiceManager(env, Deferred.await(listening)), untilStopped], {
    concurrency: "unbounded",
    discard: true
  })
  const listener: KeptListener = { isReloading: false }
  const all = Effect.gen(function* () {
    const listens = Deferred.succeed(listening, undefined)
    const { lost, store } = yield* Effect.provide(untilActive(settings, env, listener, listens), log)
    const parts = lives(settings, { env, hangup, listening, listener, store })
    return yield* Effect.all([parts, lost], { concurrency: "unbounded", discard: true })
  }).pipe(Effect.scoped)
  return yield* Effect.all([all, Effect.provide(beside, log)], { concurrency: "unbounded", discard: true }).pipe(
    Effect.onInterrupt(() => Effect.provide(Effect.logInfo("tilld has stopped"), log))
  )
}, Effect.scoped)
