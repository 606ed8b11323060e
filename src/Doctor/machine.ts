import { accessSync, constants, existsSync, readdirSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Effect, Either, type Redacted } from "effect"
import { leastFree, ofClock } from "../Conditions/judge.ts"
import { bytesText } from "../lib/quantities.ts"
import { blindJump, type Mark, markFile, readMark, unitFolder } from "../Payments/addresses/IndexMark.ts"
import { doubtOf } from "../Payments/addresses/numbering.ts"
import { fingerprintOf } from "../Secrets.ts"
import { loadMasterKey, type MasterKeyUnusable } from "../Settings/masterKey.ts"
import type { ChainSettings, SettingsShape, SettingsSource } from "../Settings.ts"
import { refusedAccess } from "../Sql/fileAccess.ts"
import { freeBytes } from "../Sql/nativeParts.ts"
import { type AskedDaemon, findingOf, isHealth } from "./daemon.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"
import type { Seen } from "./providers.ts"
import type { StoreFacts } from "./storeFacts.ts"

/**
 * Whether the index mark lets the next start continue the numbering of the database. `mark` must be read before the
 * database: a running daemon writes the mark after it.
 */
export const examineNumbering = ({ folder, mark }: MarkLook, { token, wallets }: StoreFacts, daemon: AskedDaemon) =>
  Effect.sync((): Finding => {
    const name = "address numbering"
    const remedy = "make it writable for tilld, or give another one as database.mark_folder; run this as tilld's user"
    const refused = isHealth(daemon) || !existsSync(folder) ? undefined : refusedAccess([folder])
    if (Either.isLeft(mark) || refused !== undefined) {
      const reason = Either.isLeft(mark) ? mark.left : refused
      return fail(name, `its mark cannot be kept in ${folder}: ${reason}`, remedy)
    }
    const next = Array.from(wallets, ([wallet, use]) => [wallet, use.next] as const)
    const doubt = doubtOf({ token, wallets: Object.fromEntries(next) }, mark.right)
    return doubt === undefined
      ? ok(
          name,
          token === ""
            ? "it begins with the first start"
            : `the mark in ${folder} proves that it goes on where it stands`
        )
      : warn(
          name,
          `the next start skips ${blindJump} addresses of each wallet: ${doubt}`,
          "none right after a copy was restored; otherwise let database.mark_folder be the same at each start, on a disk that lasts"
        )
  })

/** An index mark, or why it cannot be read, and its folder. */
export interface MarkLook {
  readonly folder: string
  readonly mark: Either.Either<Mark | undefined, unknown>
}

/**
 * Reads the index mark: in the daemon's folder; without a daemon where the configuration says, or else, since its default
 * depends on the environment, where the unit has it.
 */
export const lookAtMark = ({ database }: SettingsShape, daemon: AskedDaemon) =>
  Effect.sync((): MarkLook => {
    const folders = isHealth(daemon) ? [daemon.markFolder] : [database.markFolder, unitFolder]
    const place = (markFolder: string) => ({ ...database, markFolder })
    const folder = folders.find((each) => existsSync(markFile(place(each)))) ?? folders[0] ?? database.markFolder
    return { folder, mark: Either.try(() => readMark(place(folder))) }
  })

/** The folder, or its nearest parent that exists. */
const existing = (folder: string): string => (existsSync(folder) ? folder : existing(dirname(folder)))

/** Checks the free space at the database. */
export const examineDisk = ({ database: { path } }: SettingsShape) =>
  Effect.sync((): Finding => {
    const folder = existing(dirname(resolve(path)))
    const free = freeBytes(folder) ?? 0
    const finding = `${bytesText(free)} free at ${folder}`
    const remedy = "free some space or move database.path: with a full disk no payment is taken"
    return free < leastFree ? fail("disk", finding, remedy) : ok("disk", finding)
  })

/** The databases that restores have replaced: nothing removes them, and each holds what its database held. */
export const examineReplaced = ({ database: { path } }: SettingsShape) =>
  Effect.sync((): ReadonlyArray<Finding> => {
    const folder = dirname(path)
    const names = existsSync(folder) ? readdirSync(folder) : []
    const kept = names.filter((name) => name.startsWith(`${basename(path)}.before-restore-`))
    const remedy = "remove them once nothing of them is missed"
    return kept.length === 0 ? [] : [warn("former databases", `${folder} has ${kept.join(", ")}`, remedy)]
  })

/** The file that the unit passes as the key, as docs/install.md has it: beside the configuration. */
const unitKeyOf = (source: SettingsSource): string => join(dirname(resolve(source.path)), "master-key")

/** The key that a start would get: if this command has none, it is the unit's, which root can read. */
const findKey = (database: string, source: SettingsSource) =>
  Effect.catchIf(
    loadMasterKey(database, source.env),
    ({ isMissing }) => isMissing === true,
    (missing) => {
      const file = unitKeyOf(source)
      const read = Effect.try({ try: () => accessSync(file, constants.R_OK), catch: () => missing })
      return Effect.zipRight(read, loadMasterKey(database, { CREDENTIALS_DIRECTORY: dirname(file) }))
    }
  )

const judgeKey = (
  key: Either.Either<Redacted.Redacted<Uint8Array>, MasterKeyUnusable>,
  unitKey: string,
  facts: StoreFacts | undefined
): Finding => {
  const name = "master key"
  if (Either.isLeft(key)) {
    if (!key.left.isMissing) return fail(name, key.left.message, "without it no webhook can be signed")
    if (existsSync(unitKey)) {
      const finding = `only root can read ${unitKey}, and no daemon runs that could say whether it is the one`
      return warn(name, finding, "ask as root")
    }
    const finding = `this command has been given none, there is no ${unitKey} for the unit, and no daemon runs that has one`
    return facts?.keyFingerprint === undefined
      ? warn(
          name,
          finding,
          `put the key there that the database was sealed with; for a new database: (umask 077; openssl rand -base64 32 > ${unitKey})`
        )
      : fail(name, finding, "put the key there that the database was sealed with")
  }
  if (facts === undefined) {
    const finding = "there is one; whether it opens the secrets of the database is unknown, since that was not read"
    return warn(name, finding, "run this again when the database can be read")
  }
  if (facts.keyFingerprint === undefined) return ok(name, "there is one; the database has not been sealed yet")
  return fingerprintOf(key.right) === facts.keyFingerprint
    ? ok(name, "it opens the secrets of the database")
    : fail(
        name,
        "it is not the one that the database was sealed with",
        "give the one that it was sealed with last: after tilld secrets rotate that is the new one"
      )
}

/** Checks that the master key can be read, and that it sealed the database: a running daemon has proven both. */
export const examineMasterKey = Effect.fn("Doctor.masterKey")(function* (
  { database: { path } }: SettingsShape,
  source: SettingsSource,
  daemon: AskedDaemon,
  facts: StoreFacts | undefined
) {
  const name = "master key"
  if (isHealth(daemon)) return [ok(name, "the daemon runs with the one that opens the secrets of the database")]
  // It has one, or reports that it has none.
  if (daemon !== undefined) return []
  return [judgeKey(yield* Effect.either(findKey(path, source)), unitKeyOf(source), facts)]
})

/** The clock, as a daemon that starts now would judge it. */
export const examineClock = (reached: ReadonlyArray<readonly [ChainSettings, Seen]>): ReadonlyArray<Finding> => {
  const wrong = ofClock(reached.map(([{ chain, mode }, { headAheadSeconds }]) => ({ chain, mode, headAheadSeconds })))
  return wrong.length === 0 && reached.length > 0
    ? [ok("clock", "it agrees with the heads of the chains")]
    : wrong.map((one) => findingOf({ ...one, key: one.kind }))
}
