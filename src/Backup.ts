/**
 * Makes a backup: a consistent copy of the database, which a daemon may write meanwhile, with its manifest in the same
 * file. A file gets its name only when it is whole, checked and synced. commands/backup.ts calls this; `restore.ts` is the
 * way back.
 */
import {
  createReadStream,
  createWriteStream,
  existsSync,
  fstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync
} from "node:fs"
import { dirname, join, resolve } from "node:path"
import { pipeline } from "node:stream/promises"
import Database from "better-sqlite3"
import { Clock, DateTime, Effect, Option, Schedule } from "effect"
import { inChildProcess } from "./Backup/childProcess.ts"
import { encrypted, encrypterFor } from "./Backup/encryption.ts"
import {
  BackupFailed,
  because,
  failed,
  onDisk,
  PathRefused,
  partialOf,
  publish,
  removePartials,
  targetFile,
  writableFolder
} from "./Backup/files.ts"
import { recordBackup } from "./Backup/lastBackup.ts"
import { iso } from "./lib/moment.ts"
import { cut } from "./lib/text.ts"
import { isRunning } from "./Sql/InstanceLock.ts"
import { mustNotOpen } from "./Sql/logOwner.ts"

/** In the name, the same in all backups of a database: others in the folder have another one. */
const mark = (installation: string): string => `tilld-${installation.slice(0, 8)}-`

/** The name of a backup made at `at`, Unix milliseconds. */
export const backupName = (installation: string, at: number, isEncrypted: boolean): string =>
  `${mark(installation)}${iso(at).replace(/[-:]|\.\d+/g, "")}.db${isEncrypted ? ".age" : ""}`

const timeForm = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db(\.age)?$/

interface Kept {
  readonly name: string
  /** Unix milliseconds. */
  readonly at: number
}

const keptOf = (name: string, installation: string): ReadonlyArray<Kept> => {
  if (!name.startsWith(mark(installation))) return []
  const time = timeForm.exec(name.slice(mark(installation).length))
  if (time === null) return []
  const [, year, month, day, hour, minute, second] = time
  return Option.match(DateTime.make(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`), {
    onNone: () => [],
    onSome: (at) => [{ name, at: DateTime.toEpochMillis(at) }]
  })
}

/** The database's backups in the folder, newest first, by the time in their names. */
export const keptIn = (folder: string, installation: string) =>
  onDisk(`The backups in ${folder} cannot be listed`, () =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .flatMap(({ name }) => keptOf(name, installation))
      .sort((a, b) => b.at - a.at || (a.name < b.name ? 1 : -1))
  )

/**
 * Removes all backups of the database but `made`, which is whole, and the newest others, `keep` in total. Gives the
 * names of those removed, and those dated after `now`, Unix milliseconds: made while the clock was ahead, they would
 * keep their places until then. They are not counted, and stay.
 */
export const removeOld = (folder: string, installation: string, keep: number, made: string, now: number) =>
  Effect.gen(function* () {
    const others = (yield* keptIn(folder, installation)).filter(({ name }) => name !== made)
    const namesOf = (kept: typeof others) => kept.map(({ name }) => name)
    const old = namesOf(others.filter(({ at }) => at <= now).slice(keep - 1))
    yield* onDisk(`Old backups in ${folder} cannot be removed`, () => {
      for (const name of old) rmSync(join(folder, name), { force: true })
    })
    yield* removePartials(folder, (whole, pid) => keptOf(whole, installation).length > 0 && !isRunning(pid))
    return { removed: old, ahead: namesOf(others.filter(({ at }) => at > now)) }
  })

/** What is asked for, apart from the place. */
export interface BackupOptions {
  /** The path of the database. */
  readonly database: string
  /** The version of tilld. */
  readonly version: string
  /** age recipients; none: not encrypted. */
  readonly recipients: ReadonlyArray<string>
  /** Why the daemon that runs takes the database's files for lost; undefined where they are its own, or none runs. */
  readonly daemonRefuses: Effect.Effect<string | undefined>
  /** Called every few seconds, with a line for people. */
  readonly onProgress: (text: string) => Effect.Effect<void>
}

const size = (path: string): number => (existsSync(path) ? statSync(path).size : 0)
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Refuses to fill the disk that the database needs: a copy beside it must leave as much free as it takes. */
const refuseToFill = (database: string) =>
  Effect.gen(function* () {
    const wanted = 2 * (size(database) + size(`${database}-wal`))
    const { bavail, bsize } = yield* onDisk("The free space is not known", () => statfsSync(dirname(database)))
    if (bavail * bsize < wanted) {
      return yield* new BackupFailed({
        message:
          `${megabytes(bavail * bsize)} are free beside the database, and a backup that is made there, or is then sent or ` +
          `encrypted, needs ${megabytes(wanted)}: free some space, or make a plain backup on another disk`
      })
    }
  })

const progressInterval = "5 seconds"

/** Copies the database into a new file with its manifest, checked and synced. */
const copyTo = Effect.fn("Backup.copy")(function* (target: string, madeAt: string, options: BackupOptions) {
  const { database: source, onProgress, version } = options
  const progress = Effect.suspend(() =>
    onProgress(`copied ${megabytes(size(target))} of about ${megabytes(size(source))}`)
  )
  const answer = yield* inChildProcess({ does: "copy", source, target, version, madeAt }).pipe(
    Effect.raceFirst(Effect.zipRight(Effect.schedule(progress, Schedule.spaced(progressInterval)), Effect.never))
  )
  if ("manifest" in answer) return answer.manifest
  if ("damage" in answer) {
    return yield* new BackupFailed({
      message: `The copy is damaged, and so is the database (${cut(answer.damage.join("; "), 300)}): keep older backups, and look at tilld doctor`
    })
  }
  const { code, message } = "error" in answer ? answer.error : { code: "", message: "no answer" }
  return yield* failed(`The database ${source} could not be copied`, code, message)
})

const place = { stdout: "-" } as const

/** Sends a whole file to standard output or into a new one, encrypted where there are recipients. */
const send = Effect.fn("Backup.send")(function* (file: string, to: string, recipients: ReadonlyArray<string>) {
  const encrypter = yield* encrypterFor(recipients)
  const plain = createReadStream(file)
  const source = recipients.length === 0 ? plain : yield* encrypted(encrypter, plain)
  const isStdout = to === place.stdout
  yield* Effect.tryPromise({
    try: (signal) =>
      isStdout
        ? // Into a file process.stdout takes a part of a write for all of it.
          fstatSync(1).isFile()
          ? pipeline(source, createWriteStream("", { fd: 1, autoClose: false, flush: true }), { signal })
          : pipeline(source, process.stdout, { signal, end: false })
        : pipeline(source, createWriteStream(to, { flags: "wx", mode: 0o600, flush: true }), { signal }),
    catch: because(isStdout ? "The backup could not be written to standard output" : `${to} could not be written`)
  })
})

/**
 * Makes one backup: a new file at `to`, which `force` may replace, or on standard output for `-`. Fails with `PathRefused`,
 * `AgeUnusable` or `BackupFailed`; then there is no file, and one that was to be replaced is unchanged.
 */
export const backUp = Effect.fn("Backup.backUp")(function* (to: string, force: boolean, options: BackupOptions) {
  const { database, recipients } = options
  yield* refuseLostFiles(options)
  if (!existsSync(database)) return yield* new PathRefused({ message: `There is no database ${database} to back up` })
  yield* encrypterFor(recipients)
  const file = to === place.stdout ? to : yield* targetFile(to, database, force)
  const madeAt = yield* Clock.currentTimeMillis
  // A copy that is not encrypted yet must not reach the disk of the backups.
  const isSent = file === place.stdout || recipients.length > 0
  // Without room for it the daemon could write no more.
  if (isSent || statSync(dirname(file)).dev === statSync(database).dev) yield* refuseToFill(database)
  const copy = yield* partialOf(isSent ? `${database}.backup` : file)
  const manifest = yield* copyTo(copy, iso(madeAt), options)
  if (file === place.stdout) yield* send(copy, file, recipients)
  else if (isSent) {
    const sealed = yield* partialOf(file)
    yield* send(copy, sealed, recipients)
    yield* publish(sealed, file, force)
  } else yield* publish(copy, file, force)
  const last = { madeAt: DateTime.unsafeMake(madeAt), file, sha256: manifest.sha256 }
  const noted = yield* Effect.either(recordBackup(database, last))
  return { file, isEncrypted: recipients.length > 0, manifest, note: noted }
}, Effect.scoped)

/**
 * Refuses files that are not those the running daemon has open. SQLite would make another write-ahead log beside them, and
 * the copy would lack what the daemon has written. Also a database with the log of another one.
 */
const refuseLostFiles = ({ daemonRefuses, database }: BackupOptions) =>
  Effect.gen(function* () {
    const reason = yield* daemonRefuses
    const message =
      reason === undefined
        ? yield* onDisk(`The files beside ${database} cannot be read`, () => mustNotOpen(database))
        : `tilld serve says: ${reason}`
    if (message !== undefined) return yield* new BackupFailed({ message })
  })

const installationOf = ({ database }: BackupOptions) =>
  onDisk(`The database ${database} cannot be read`, () => {
    const connection = new Database(database, { readonly: true, fileMustExist: true, timeout: 5_000 })
    try {
      return (
        connection.prepare<[], { installation: string }>("SELECT installation FROM numbering").get()?.installation ?? ""
      )
    } finally {
      connection.close()
    }
  })

/**
 * Makes one more backup in a folder, and then removes the database's oldest, so that `keep` are left, and those that are of
 * a time to come (`ahead`).
 */
export const backUpInto = Effect.fn("Backup.backUpInto")(function* (
  folder: string,
  keep: number,
  options: BackupOptions
) {
  yield* refuseLostFiles(options)
  const installation = yield* installationOf(options)
  const now = yield* Clock.currentTimeMillis
  const name = backupName(installation, now, options.recipients.length > 0)
  const made = yield* backUp(join(folder, name), false, options)
  return { ...made, ...(yield* removeOld(folder, installation, keep, name, now)) }
})

/**
 * Makes one in the folder whenever the newest one is older than `every` milliseconds, without end: a start makes none
 * before. What is wrong from the start fails with `PathRefused` or `AgeUnusable`. Later, as at a disk that is away, a backup
 * that fails is reported to `onFailure`, and tried again after `every`.
 */
export const backUpEvery = (
  every: number,
  folder: string,
  keep: number,
  options: BackupOptions,
  onMade: (made: Effect.Effect.Success<ReturnType<typeof backUpInto>>) => Effect.Effect<void>,
  onFailure: (message: string) => Effect.Effect<void>
) => {
  const turn = Effect.gen(function* () {
    yield* refuseLostFiles(options)
    const now = yield* Clock.currentTimeMillis
    const installation = yield* installationOf(options)
    const newest = (yield* keptIn(folder, installation)).find(({ at }) => at <= now)
    if (newest !== undefined) yield* Effect.sleep(Math.max(0, newest.at + every - now))
    yield* onMade(yield* backUpInto(folder, keep, options))
  })
  const tell = ({ message }: { readonly message: string }) =>
    Effect.zipRight(onFailure(`No backup was made. ${message}`), Effect.sleep(every))
  return Effect.zipRight(
    Effect.all([writableFolder(folder), encrypterFor(options.recipients)], { concurrency: 1, discard: true }),
    Effect.forever(Effect.catchTags(turn, { BackupFailed: tell, PathRefused: tell }))
  )
}

/** The folder of backups where none is given, beside the database. It is made. */
export const usualFolder = (database: string) => {
  const folder = join(dirname(resolve(database)), "backups")
  return onDisk(`${folder} cannot be made`, () => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return folder
  })
}
