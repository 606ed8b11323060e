import { Effect, type Redacted } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { rotate } from "../Control/rotateSecrets.ts"
import { audited } from "../Operations/auditLog.ts"
import { fingerprintOf } from "../Secrets.ts"
import { loadMasterKey } from "../Settings/masterKey.ts"
import type { SettingsShape } from "../Settings.ts"
import * as InstanceLock from "../Sql/InstanceLock.ts"
import * as Sql from "../Sql.ts"
import { whileLocked } from "./askDaemon.ts"

/** Seals all secrets with the master key `next`. Holds the instance lock, so that no daemon runs meanwhile. */
export const rotateSecrets = Effect.fn("commands.rotateSecrets")(function* (
  settings: SettingsShape,
  next: Redacted.Redacted<Uint8Array>
) {
  const { env, user: who } = yield* Invocation
  const { path } = settings.database
  const current = yield* loadMasterKey(path, env)
  yield* Effect.retry(InstanceLock.acquire(path, "secrets rotate"), whileLocked)
  const act = { act: "secrets rotate", detail: { fingerprint: fingerprintOf(next) } }
  return yield* Effect.provide(
    audited({ via: "direct", who }, act, () => rotate(current, next)),
    Sql.layer(path)
  )
}, Effect.scoped)
