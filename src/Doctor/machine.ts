import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import Database from "better-sqlite3"
import { Clock, Duration, Effect, Either, Redacted } from "effect"
import { Agent } from "undici"
import { type Mark, readMark } from "../Payments/addresses/IndexMark.ts"
import { blindJump, doubtOf } from "../Payments/addresses/numbering.ts"
import { fingerprintOf } from "../Secrets.ts"
import { loadMasterKey } from "../Settings/masterKey.ts"
import type { SettingsShape, SettingsSource } from "../Settings.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"
import type { Seen } from "./providers.ts"

const gigabyte = 1e9
/** Free bytes below which the disk is a warning, and below which it is a failure. */
const littleSpace = 2 * gigabyte
const noSpace = 0.2 * gigabyte
/** Milliseconds that NTP-synchronised clocks differ by at most, and that make payments expire at the wrong time. */
const usualSkew = 5_000
const badSkew = 60_000
const dateDeadline = "5 seconds"

/** What was read from the database file, opened read-only. */
export interface StoreLook {
  readonly findings: ReadonlyArray<Finding>
  /** The next index of each wallet by fingerprint, including a pending jump. */
  readonly nextIndexes: ReadonlyMap<string, number>
  /** Numbering token of the daemon's last start; empty before the first. */
  readonly token: string
  /** Fingerprint of the master key that sealed the database; undefined where nothing is sealed yet. */
  readonly keyFingerprint: string | undefined
}

const nothing: Omit<StoreLook, "findings"> = { nextIndexes: new Map(), token: "", keyFingerprint: undefined }

const lookInto = (database: Database.Database): StoreLook => {
  const name = "database"
  const damage = (database.pragma("quick_check(5)") as ReadonlyArray<{ quick_check: string }>)
    .map((row) => row.quick_check)
    .filter((line) => line !== "ok")
  const orphans = database.pragma("foreign_key_check") as ReadonlyArray<{ table: string }>
  const wallets = database
    .prepare("SELECT fingerprint, next_index + jump AS next FROM wallets")
    .all() as ReadonlyArray<{
    fingerprint: string
    next: number
  }>
  const { token } = database.prepare("SELECT token FROM numbering").get() as { token: string }
  const meta = database.prepare("SELECT value FROM meta WHERE key = 'master_key_fingerprint'").get() as
    | { value: string }
    | undefined
  const restore = "stop tilld, keep a copy of the files, and restore the last backup"
  const findings = [
    damage.length === 0
      ? ok(name, "quick_check finds no damage")
      : fail(name, `it is damaged: ${damage.join("; ").slice(0, 300)}`, restore),
    ...(orphans.length === 0
      ? []
      : [fail(name, `${orphans.length} rows refer to missing rows, such as in ${orphans[0]?.table}`, restore)])
  ]
  return {
    findings,
    nextIndexes: new Map(wallets.map((row) => [row.fingerprint, row.next])),
    token,
    keyFingerprint: meta?.value
  }
}

/** Checks the integrity of the database file, which it reads whole, in this process: a running daemon is not held up. */
export const examineDatabase = ({ database: { path } }: SettingsShape) =>
  Effect.sync((): StoreLook => {
    if (!existsSync(path)) {
      const finding = warn("database", `${path} is not there yet`, "tilld serve makes it at its first start")
      return { ...nothing, findings: [finding] }
    }
    return Either.try(() => {
      const database = new Database(path, { readonly: true, timeout: 5_000 })
      try {
        return lookInto(database)
      } finally {
        database.close()
      }
    }).pipe(
      Either.getOrElse((error) => ({
        ...nothing,
        findings: [fail("database", `${path} cannot be read: ${error}`, "check the file, and run this as tilld's user")]
      }))
    )
  })

/**
 * Whether the index mark lets the next start continue the numbering of the database. `mark` must be read before the
 * database: a running daemon writes the mark after it.
 */
export const examineNumbering = (
  { database }: SettingsShape,
  mark: Either.Either<Mark | undefined, unknown>,
  { nextIndexes, token }: StoreLook
) =>
  Effect.sync((): Finding => {
    const name = "address numbering"
    const folder = database.markFolder
    const usable = Either.flatMap(mark, (found) =>
      Either.map(
        Either.try(() => accessSync(existing(folder), constants.W_OK)),
        () => found
      )
    )
    if (Either.isLeft(usable)) {
      const remedy = "make it writable for tilld, or give another one as database.mark_folder; run this as tilld's user"
      return fail(name, `its mark cannot be kept in ${folder}: ${usable.left}`, remedy)
    }
    const doubt = doubtOf({ token, wallets: Object.fromEntries(nextIndexes) }, usable.right)
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

/** The index mark, or why it cannot be read. */
export const lookAtMark = ({ database }: SettingsShape) => Effect.sync(() => Either.try(() => readMark(database)))

/** The folder, or its nearest parent that exists. */
const existing = (folder: string): string => (existsSync(folder) ? folder : existing(dirname(folder)))

const size = (path: string): number => (existsSync(path) ? statSync(path).size : 0)
const inGigabytes = (bytes: number): string => `${(bytes / gigabyte).toFixed(1)} GB`

/** Checks the free space at the database: a backup takes as much as the database. */
export const examineDisk = ({ database: { path } }: SettingsShape) =>
  Effect.sync((): Finding => {
    const folder = existing(dirname(resolve(path)))
    const { bavail, bsize } = statfsSync(folder)
    const free = bavail * bsize
    const used = size(path) + size(`${path}-wal`)
    const finding = `${inGigabytes(free)} free at ${folder}; the database takes ${inGigabytes(used)}`
    const remedy = "free some space or move database.path: with a full disk no payment is taken"
    if (free < noSpace) return fail("disk", finding, remedy)
    return free < Math.max(littleSpace, 2 * used) ? warn("disk", finding, remedy) : ok("disk", finding)
  })

/** Checks that the master key can be read, and that it sealed the database. */
export const examineMasterKey = Effect.fn("Doctor.masterKey")(function* (
  { database: { path } }: SettingsShape,
  env: SettingsSource["env"],
  sealedWith: string | undefined
) {
  const name = "master key"
  const key = yield* Effect.either(loadMasterKey(path, env))
  if (Either.isLeft(key)) return fail(name, key.left.message, "without it no webhook can be signed")
  if (sealedWith === undefined) return ok(name, "there is one; the database has not been sealed yet")
  return fingerprintOf(key.right) === sealedWith
    ? ok(name, "it opens the secrets of the database")
    : fail(
        name,
        "it is not the one that the database was sealed with",
        "give the one that it was sealed with last: after tilld secrets rotate that is the new one"
      )
})

/** Milliseconds by which this machine's clock is ahead of a provider's Date header, which has whole seconds. */
const skewOf = (agent: Agent, url: URL) =>
  Effect.gen(function* () {
    const { origin, pathname: path } = url
    const before = yield* Clock.currentTimeMillis
    const date = yield* Effect.tryPromise((signal) =>
      agent
        .request({ origin, path, method: "HEAD", signal })
        .then(({ body, headers }) => body.dump().then(() => headers.date))
    ).pipe(Effect.timeout(dateDeadline))
    const after = yield* Clock.currentTimeMillis
    const theirs = typeof date === "string" ? Date.parse(date) : Number.NaN
    return Number.isNaN(theirs) ? [] : [(before + after) / 2 - (theirs + 500)]
  }).pipe(Effect.catchAll(() => Effect.succeed<ReadonlyArray<number>>([])))

const skewsOf = (urls: ReadonlyArray<URL>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Agent()),
    (agent) => Effect.forEach(urls, (url) => skewOf(agent, url), { concurrency: "unbounded" }),
    (agent) => Effect.promise(() => agent.destroy())
  )

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
