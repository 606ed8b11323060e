import { Effect, type Redacted } from "effect"
import { whileLocked } from "../Control/ask.ts"
import { Invocation } from "../Control/Invocation.ts"
import * as InstanceLock from "../InstanceLock.ts"
import { rotate } from "../Secrets/rotation.ts"
import { loadMasterKey } from "../Settings/masterKey.ts"
import type { SettingsShape } from "../Settings.ts"
import * as Sql from "../Sql.ts"

/** Changes the master key as the only process that works on the database. */
export const rotateSecrets = Effect.fn("commands.rotateSecrets")(function* (
  settings: SettingsShape,
  next: Redacted.Redacted<Uint8Array>
) {
  const { env } = yield* Invocation
  const { path } = settings.database
  const current = yield* loadMasterKey(path, env)
  yield* Effect.retry(InstanceLock.acquire(path, "secrets rotate"), whileLocked)
  return yield* Effect.provide(rotate(current, next), Sql.layer(path))
}, Effect.scoped)
