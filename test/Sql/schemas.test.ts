import { SqliteClient } from "@effect/sql-sqlite-node"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import start from "../../src/migrations/0001_start.ts"
import { migrate, migrateFile } from "../../src/Sql/migrate.ts"
import * as Sql from "../../src/Sql.ts"
import { dump, keptSchemas, restoreDump, rowsOf, schemaOf } from "../lib/schemas.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { execute, storeAccount, temporaryDatabase } from "../lib/store.ts"

type Migrate = (path: string) => Effect.Effect<void, unknown>

/** Migrates a database of that SQL, and holds it against a new one and against what it was. */
const expectToUpgrade = (sql: string, migrated: Migrate) =>
  Effect.gen(function* () {
    const [path, fresh] = [yield* temporaryDatabase, yield* temporaryDatabase]
    restoreDump(path, sql)
    const before = rowsOf(path)
    yield* migrated(path)
    yield* migrated(fresh)
    expect(schemaOf(path)).toEqual(schemaOf(fresh))
    const after = rowsOf(path)
    for (const [table, kept] of Object.entries(before)) {
      if (table === "migrations") continue
      const of = kept.filter(({ key }) => table !== "meta" || key !== "written_by")
      expect(after[table], table).toEqual(expect.arrayContaining(of.map((row) => expect.objectContaining(row))))
    }
  }).pipe(Effect.scoped)

const usedDatabase = Effect.gen(function* () {
  const path = yield* temporaryDatabase
  const used = Effect.zipRight(
    storeAccount,
    execute("INSERT INTO audit VALUES (1, 2, 'direct', 'it''s me', NULL, NULL, 'an act', 'two\nlines')")
  )
  yield* Effect.provide(used, Sql.layer(path))
  return path
})

const next = ["ALTER TABLE accounts ADD COLUMN colour TEXT", "CREATE TABLE colours (name TEXT PRIMARY KEY) STRICT"]

const withNext: Migrate = (path) =>
  migrate(path, { "0001_start": start, "0002_next": next }).pipe(Effect.provide(SqliteClient.layer({ filename: path })))

const losing: Migrate = (path) =>
  migrate(path, {
    "0001_start": start,
    "0002_next": ["DELETE FROM accounts"]
  }).pipe(Effect.provide(SqliteClient.layer({ filename: path })))

liveTest("the kept SQL of a database makes the same one", function* () {
  const [used, again] = [yield* usedDatabase, yield* temporaryDatabase]
  restoreDump(again, dump(used))
  expect(schemaOf(again)).toEqual(schemaOf(used))
  expect(rowsOf(again)).toEqual(rowsOf(used))
  expect(rowsOf(again).audit).toHaveLength(1)
})

liveTest("a kept schema is migrated with its rows, and a migration that loses some is noticed", function* () {
  const sql = dump(yield* usedDatabase)
  yield* expectToUpgrade(sql, withNext)
  const noticed = yield* Effect.exit(expectToUpgrade(sql, losing))
  expect(noticed._tag).toBe("Failure")
})

it.live("the schema of every release is migrated to the present one with its rows", () =>
  Effect.forEach(keptSchemas(), ([, sql]) => expectToUpgrade(sql, migrateFile), { concurrency: 1, discard: true })
)
