import { randomBytes } from "node:crypto"
import { existsSync, lstatSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Data, Effect, Redacted } from "effect"
import type { SettingsSource } from "./configSource.ts"

const keyBytes = 32

/** No usable master key. The message says where it was searched and what to do, and never shows the key. */
export class MasterKeyUnusable extends Data.TaggedError("MasterKeyUnusable")<{
  readonly message: string
  /** None was given. */
  readonly isMissing?: boolean
}> {}

const remedy = "make one with: openssl rand -base64 32, keep a copy apart from the backups, and never change it by hand"

const besideDatabase = (database: string) => join(dirname(database), "master.key")

/**
 * The first place that has a key: the systemd credential `master-key`, TILLD_MASTER_KEY, `master.key` by the database.
 */
const find = (database: string, env: SettingsSource["env"]) => {
  const directory = env.CREDENTIALS_DIRECTORY
  const credential = directory === undefined ? undefined : join(directory, "master-key")
  if (credential !== undefined && existsSync(credential)) {
    const place = `the credential ${credential}, which LoadCredential= of the unit takes from /etc/tilld/master-key by default,`
    return { place, text: readFileSync(credential, "utf8"), file: undefined }
  }
  if (env.TILLD_MASTER_KEY !== undefined) {
    return { place: "TILLD_MASTER_KEY", text: env.TILLD_MASTER_KEY, file: undefined }
  }
  const file = besideDatabase(database)
  return existsSync(file) ? { place: file, text: readFileSync(file, "utf8"), file } : undefined
}

/** A key file must be no link, and readable only by its owner. systemd protects its credentials itself. */
const refuseReadable = (file: string, instead: string) =>
  Effect.suspend(() => {
    const found = lstatSync(file)
    const message = found.isSymbolicLink()
      ? `The master key ${file} is a link, which is not followed: put the key itself there`
      : `The master key in ${file} can be read by others than its owner: chmod 600 ${file}, and ${instead} if others may have read it`
    return (found.mode & 0o077) === 0 ? Effect.void : new MasterKeyUnusable({ message })
  })

const parse = (found: { readonly place: string; readonly text: string }) =>
  Effect.suspend(() => {
    const text = found.text.trim()
    const bytes = Buffer.from(text, "base64")
    // Node decodes base64 leniently. Only its canonical form is accepted.
    if (bytes.length !== keyBytes || bytes.toString("base64") !== text) {
      return new MasterKeyUnusable({
        message: `The master key in ${found.place} must be ${keyBytes} bytes in base64, 44 characters; ${remedy}`
      })
    }
    if (bytes.every((byte) => byte === 0)) {
      return new MasterKeyUnusable({
        message: `The master key in ${found.place} is all zeros, which is easy to guess; ${remedy}`
      })
    }
    return Effect.succeed(Redacted.make(Uint8Array.from(bytes)))
  })

/** Reads the master key: 32 bytes in base64. */
export const loadMasterKey = Effect.fn("Settings.loadMasterKey")(function* (
  database: string,
  env: SettingsSource["env"]
) {
  const found = yield* Effect.try({
    try: () => find(database, env),
    catch: (cause) =>
      new MasterKeyUnusable({ message: `The master key cannot be read (${cause}): check its permissions` })
  })
  if (found === undefined) {
    return yield* new MasterKeyUnusable({
      isMissing: true,
      message:
        "There is no master key, which seals secrets in the database: give the systemd credential master-key, " +
        `TILLD_MASTER_KEY or the file ${besideDatabase(database)}; ${remedy}`
    })
  }
  if (found.file !== undefined) yield* refuseReadable(found.file, "change the key with tilld secrets rotate")
  return yield* parse(found)
})

/**
 * Reads the new master key for a rotation: from a file, from standard input if that is `-`, or from the systemd
 * credential `new-master-key`.
 */
export const readNewMasterKey = Effect.fn("Settings.readNewMasterKey")(function* (
  given: string | undefined,
  env: SettingsSource["env"]
) {
  const directory = env.CREDENTIALS_DIRECTORY
  const file = given ?? (directory === undefined ? undefined : join(directory, "new-master-key"))
  if (file === undefined) {
    return yield* new MasterKeyUnusable({
      message: "There is no new master key: give --new-key FILE, --new-key - or the systemd credential new-master-key"
    })
  }
  const place = file === "-" ? "standard input" : file
  const text = yield* Effect.try({
    try: () => readFileSync(file === "-" ? 0 : file, "utf8"),
    catch: (cause) => new MasterKeyUnusable({ message: `The new master key cannot be read from ${place} (${cause})` })
  })
  if (given !== undefined && given !== "-") yield* refuseReadable(given, "make another one")
  return yield* parse({ place, text })
})

/** Creates `master.key` beside the database, readable only by its owner, unless it exists. For the sandbox. */
export const makeMasterKeyFile = (database: string): Effect.Effect<void> =>
  Effect.sync(() => {
    const file = besideDatabase(database)
    if (existsSync(file)) return
    writeFileSync(file, `${randomBytes(keyBytes).toString("base64")}\n`, { mode: 0o600, flag: "wx" })
  })
