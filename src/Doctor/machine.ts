import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Clock, Duration, Effect, Either, Redacted } from "effect"
import { type HttpClient, makeHttpClient } from "../lib/httpClient.ts"
import { blindJump, type Mark, markFile, readMark, unitFolder } from "../Payments/addresses/IndexMark.ts"
import { doubtOf } from "../Payments/addresses/numbering.ts"
import { fingerprintOf } from "../Secrets.ts"
import { loadMasterKey, type MasterKeyUnusable } from "../Settings/masterKey.ts"
import type { SettingsShape, SettingsSource } from "../Settings.ts"
import { refusedAccess } from "../Sql/fileAccess.ts"
import { type AskedDaemon, isHealth } from "./daemon.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"
import type { Seen } from "./providers.ts"
import type { StoreFacts } from "./storeFacts.ts"

const gigabyte = 1e9
/** Free bytes below which the disk is a warning, and below which it is a failure. */
const littleSpace = 2 * gigabyte
const noSpace = 0.2 * gigabyte
/** Milliseconds that NTP-synchronised clocks differ by at most, and that make payments expire at the wrong time. */
const usualSkew = 5_000
const badSkew = 60_000
/** Age of a chain's head, in milliseconds, from which it is not evidence about the clock. */
const oldHead = 600_000
const dateDeadline = "5 seconds"

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

const size = (path: string): number => (existsSync(path) ? statSync(path).size : 0)
const shownSize = (bytes: number): string =>
  bytes < gigabyte ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / gigabyte).toFixed(1)} GB`

/** The disk of the database: free bytes, and those that the database takes. */
const diskOf = (path: string) => {
  const folder = existing(dirname(resolve(path)))
  const { bavail, bsize } = statfsSync(folder)
  return { folder, free: bavail * bsize, used: size(path) + size(`${path}-wal`) }
}

/** Checks the free space at the database: a backup takes as much as the database. */
export const examineDisk = ({ database: { path } }: SettingsShape) =>
  Effect.sync((): Finding => {
    const { folder, free, used } = diskOf(path)
    const finding = `${shownSize(free)} free at ${folder}; the database takes ${shownSize(used)}`
    const remedy = "free some space or move database.path: with a full disk no payment is taken"
    if (free < noSpace) return fail("disk", finding, remedy)
    return free < Math.max(littleSpace, 2 * used) ? warn("disk", finding, remedy) : ok("disk", finding)
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

/** Milliseconds by which this machine's clock is ahead of a provider's Date header, which has whole seconds. */
const skewOf = (client: HttpClient, url: URL) =>
  Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis
    const { headers } = yield* Effect.timeout(client.send({ url, method: "HEAD", maxBytes: 64 * 1024 }), dateDeadline)
    const after = yield* Clock.currentTimeMillis
    const theirs = Date.parse(headers.date ?? "")
    return Number.isNaN(theirs) ? [] : [(before + after) / 2 - (theirs + 500)]
  }).pipe(Effect.catchAll(() => Effect.succeed<ReadonlyArray<number>>([])))

const skewsOf = (urls: ReadonlyArray<URL>) =>
  Effect.scoped(
    Effect.flatMap(makeHttpClient(dateDeadline), (client) =>
      Effect.forEach(urls, (url) => skewOf(client, url), { concurrency: "unbounded" })
    )
  )

/** Whether the clock agrees with a chain's head, which may have grown old during other checks. */
export const isOfNow = (now: number, seen: ReadonlyArray<Seen>): boolean =>
  seen.some(({ head }) => head.time * 1000 - now <= badSkew && now - head.time * 1000 <= oldHead)

/** Compares the clock with the newest blocks and the providers' clocks. */
export const examineClock = Effect.fn("Doctor.clock")(function* (
  { payments }: SettingsShape,
  urls: ReadonlyArray<Redacted.Redacted<string>>,
  seen: ReadonlyArray<Seen>
) {
  const name = "clock"
  const remedy = "let chrony or systemd-timesyncd set the clock: payments expire by it"
  const now = yield* Clock.currentTimeMillis
  const skews = yield* skewsOf(urls.map((url) => new URL(Redacted.value(url))))
  const ahead = skews.flat().sort((a, b) => a - b)[Math.floor(skews.flat().length / 2)]
  const newest = Math.max(...seen.map(({ head }) => head.time)) * 1000
  const blockAhead = newest - now
  const blocks =
    seen.length === 0 ? "no block to compare with" : `newest block ${(-blockAhead / 1000).toFixed(0)} s old`
  if (blockAhead > badSkew) {
    const finding = `the newest block is ${(blockAhead / 1000).toFixed(0)} s ahead of it`
    if (ahead === undefined || Math.abs(ahead) > usualSkew) return fail(name, finding, remedy)
    // The chain's own clock is set ahead, as on test chains.
    const agreed = `${finding}, and the providers' clocks agree with it`
    const tolerance = Duration.toMillis(payments.clockTolerance)
    return blockAhead > tolerance
      ? fail(
          name,
          `${agreed}: more than payments.clock_tolerance, so that the chain is not read`,
          "check that rpc_urls is the public chain; for a test chain raise payments.clock_tolerance"
        )
      : warn(name, agreed, "check that rpc_urls is the public chain; on a test chain payments end by the chain's time")
  }
  if (ahead === undefined) return ok(name, `${blocks}; no provider sends its time`)
  const finding = `${Math.abs(ahead / 1000).toFixed(1)} s ${ahead < 0 ? "behind" : "ahead of"} the providers' clocks, ${blocks}`
  if (Math.abs(ahead) > badSkew) return fail(name, finding, remedy)
  return Math.abs(ahead) > usualSkew ? warn(name, finding, remedy) : ok(name, finding)
})
