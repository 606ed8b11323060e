import { chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { SqliteClient } from "@effect/sql-sqlite-node"
import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Cause, Effect, Exit } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { acquire } from "../../src/Sql/InstanceLock.ts"
import { migrate } from "../../src/Sql/migrate.ts"
import { nativeProblem } from "../../src/Sql/nativeParts.ts"
import { unusableFiles } from "../../src/Sql/StoreUnusable.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader, StoreUnusable, Tx } from "../../src/Sql.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, temporaryDatabase } from "../lib/store.ts"

const { version } = packageJson

/** A database file that has lost all but its first page. */
const damage = (path: string) => {
  const database = new Database(path)
  for (let i = 0; i < 40; i++)
    database.exec(`CREATE TABLE t${i} (a TEXT, b TEXT, c TEXT, d TEXT); CREATE INDEX i${i} ON t${i} (a)`)
  database.close()
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill(0x5a, 4096))
}

const synchronous = inTransaction(Effect.flatMap(Tx, (tx) => tx.get<{ synchronous: number }>("PRAGMA synchronous")))

liveTest("every opening, also the second, sets synchronous=FULL", function* () {
  const path = yield* temporaryDatabase
  expect(yield* Effect.provide(synchronous, Sql.layer(path))).toEqual({ synchronous: 2 })
  expect(yield* Effect.provide(synchronous, Sql.layer(path))).toEqual({ synchronous: 2 })
})

it.live.skipIf(process.getuid?.() !== 0)("what root makes belongs to the owner of the folder", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const folder = dirname(path)
    chownSync(folder, 12345, 23456)
    const owners = Effect.sync(() =>
      readdirSync(folder).map((name) => [name, statSync(join(folder, name)).uid, statSync(join(folder, name)).gid])
    )
    yield* acquire(path, "serve")
    expect(yield* Effect.provide(Effect.zipRight(synchronous, owners), Sql.layer(path))).toEqual(
      ["", "-shm", "-wal", ".lock", ".pid", ".wal-of"].map((suffix) => [`${basename(path)}${suffix}`, 12345, 23456])
    )
  }).pipe(Effect.scoped)
)

liveTest("the reader cannot write", function* () {
  const path = yield* temporaryDatabase
  const exit = yield* Effect.flatMap(Reader, (reader) => reader.run("DELETE FROM meta")).pipe(
    Effect.provide(Sql.layer(path)),
    Effect.exit
  )
  expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toMatch(/SQLITE_READONLY/)
})

liveTest("foreign keys are enforced and tables are strict", function* () {
  const path = yield* temporaryDatabase
  const attempt = (sql: string) =>
    execute(sql).pipe(
      Effect.provide(Sql.layer(path)),
      Effect.exit,
      Effect.map((exit) => (Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "accepted"))
    )
  expect(yield* attempt("INSERT INTO account_wallets VALUES ('nobody', 'test', 'f', x'00')")).toMatch(/FOREIGN KEY/)
  expect(yield* attempt("INSERT INTO accounts (id, name, created_at) VALUES ('a', 'A', 'yesterday')")).toMatch(
    /cannot store TEXT/
  )
})

liveTest("a database of a newer tilld is refused by the name of the version that wrote it", function* () {
  const path = yield* temporaryDatabase
  yield* Effect.provide(Effect.void, Sql.layer(path))
  const raw = new Database(path)
  expect(raw.prepare("SELECT value FROM meta WHERE key = 'written_by'").get()).toEqual({ value: version })
  raw.exec("INSERT INTO migrations (migration_id, name) VALUES (9999, 'future')")
  raw.exec("UPDATE meta SET value = '9.8.7' WHERE key = 'written_by'")
  const refused = Effect.flip(Effect.provide(Effect.void, Sql.layer(path)))
  expect((yield* refused).message).toBe(
    `${path} was written by tilld 9.8.7 and has its schema 9999; this is tilld ${version}, which knows schema 1. Start tilld 9.8.7 again, or restore a backup from before it was installed.`
  )
  raw.exec("DROP TABLE meta")
  expect((yield* refused).message).toMatch(/written by a newer tilld and/)
  raw.close()
})

liveTest("a migration leaves a verified copy of the file from before", function* () {
  const path = yield* temporaryDatabase
  yield* Effect.provide(synchronous, Sql.layer(path))
  const raw = new Database(path)
  raw.prepare("INSERT INTO meta VALUES ('kept', 'yes')").run()
  raw.close()
  yield* Effect.provide(
    migrate(path, {
      "0001_start": [],
      "0002_next": ["CREATE TABLE next (id TEXT) STRICT"]
    }),
    SqliteClient.layer({ filename: path })
  )
  const copies = readdirSync(dirname(path)).filter((name) => name.includes(".before-"))
  expect(copies).toEqual([`${basename(path)}.before-2`])
  const copy = new Database(`${path}.before-2`, { readonly: true })
  expect(copy.prepare("SELECT value FROM meta WHERE key = 'kept'").get()).toEqual({ value: "yes" })
  expect(copy.prepare("SELECT name FROM sqlite_schema WHERE name = 'next'").get()).toBeUndefined()
  copy.close()
})

it.live.each<[string, (path: string) => unknown, RegExp]>([
  ["is no database", (path) => writeFileSync(path, "x".repeat(10_000)), /is damaged, or no SQLite database: restore/],
  ["is damaged", damage, /is damaged, or no SQLite database: restore/],
  ["is a directory", (path) => mkdirSync(path), /is a directory: give database.path/],
  ["lies where nobody may write", () => "/proc/version", /may not write/]
])("a file that %s is refused with what to do", ([, make, words]) =>
  Effect.gen(function* () {
    const given = yield* temporaryDatabase
    const made = make(given)
    const path = typeof made === "string" ? made : given
    const refused = yield* Effect.flip(Effect.provide(Reader, Sql.layer(path)))
    expect(refused).toBeInstanceOf(StoreUnusable)
    expect(refused.message).toMatch(words)
    expect(refused.message).toContain(path)
  }).pipe(Effect.scoped)
)

it.each([
  new Error("Could not locate the bindings file. Tried:\n → /a\n → /b"),
  Object.assign(new Error("wrong ELF class"), { code: "ERR_DLOPEN_FAILED" }),
  "Error: Cannot find module './elliptic'\n    at require"
])("a native part that cannot be loaded is one line, wherever it is met: %s", (cause) => {
  expect(nativeProblem(cause)).toMatch(/^a native part.* run tilld with a Node .*$/)
  expect(unusableFiles(cause, [], "Cannot work")).toMatchObject({
    _tag: "StoreUnusable",
    message: nativeProblem(cause)
  })
})

it("any other error is not reported as one of a native part", () => {
  expect(nativeProblem(new Error("disk I/O error"))).toBeUndefined()
})
