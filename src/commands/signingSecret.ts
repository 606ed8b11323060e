import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Redacted, Schema } from "effect"
import type { Invocation } from "../Control/Invocation.ts"
import { SecretText, secretRule } from "../Domain/Webhook.ts"
import { freshSecret } from "../Webhooks/signature.ts"
import { readInput, UsageError } from "./options.ts"

/** Reads a signing secret from a file, or from standard input for `-`. */
export const readSigningSecret = Effect.fnUntraced(function* (place: string) {
  if (place.startsWith("whsec_")) {
    return yield* new UsageError({
      message:
        "--secret takes a file with the secret, or - for standard input: all users of this machine see a command's arguments"
    })
  }
  const secret = yield* readInput(place)
  return Schema.is(SecretText)(secret)
    ? secret
    : yield* new UsageError({
        message: `${place === "-" ? "The secret on standard input" : `The secret in ${place}`} must ${secretRule}`
      })
})

/** The file of the secret that `tilld listen` signs with: one for all sessions of a user. */
export const listenSecretFile = (env: Invocation["Type"]["env"]): string =>
  join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config"), "tilld", "listen.secret")

/** Makes a file with a new secret, for its owner alone, unless the file exists. */
const makeSecretFile = (file: string) =>
  Effect.try({
    try: () => {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      writeFileSync(file, `${Redacted.value(freshSecret())}\n`, { mode: 0o600, flag: "wx" })
    },
    catch: (cause) =>
      new UsageError({ message: `The signing secret cannot be kept (${cause}): name another file with --secret` })
    // Another session may just have made it.
  }).pipe(
    Effect.catchIf(
      () => existsSync(file),
      () => Effect.void
    )
  )

/** Reads a signing secret as `readSigningSecret` does. A file that does not exist is made with a new secret. */
export const readOrMakeSigningSecret = Effect.fnUntraced(function* (place: string) {
  if (place === "-" || place.startsWith("whsec_")) return yield* readSigningSecret(place)
  yield* makeSecretFile(place)
  const secret = yield* readSigningSecret(place)
  if ((statSync(place).mode & 0o077) !== 0) {
    return yield* new UsageError({ message: `${place} can be read by others than its owner: chmod 600 ${place}` })
  }
  return secret
})
