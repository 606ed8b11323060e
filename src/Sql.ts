import { closeSync, fdatasync, mkdirSync, openSync } from "node:fs"
import { dirname } from "node:path"
import Database from "better-sqlite3"
import { Context, Effect, Layer } from "effect"
import { checkpoints } from "./Sql/checkpoints.ts"
import { fromDatabase, Reader } from "./Sql/Db.ts"
import { migrateFile } from "./Sql/migrate.ts"
import { orUnusable } from "./Sql/unusable.ts"
import { makeWriter, Writer } from "./Sql/Writer.ts"

export { type CommitWith, type Db, type Param, Reader, StoreUnavailable, Tx } from "./Sql/Db.ts"
export { StoreUnusable } from "./Sql/unusable.ts"
export { alsoCommit, Writer } from "./Sql/Writer.ts"

// Each on every open, and read back: better-sqlite3's build falls back to synchronous=NORMAL on a file it did not just
// make, and that loses acknowledged rows at a power cut.
const pragmas: ReadonlyArray<readonly [pragma: string, value: string, readBack: number | string]> = [
  ["journal_mode", "WAL", "wal"],
  ["synchronous", "FULL", 2],
  ["foreign_keys", "ON", 1],
  ["busy_timeout", "5000", 5000],
  ["temp_store", "MEMORY", 2],
  // The log is moved into the file by a thread (see checkpoints), long before so many pages: a commit that moved it would
  // make everybody wait.
  ["wal_autocheckpoint", "32000", 32_000]
]

/** A connection until the scope closes. */
const open = (path: string, options: Database.Options = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const database = new Database(path, options)
      for (const [pragma, value] of pragmas) database.pragma(`${pragma} = ${value}`)
      return database
    }),
    (database) => Effect.sync(() => database.close())
  )

/**
 * A descriptor of the database file, closed after every connection: to close one ends all locks that the process has on a
 * file. SQLite gives its other files the mode of this one, and would make it readable by everybody.
 */
const openFile = (path: string) =>
  Effect.acquireRelease(
    Effect.sync(() => openSync(path, "a", 0o640)),
    (descriptor) => Effect.sync(() => closeSync(descriptor))
  )

/** Waits for the disk, beside everything else. Its errors are SQLite's to meet: it syncs what counts itself. */
const sync = (descriptor: number) => Effect.async<void>((resume) => fdatasync(descriptor, () => resume(Effect.void)))

const checkPragmas = (database: Database.Database) => {
  // Read back only now: SQLite may take a pragma and drop it at the first write.
  database.exec("BEGIN IMMEDIATE; COMMIT")
  for (const [pragma, , expected] of pragmas) {
    const found = database.pragma(pragma, { simple: true })
    if (found !== expected) throw new Error(`PRAGMA ${pragma} reads ${found} where ${expected} was set`)
  }
}

/**
 * The database file at `path`, made when it is not there: its writer and a reader. The caller holds the instance lock.
 * SQL trouble while opening is a defect; a file that tilld cannot use before somebody has seen to it is `StoreUnusable`.
 */
export const layer = (path: string) =>
  Layer.scopedContext(
    Effect.gen(function* () {
      mkdirSync(dirname(path), { recursive: true, mode: 0o750 })
      const descriptor = yield* openFile(path)
      yield* migrateFile(path)
      const writing = yield* open(path)
      checkPragmas(writing)
      const reading = yield* open(path, { readonly: true })
      const writer = yield* makeWriter(fromDatabase(writing), yield* checkpoints(path, sync(descriptor)))
      return Context.make(Reader, fromDatabase(reading)).pipe(Context.add(Writer, writer))
    }).pipe(orUnusable(path))
  )
