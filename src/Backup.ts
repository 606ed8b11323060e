/**
 * Makes a backup: a consistent, sealed copy of the database, which a daemon may write meanwhile. A file gets its name only
 * when it is whole, checked and synced. commands/backup.ts calls this; `restore.ts` is the way back.
 */
import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  fstatSync,
  openSync,
  statfsSync,
  statSync
} from "node:fs"
import { dirname, resolve } from "node:path"
import { pipeline } from "node:stream/promises"
import { Clock, DateTime, Effect } from "effect"
import { inChildProcess } from "./Backup/childProcess.ts"
import { encrypted, encrypterFor, isEncrypted } from "./Backup/encryption.ts"
import { BackupFailed, because, checkOutput, onDisk, onGiven, PathRefused, partialOf, publish } from "./Backup/files.ts"
import { recordBackup } from "./Backup/lastBackup.ts"
import { readSeal } from "./Backup/seal.ts"
import { iso } from "./lib/moment.ts"
import { cut } from "./lib/text.ts"
import { filesOf } from "./Sql/fileAccess.ts"
import { mustNotOpen } from "./Sql/logOwner.ts"

/** What is asked for, apart from the place. */
export interface BackupOptions {
  /** The path of the database. */
  readonly database: string
  /** age recipients; none: not encrypted. */
  readonly recipients: ReadonlyArray<string>
  /** Why the daemon that runs takes the database's files for lost; undefined where they are its own, or none runs. */
  readonly daemonRefuses: Effect.Effect<string | undefined>
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

/** Copies the database into a new file, checked, sealed and synced. */
const copyTo = Effect.fn("Backup.copy")(function* (source: string, target: string, madeAt: string) {
  const copy = yield* inChildProcess(
    { does: "copy", source, target, madeAt },
    `The database ${source} could not be copied`
  )
  if (!("damage" in copy)) return copy
  return yield* new BackupFailed({
    message: `The copy is damaged, and so is the database (${cut(copy.damage.join("; "), 300)}): keep older backups, and look at tilld doctor`
  })
})

const isBackup = (path: string): boolean => {
  if (isEncrypted(path)) return true
  const file = openSync(path, "r")
  try {
    return readSeal(file) !== undefined
  } finally {
    closeSync(file)
  }
}

/** Refuses all but a new file, and with `force` another backup. */
const checkTarget = Effect.fnUntraced(function* (given: string, database: string, force: boolean) {
  yield* checkOutput(given, force)
  if (filesOf(resolve(database)).includes(resolve(given))) {
    return yield* new PathRefused({ message: `${given} belongs to the database itself: give another name` })
  }
  if (existsSync(given) && !(yield* onGiven(`${given} cannot be read`, () => isBackup(given)))) {
    return yield* new PathRefused({
      message: `${given} is not a backup, and --force replaces nothing else: give another name, or remove it yourself`
    })
  }
})

const standardOutput = "-"

/** Sends a whole file to standard output or into a new one, encrypted where there are recipients. */
const send = Effect.fn("Backup.send")(function* (file: string, to: string, recipients: ReadonlyArray<string>) {
  const encrypter = yield* encrypterFor(recipients)
  const plain = createReadStream(file)
  const source = recipients.length === 0 ? plain : yield* encrypted(encrypter, plain)
  const isStdout = to === standardOutput
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
  const isStdout = to === standardOutput
  if (!isStdout) yield* checkTarget(to, database, force)
  const file = isStdout ? to : resolve(to)
  const madeAt = yield* Clock.currentTimeMillis
  // A copy that is not encrypted yet must not reach the disk of the backups.
  const isSent = isStdout || recipients.length > 0
  // Without room for it the daemon could write no more.
  if (isSent || statSync(dirname(file)).dev === statSync(database).dev) yield* refuseToFill(database)
  const copy = yield* partialOf(isSent ? `${database}.backup` : file)
  const { bytes, facts, seal } = yield* copyTo(database, copy, iso(madeAt))
  if (isStdout) yield* send(copy, file, recipients)
  else {
    const whole = isSent ? yield* partialOf(file) : copy
    if (isSent) yield* send(copy, whole, recipients)
    yield* publish(whole, file, force)
  }
  const note = yield* Effect.either(recordBackup(database, { madeAt: DateTime.unsafeMake(madeAt), file }))
  return { file, encrypted: recipients.length > 0, ...seal, bytes, payments: facts.payments, note }
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
