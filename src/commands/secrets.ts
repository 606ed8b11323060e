import { existsSync } from "node:fs"
import { Command } from "@effect/cli"
import { Effect, Option, type Redacted } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import * as Control from "../Control/rotateSecrets.ts"
import { audited } from "../Operations/auditLog.ts"
import { fingerprintOf } from "../Secrets.ts"
import { loadMasterKey, readNewMasterKey } from "../Settings/masterKey.ts"
import type { SettingsShape } from "../Settings.ts"
import * as InstanceLock from "../Sql/InstanceLock.ts"
import * as Sql from "../Sql.ts"
import { whileLocked } from "./askDaemon.ts"
import { complain, print } from "./Output.ts"
import { common, fileOption, loadSettings, mustBeFile, UsageError } from "./options.ts"

/** Seals all secrets with the master key `next`. Holds the instance lock, so that no daemon runs meanwhile. */
const rotateSecrets = Effect.fn("commands.rotateSecrets")(function* (
  { database: { path } }: SettingsShape,
  next: Redacted.Redacted<Uint8Array>
) {
  const { env, user: who } = yield* Invocation
  const current = yield* loadMasterKey(path, env)
  yield* Effect.retry(InstanceLock.acquire(path, "secrets rotate"), whileLocked)
  const act = { act: "secrets rotate", detail: { fingerprint: fingerprintOf(next) } }
  return yield* Effect.provide(
    audited({ via: "direct", who }, act, () => Control.rotate(current, next)),
    Sql.layer(path)
  )
}, Effect.scoped)

const rotate = Command.make(
  "rotate",
  {
    ...common,
    newKey: fileOption(
      "new-key",
      "The new master key: a file, or - for standard input; otherwise the systemd credential new-master-key"
    )
  },
  Effect.fnUntraced(function* ({ newKey, ...options }) {
    const { env } = yield* Invocation
    const settings = yield* loadSettings(options)
    yield* mustBeFile(
      settings,
      "the master key is changed in a file, to which tilld store copy --to moves the data, and --from moves it back"
    )
    const next = yield* readNewMasterKey(Option.getOrUndefined(newKey), env)
    if (!existsSync(settings.database.path)) {
      return yield* new UsageError({ message: `There is no database ${settings.database.path}: nothing is sealed yet` })
    }
    const done = yield* rotateSecrets(settings, next)
    const text = done.rotated
      ? `${done.secrets} secrets are sealed with the new master key, fingerprint ${done.fingerprint}.`
      : `The new master key, fingerprint ${done.fingerprint}, is the one that the database is sealed with already.`
    if (options.json) return yield* print(JSON.stringify(done))
    yield* print(text)
    if (done.rotated) {
      yield* complain("Replace the old key with it before you start tilld, which refuses the old one from now on.")
      if (settings.alerts.url !== "") {
        yield* complain(
          "Messages to alerts.url are signed with another secret from then on: tilld alerts secret prints it."
        )
      }
    }
  })
).pipe(
  Command.withDescription(
    "Seal all secrets in the database with another master key. Needs the old one where it is, and no running daemon"
  )
)

/** `tilld secrets`: changes the master key. */
export const secrets = Command.make("secrets").pipe(
  Command.withDescription("The master key that seals secrets in the database"),
  Command.withSubcommands([rotate])
)
