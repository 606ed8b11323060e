/**
 * The store: one SQLite file with one writing and one reading connection. Services write through `Writer`, whose commands
 * commit together, and read through `Reader`; SQL itself is in the repositories (`*Repo.ts`). Opening the store applies
 * and verifies the pragmas and runs the migrations. The caller holds the instance lock.
 */
import { closeSync, fdatasync } from "node:fs"
import Database from "better-sqlite3"
import { Context, Effect, Layer } from "effect"
import { checkpoints, longestLog } from "./Sql/checkpoints.ts"
import { fromDatabase, Reader } from "./Sql/Db.ts"
import { openOwn } from "./Sql/fileAccess.ts"
import { forgetLog, noteLog } from "./Sql/logOwner.ts"
import { FilesHealth, StoreHealth } from "./Sql/StoreHealth.ts"
import { orUnusable } from "./Sql/StoreUnusable.ts"
import { isNewest } from "./Sql/schema.ts"
import { makeWriter, transactionsOn, Writer } from "./Sql/Writer.ts"
import { Workers } from "./Telemetry/Workers.ts"

export * from "./Sql/Db.ts"
export { StoreHealth } from "./Sql/StoreHealth.ts"
export { StoreUnusable } from "./Sql/StoreUnusable.ts"
export { alsoCommit, Writer } from "./Sql/Writer.ts"

// Set on every open, and read back: better-sqlite3's build falls back to synchronous=NORMAL on a file that it has not
// just created, and that loses acknowledged rows on a power failure.
const pragmas: ReadonlyArray<readonly [pragma: string, value: string, readBack: number | string]> = [
  ["journal_mode", "WAL", "wal"],
  ["synchronous", "FULL", 2],
  ["foreign_keys", "ON", 1],
  ["busy_timeout", "5000", 5000],
  ["temp_store", "MEMORY", 2],
  // Only a fallback: a thread checkpoints the log (see checkpoints.ts) long before it has this many pages. A checkpoint
  // within a commit would delay all requests.
  ["wal_autocheckpoint", "32000", 32_000],
  ["journal_size_limit", `${longestLog}`, longestLog]
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
 * The database file with mode 0640 if it is new: SQLite would create it readable by everybody, and gives its other files
 * the same mode, and the same owner where root runs it. The descriptor must be closed after all connections, since
 * closing any descriptor of a file releases all locks that the process has on it.
 */
const openFile = (path: string) =>
  Effect.acquireRelease(
    Effect.sync(() => openOwn(path)),
    (descriptor) => Effect.sync(() => closeSync(descriptor))
  )

/**
 * Syncs in the background. Errors are ignored: SQLite syncs again where durability depends on it, and reports its own.
 */
const sync = (descriptor: number) => Effect.async<void>((resume) => fdatasync(descriptor, () => resume(Effect.void)))

const checkPragmas = (database: Database.Database) => {
  // Read back after a first transaction: SQLite may accept a pragma and drop it at the first write.
  database.exec("BEGIN IMMEDIATE; COMMIT")
  for (const [pragma, , expected] of pragmas) {
    const found = database.pragma(pragma, { simple: true })
    if (found !== expected) throw new Error(`PRAGMA ${pragma} reads ${found} where ${expected} was set`)
  }
}

/**
 * The writer and the reader of the database file at `path`, which is created if it does not exist. Fails with
 * `StoreUnusable` when only an operator can make the file usable; other SQL errors while opening are defects.
 */
export const layer = (path: string) =>
  Layer.scopedContext(
    Effect.gen(function* () {
      yield* Effect.addFinalizer(() => Effect.sync(() => forgetLog(path)))
      const descriptor = yield* openFile(path)
      if (!isNewest(path)) {
        const { migrateFile } = yield* Effect.promise(() => import("./Sql/migrate.ts"))
        yield* migrateFile(path)
      }
      const writing = yield* open(path)
      checkPragmas(writing)
      const reading = yield* open(path, { readonly: true })
      noteLog(path)
      // Both files stay the same until the last connection closes.
      const health = new FilesHealth([path, `${path}-wal`])
      const connect = (database: Database.Database) => fromDatabase(database, (cause) => health.damaged(cause))
      const writer = connect(writing)
      const afterGroup = yield* checkpoints(path, sync(descriptor), () => health.isFull())
      const writes = yield* makeWriter(transactionsOn(writer), afterGroup(writer), health)
      ;(yield* Workers).condition("store", () => health.reason())
      return Context.make(Reader, connect(reading)).pipe(Context.add(Writer, writes), Context.add(StoreHealth, health))
    }).pipe(orUnusable(path))
  )
