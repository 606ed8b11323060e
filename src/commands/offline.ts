import { existsSync } from "node:fs"
import { Console, Effect, Layer, Logger, LogLevel } from "effect"
import { Accounts, Keys } from "../Auth.ts"
import { Invocation } from "../Control/Invocation.ts"
import { answerTo } from "../Control/operationAnswer.ts"
import type { ServicesFor } from "../Control/operations.ts"
import { ControlUnusable } from "../Control/socketProtocol.ts"
import { Outbox } from "../Events/Outbox.ts"
import { pluginEventsLayer } from "../Greenfield/readInvoice.ts"
import type { AnyOperation, Needs } from "../Operations/operation.ts"
import { refuseLost, refuseMissingFolder } from "../Payments/addresses/IndexMark.ts"
import { notedJumps } from "../Payments/addresses/numbering.ts"
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
    Layer.provide(pluginEventsLayer),
    Layer.provideMerge(Sql.layer(settings.database.path)),
    Layer.provideMerge(Layer.succeed(Settings, settings))
  )

const noDatabase = (path: string) =>
  new StoreUnusable({
    message:
      `There is no database ${path}: name the configuration of the tilld that you mean with --config or TILLD_CONFIG; ` +
      "for a new one, tilld serve makes the database"
  })

/** Takes the lock of a database that exists, or that the operation may create. */
const lock = Effect.fnUntraced(function* (database: SettingsShape["database"], { makesDatabase, name }: AnyOperation) {
  const { path } = database
  // A daemon that starts for the first time has the lock before it has the database.
  if (!makesDatabase && !existsSync(path) && !existsSync(`${path}.lock`)) {
    return yield* Effect.zipRight(refuseLost(database), noDatabase(path))
  }
  yield* refuseMissingFolder(database)
  yield* InstanceLock.acquire(path, name)
  yield* refuseLost(database)
  if (existsSync(path)) return
  if (!makesDatabase) return yield* noDatabase(path)
  yield* Console.error(`Making the database ${path}`)
})

/**
 * Carries out an operation where no daemon runs, and holds the instance lock meanwhile. The master key is read only for one
 * that needs it. Fails with `InstanceLocked`, and with `StoreUnusable` where there is no database.
 */
export const withoutDaemon = Effect.fn("commands.withoutDaemon")(
  function* (settings: SettingsShape, operation: AnyOperation, json: unknown) {
    const { env, user: who } = yield* Invocation
    yield* lock(settings.database, operation)
    const answer = <N extends Needs>(_: N) => answerTo<ServicesFor[N]>(operation, json, { via: "direct", who })
    const layer = storeLayer(settings)
    const secrets = Secrets.layer.pipe(Layer.provide(MasterKey.layer(env)), Layer.provideMerge(layer))
    switch (operation.needs) {
      case "store":
        return yield* Effect.provide(answer("store"), layer)
      case "secrets":
        return yield* Effect.provide(answer("secrets"), Layer.provideMerge(SigningKeys.layer, secrets))
      case "chains":
        return yield* Effect.provide(answer("chains"), (yield* app).repairLayer(settings))
      case "sending":
        return yield* Effect.provide(
          answer("sending"),
          Layer.provide((yield* app).sendingLayer, secrets).pipe(Layer.merge(layer))
        )
      case "daemon":
        return yield* new ControlUnusable({ message: `tilld ${operation.name} needs a running daemon: start it` })
    }
    // The result says what a command did: the daemon's lines would only repeat it.
  },
  Effect.scoped,
  Logger.withMinimumLogLevel(LogLevel.Warning)
)
