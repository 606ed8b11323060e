import { closeSync, mkdirSync, openSync } from "node:fs"
import { dirname } from "node:path"
import { Reactivity } from "@effect/experimental"
import { SqlClient } from "@effect/sql"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { Context, Effect, Layer } from "effect"
import { fromConnection, Reader } from "./Sql/Db.ts"
import { migrate } from "./Sql/migrate.ts"
import { makeWriter, Writer } from "./Sql/Writer.ts"

export { type Db, type Param, Reader, StoreUnavailable, Tx } from "./Sql/Db.ts"
export { StoreUnusable } from "./Sql/migrate.ts"
export { Writer } from "./Sql/Writer.ts"

// Each on every open, and read back: better-sqlite3's build falls back to synchronous=NORMAL on a file it did not just
// make, and that loses acknowledged rows at a power cut.
const pragmas: ReadonlyArray<readonly [pragma: string, value: string, readBack: number]> = [
  ["synchronous", "FULL", 2],
  ["foreign_keys", "ON", 1],
  ["busy_timeout", "5000", 5000],
  ["temp_store", "MEMORY", 2]
]

const setPragmas = Effect.fn("Sql.setPragmas")(function* (sql: SqlClient.SqlClient) {
  for (const [pragma, value] of pragmas) yield* sql.unsafe(`PRAGMA ${pragma} = ${value}`)
})

const checkPragmas = Effect.fn("Sql.checkPragmas")(function* (sql: SqlClient.SqlClient) {
  for (const [pragma, , expected] of pragmas) {
    const [row] = yield* sql.unsafe<Record<string, unknown>>(`PRAGMA ${pragma}`)
    const found = Object.values(row ?? {})[0]
    if (found !== expected) return yield* Effect.dieMessage(`PRAGMA ${pragma} reads ${found} where ${expected} was set`)
  }
})

const open = Effect.fn("Sql.open")(function* (options: { readonly filename: string; readonly readonly?: boolean }) {
  const sql = yield* SqliteClient.make({ ...options, disableWAL: options.readonly === true })
  yield* setPragmas(sql)
  return sql
})

/**
 * The database file at `path`, made when it is not there: its writer and a reader. The caller holds the instance lock.
 * SQL trouble while opening is a defect; a file that this version cannot use is `StoreUnusable`.
 */
export const layer = (path: string) =>
  Layer.scopedContext(
    Effect.gen(function* () {
      mkdirSync(dirname(path), { recursive: true, mode: 0o750 })
      // SQLite gives its other files the mode of this one, and would make it readable by everybody.
      closeSync(openSync(path, "a", 0o640))
      const writing = yield* open({ filename: path })
      yield* Effect.provideService(migrate(path), SqlClient.SqlClient, writing)
      // Read back only now: SQLite may take a pragma and drop it at the first write.
      yield* checkPragmas(writing)
      const reading = yield* open({ filename: path, readonly: true })
      const writer = yield* makeWriter(fromConnection(yield* writing.reserve))
      const reader = fromConnection(yield* reading.reserve)
      return Context.make(Reader, reader).pipe(Context.add(Writer, writer))
    }).pipe(Effect.catchTags({ SqlError: (error) => Effect.die(error.cause ?? error), MigrationError: Effect.die }))
  ).pipe(Layer.provide(Reactivity.layer))
