/**
 * The database that a restore replaces: its data that the backup lacks, and its replacement. At any moment, the file of
 * the database's name is complete: either the former database with everything that was committed, or the new one.
 */
import { constants, copyFileSync, existsSync, linkSync, renameSync, rmSync } from "node:fs"
import { dirname } from "node:path"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { iso } from "../lib/moment.ts"
import { syncToDisk } from "../Sql/fileAccess.ts"
import { type DatabaseFacts, factsOf, isEmpty } from "./facts.ts"
import { BackupFailed, onDisk } from "./files.ts"

/** The database in place before a restore. */
export type InPlace =
  | { readonly is: "missing" }
  | { readonly is: "empty" }
  | { readonly is: "unreadable"; readonly why: string }
  | { readonly is: "database"; readonly facts: DatabaseFacts }

const why = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Inspects the database at this path, of which the caller has the instance lock. It changes nothing. */
export const lookInPlace = (path: string): Effect.Effect<InPlace> =>
  Effect.sync((): InPlace => {
    if (!existsSync(path)) return { is: "missing" }
    try {
      const database = new Database(path, { readonly: true, timeout: 5_000 })
      try {
        return isEmpty(database) ? { is: "empty" } : { is: "database", facts: factsOf(database) }
      } finally {
        database.close()
      }
    } catch (cause) {
      return { is: "unreadable", why: why(cause) }
    }
  })

/** Why the database in place must not be replaced by the backup without `--force`; empty where nothing is lost. */
export const objectionsOf = (inPlace: InPlace, backup: DatabaseFacts, path: string): ReadonlyArray<string> => {
  if (inPlace.is === "unreadable") {
    return [`${path} cannot be read (${inPlace.why}), so that it may be newer than the backup`]
  }
  if (inPlace.is !== "database") return []
  const { installation, newest, wallets } = inPlace.facts
  if (installation !== backup.installation) return [`${path} is the database of another installation`]
  const nexts = new Map(backup.wallets.map(({ next, wallet }) => [wallet, next]))
  const further = wallets.filter(({ next, wallet }) => next > (nexts.get(wallet) ?? 0))
  const taken = further.map(
    ({ next, wallet }) =>
      `${path} has handed out addresses of wallet ${wallet} up to ${next - 1}, the backup up to ${(nexts.get(wallet) ?? 0) - 1}`
  )
  const isNewer = newest !== null && newest > (backup.newest ?? 0)
  return isNewer
    ? [...taken, `${path} has changes up to ${iso(newest)}, the backup up to ${iso(backup.newest ?? 0)}`]
    : taken
}

/** Files that SQLite keeps beside a database. Those of another database would be taken for the restored one's. */
const suffixes = ["-wal", "-shm", "-journal"]

/** Brings everything that was committed into the file itself. Throws where another process still has it open. */
const fold = (path: string) => {
  const database = new Database(path, { fileMustExist: true, timeout: 5_000 })
  try {
    database.pragma("synchronous = FULL")
    const [{ busy } = { busy: 0 }] = database.pragma("wal_checkpoint(TRUNCATE)") as ReadonlyArray<{ busy: number }>
    if (busy !== 0) throw new Error("another process reads it: end that, such as a running tilld backup or sqlite3")
  } finally {
    database.close()
  }
}

/** Gives a file a second name, never an existing one; a copy where the file system has no hard links, as FAT. */
const keepAs = (path: string, kept: string) => {
  try {
    linkSync(path, kept)
  } catch {
    copyFileSync(path, kept, constants.COPYFILE_EXCL)
    syncToDisk(kept)
  }
}

/**
 * Puts the whole, synced database `ready` in the place of the one at `path`, which is kept as `kept`. A damaged one keeps its
 * write-ahead log under the kept name.
 */
export const replaceDatabase = (inPlace: InPlace, ready: string, path: string, kept: string) =>
  Effect.gen(function* () {
    const isReadable = inPlace.is === "database" || inPlace.is === "empty"
    if (isReadable) {
      yield* Effect.try({
        try: () => fold(path),
        catch: (cause) =>
          new BackupFailed({ message: `${path} cannot be moved aside (${why(cause)}). Nothing was changed` })
      })
    }
    yield* onDisk(`${path} could not be replaced`, () => {
      if (inPlace.is !== "missing") keepAs(path, kept)
      for (const suffix of suffixes) {
        if (!isReadable && suffix !== "-shm" && existsSync(path + suffix)) renameSync(path + suffix, kept + suffix)
        else rmSync(path + suffix, { force: true })
      }
      syncToDisk(dirname(path))
      renameSync(ready, path)
      syncToDisk(dirname(path))
    })
  })
