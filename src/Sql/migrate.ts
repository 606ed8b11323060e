import { renameSync, rmSync } from "node:fs"
import { dirname } from "node:path"
import { Migrator, SqlClient } from "@effect/sql"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { Effect, Layer } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import start from "../migrations/0001_start.ts"
import { syncToDisk } from "./fileAccess.ts"
import { StoreUnusable } from "./StoreUnusable.ts"

/** Numbered, forward only. A migration that has shipped is never edited. */
const migrations = {
  "0001_start": start
}

const table = "migrations"

const numberOf = (name: string): number => Number.parseInt(name, 10)

/** The number of the newest schema that this version knows. */
export const newestSchema = Math.max(...Object.keys(migrations).map(numberOf))

/** In the table meta: the last version that opened the database to write. */
const writtenBy = "written_by"

/** Makes a consistent copy of the open database. It gets its final name only after it is checked and synced to disk. */
const copyTo = Effect.fn("Sql.copyTo")(function* (path: string) {
  const sql = yield* SqlClient.SqlClient
  const partial = `${path}.partial`
  rmSync(partial, { force: true })
  yield* sql.unsafe("VACUUM INTO ?", [partial])
  const rows = yield* Effect.flatMap(SqlClient.SqlClient, (copy) =>
    copy.unsafe<{ integrity_check: string }>("PRAGMA integrity_check")
  ).pipe(Effect.provide(Layer.orDie(SqliteClient.layer({ filename: partial, readonly: true, disableWAL: true }))))
  const verdict = rows.map((row) => row.integrity_check).join("; ")
  if (verdict !== "ok") {
    return yield* new StoreUnusable({
      message: `The copy to make before a migration does not check (${verdict}): nothing was changed. Restore a backup.`
    })
  }
  syncToDisk(partial)
  renameSync(partial, path)
  syncToDisk(dirname(path))
})

/** What to do about a database whose schema is newer; it names the version that wrote it, as far as that can be read. */
const refusal = Effect.fn("Sql.refusal")(function* (path: string, schema: number, known: number) {
  const sql = yield* SqlClient.SqlClient
  const [writer] = yield* sql
    .unsafe<{ value: string }>("SELECT value FROM meta WHERE key = ?", [writtenBy])
    .pipe(Effect.catchTag("SqlError", () => Effect.succeed([])))
  const version = writer === undefined ? "a newer tilld" : `tilld ${writer.value}`
  return new StoreUnusable({
    message: `${path} was written by ${version} and has its schema ${schema}; this is tilld ${packageJson.version}, which knows schema ${known}. Start ${version} again, or restore a backup from before it was installed.`
  })
})

/**
 * Migrates the database at `path`, open as the `SqlClient`, to the newest schema in one transaction. A database that
 * holds data is copied first, to `<path>.before-<number of the newest migration>`, and this version is noted as its writer.
 * Fails when the schema is newer than this version, or the copy fails its integrity check.
 */
export const migrate = Effect.fn("Sql.migrate")(function* (
  path: string,
  record: Record<string, Effect.Effect<void, unknown, SqlClient.SqlClient>> = migrations
) {
  const newest = Math.max(...Object.keys(record).map(numberOf))
  const sql = yield* SqlClient.SqlClient
  const [known] = yield* sql.unsafe("SELECT 1 FROM sqlite_schema WHERE name = ?", [table])
  const [row] =
    known === undefined ? [] : yield* sql.unsafe<{ id: number | null }>(`SELECT max(migration_id) AS id FROM ${table}`)
  const current = row?.id ?? 0
  if (current > newest) return yield* yield* refusal(path, current, newest)
  if (current > 0 && current < newest) {
    const copy = `${path}.before-${newest}`
    yield* copyTo(copy)
    yield* Effect.logInfo("copied the database before its migration").pipe(
      Effect.annotateLogs({ copy, from: current, to: newest })
    )
  }
  const note = sql.unsafe(
    `INSERT INTO meta (key, value) VALUES (?, ?)
     ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <> excluded.value`,
    [writtenBy, packageJson.version]
  )
  yield* sql.withTransaction(Effect.zipRight(Migrator.make({})({ loader: Migrator.fromRecord(record), table }), note))
})

/** `migrate` on a connection of its own. */
export const migrateFile = (path: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.zipRight(sql.unsafe("PRAGMA synchronous = FULL"), migrate(path))
  ).pipe(
    Effect.catchTags({ SqlError: (error) => Effect.die(error.cause ?? error), MigrationError: Effect.die }),
    Effect.provide(Layer.orDie(SqliteClient.layer({ filename: path })))
  )
