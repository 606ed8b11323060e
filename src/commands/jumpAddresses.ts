import { existsSync } from "node:fs"
import { Effect, Layer } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { carryOut } from "../Operations/auditLog.ts"
import { jumpAddresses } from "../Payments/addresses/addressOperations.ts"
import { notedJumps } from "../Payments/addresses/numbering.ts"
import { Settings, type SettingsShape } from "../Settings.ts"
import * as InstanceLock from "../Sql/InstanceLock.ts"
import * as Sql from "../Sql.ts"
import { whileLocked } from "./askDaemon.ts"
import { UsageError } from "./options.ts"

/** Skips addresses where no daemon runs: its next start must not hand out what a snapshot has forgotten. */
export const jumpDirectly = Effect.fn("commands.jumpDirectly")(function* (
  settings: SettingsShape,
  input: { readonly by: number }
) {
  const { user: who } = yield* Invocation
  const { path } = settings.database
  if (!existsSync(path)) {
    return yield* new UsageError({ message: `There is no database ${path}: no address has been handed out` })
  }
  yield* Effect.retry(InstanceLock.acquire(path, "addresses jump"), whileLocked)
  return yield* Effect.provide(
    carryOut(jumpAddresses, input, { actor: { via: "direct", who }, isOperator: true }),
    notedJumps.pipe(Layer.provideMerge(Sql.layer(path)), Layer.provideMerge(Layer.succeed(Settings, settings)))
  )
}, Effect.scoped)
