import { renameSync, rmSync } from "node:fs"
import { dirname } from "node:path"
import { Migrator, SqlClient } from "@effect/sql"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { Effect, Layer, Record } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { syncToDisk } from "./fileAccess.ts"
import { StoreUnusable } from "./StoreUnusable.ts"
import { type Migration, migrations, newerSchema, noteVersion, numberOf, selectVersion } from "./schema.ts"

const run = (statements: Migration) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
  )

const table = "migrations"

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

/**
 * Migrates the database at `path`, open as the `SqlClient`, to the newest schema in one transaction. A database that
 * holds data is copied first, to `<path>.before-<number of the newest migration>`, and this version is noted as its writer.
 * Fails when the schema is newer than this version, or the copy fails its integrity check.
 */
export const migrate = Effect.fn("Sql.migrate")(function* (
  path: string,
  record: Readonly<Record<string, Migration>> = migrations
) {
  const newest = Math.max(...Object.keys(record).map(numberOf))
  const sql = yield* SqlClient.SqlClient
  const [known] = yield* sql.unsafe("SELECT 1 FROM sqlite_schema WHERE name = ?", [table])
  const [row] =
    known === undefined ? [] : yield* sql.unsafe<{ id: number | null }>(`SELECT max(migration_id) AS id FROM ${table}`)
  const current = row?.id ?? 0
  if (current > newest) {
    const [writer] = yield* sql
      .unsafe<{ value: string }>(selectVersion)
      .pipe(Effect.catchTag("SqlError", () => Effect.succeed([])))
    return yield* newerSchema(path, writer?.value, current, newest)
  }
  if (current > 0 && current < newest) {
    const copy = `${path}.before-${newest}`
    yield* copyTo(copy)
    yield* Effect.logInfo("copied the database before its migration").pipe(
      Effect.annotateLogs({ copy, from: current, to: newest })
    )
  }
  const note = sql.unsafe(noteVersion, [packageJson.version])
  yield* sql.withTransaction(
    Effect.zipRight(Migrator.make({})({ loader: Migrator.fromRecord(Record.map(record, run)), table }), note)
  )
})

/** `migrate` on a connection of its own. */
export const migrateFile = (path: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.zipRight(sql.unsafe("PRAGMA synchronous = FULL"), migrate(path))
  ).pipe(
    Effect.catchTags({ SqlError: (error) => Effect.die(error.cause ?? error), MigrationError: Effect.die }),
    Effect.provide(Layer.orDie(SqliteClient.layer({ filename: path })))
  )
