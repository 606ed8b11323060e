import { existsSync } from "node:fs"
import { Console, Effect, Layer, Logger, LogLevel } from "effect"
import type { Actor } from "../Auth/auditLog.ts"
import { Accounts, Keys } from "../Auth.ts"
import { NotUnderstood } from "../Control/controlRequests.ts"
import { chained, plain, sealed, sending } from "../Control/handlers.ts"
import { Invocation } from "../Control/Invocation.ts"
import { allOperations } from "../Control/operations.ts"
import { Outbox } from "../Events/Outbox.ts"
import { refuseLost, refuseMissingFolder } from "../Payments/addresses/lostDatabase.ts"
import { notedJumps } from "../Payments/addresses/numberingJumps.ts"
import { settlementLayer } from "../Payments/Settlement.ts"
import { Secrets } from "../Secrets.ts"
import { MasterKey, Settings, type SettingsShape } from "../Settings.ts"
import * as InstanceLock from "../Sql/InstanceLock.ts"
import * as Sql from "../Sql.ts"
import { StoreUnusable } from "../Sql.ts"
import { DeliveryBell } from "../Webhooks/queue/DeliveryBell.ts"
import { SigningKeys } from "../Webhooks/SigningKeys.ts"

/** Loaded only for requests that need the chains or send webhooks. */
const app = Effect.promise(() => import("../App.ts"))

const storeLayer = (settings: SettingsShape) =>
  settlementLayer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(Accounts.layer, Keys.layer, Layer.provideMerge(Outbox.layer, DeliveryBell.layer), notedJumps)
    ),
    Layer.provideMerge(Sql.layer(settings.database.path)),
    Layer.provideMerge(Layer.succeed(Settings, settings))
  )

/** Requests that create the database: an operator may send them before the daemon has run for the first time. */
const creating: ReadonlySet<string> = new Set(
  allOperations.flatMap(({ makesDatabase, name }) => (makesDatabase ? [name] : []))
)

const noDatabase = (path: string) =>
  new StoreUnusable({
    message:
      `There is no database ${path}: name the configuration of the tilld that you mean with --config or TILLD_CONFIG; ` +
      "for a new one, tilld serve makes the database"
  })

/** Takes the lock of a database that exists, or that a request of this tag may create. */
const lock = Effect.fnUntraced(function* (database: SettingsShape["database"], command: string, tag: string) {
  const { path } = database
  const creates = creating.has(tag)
  // A daemon that starts for the first time has the lock before it has the database.
  if (!creates && !existsSync(path) && !existsSync(`${path}.lock`)) {
    return yield* Effect.zipRight(refuseLost(database), noDatabase(path))
  }
  yield* refuseMissingFolder(database)
  yield* InstanceLock.acquire(path, command)
  yield* refuseLost(database)
  if (existsSync(path)) return
  if (!creates) return yield* noDatabase(path)
  yield* Console.error(`Making the database ${path}`)
})

/**
 * Carries out a request where no daemon runs, and holds the instance lock meanwhile; `command` names it to processes that
 * find the lock taken. The master key is read only for requests that need it. Fails with `InstanceLocked`, and with
 * `StoreUnusable` where there is no database.
 */
export const withoutDaemon = Effect.fn("commands.withoutDaemon")(
  function* (settings: SettingsShape, command: string, tag: string, input: unknown) {
    const { env, user: who } = yield* Invocation
    const actor: Actor = { via: "direct", who }
    yield* lock(settings.database, command, tag)
    const chainedHandler = chained.get(tag)
    if (chainedHandler !== undefined) {
      const { repairLayer } = yield* app
      return yield* Effect.provide(chainedHandler.handle(input, actor), repairLayer(settings))
    }
    const store = storeLayer(settings)
    const plainHandler = plain.get(tag)
    if (plainHandler !== undefined) return yield* Effect.provide(plainHandler.handle(input, actor), store)
    const secrets = Secrets.layer.pipe(Layer.provide(MasterKey.layer(env)), Layer.provideMerge(store))
    const sealedHandler = sealed.get(tag)
    if (sealedHandler !== undefined)
      return yield* Effect.provide(sealedHandler.handle(input, actor), Layer.provideMerge(SigningKeys.layer, secrets))
    const sendingHandler = sending.get(tag)
    if (sendingHandler === undefined) return yield* NotUnderstood.of()
    const { sendingLayer } = yield* app
    return yield* Effect.provide(
      sendingHandler.handle(input, actor),
      Layer.provide(sendingLayer, secrets).pipe(Layer.merge(store))
    )
    // The result says what a command did: the daemon's lines would only repeat it.
  },
  Effect.scoped,
  Logger.withMinimumLogLevel(LogLevel.Warning)
)
