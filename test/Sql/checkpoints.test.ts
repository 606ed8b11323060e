import { copyFileSync, readFileSync, renameSync, statSync } from "node:fs"
import { pathToFileURL } from "node:url"
import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Array as Arr, Deferred, Effect } from "effect"
import { checkpoints, longestLog } from "../../src/Sql/checkpoints.ts"
import { type Db, fromDatabase, Tx } from "../../src/Sql/Db.ts"
import { noteLog } from "../../src/Sql/logOwner.ts"
import { makeWriter, transactionsOn } from "../../src/Sql/Writer.ts"
import { threadOf } from "../../src/Sql/workerThread.ts"
import { built } from "../lib/processes.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryDatabase } from "../lib/store.ts"

const open = (path: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const database = new Database(path)
      const pragmas = ["journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 0"]
      for (const pragma of [...pragmas, `journal_size_limit = ${longestLog}`]) database.pragma(pragma)
      database.exec("CREATE TABLE IF NOT EXISTS numbers (n INTEGER PRIMARY KEY, filler TEXT) STRICT")
      return database
    }),
    (database) => Effect.sync(() => database.close())
  )

interface Log {
  readonly log: number
  readonly checkpointed: number
}

/** A writer whose WAL is checkpointed by the thread in `file`, and the results of its own checkpoints. */
const writing = (path: string, file: string, isFull = () => false, sync: Effect.Effect<unknown> = Effect.void) =>
  Effect.gen(function* () {
    const move = yield* checkpoints(path, Effect.asVoid(sync), isFull, pathToFileURL(file))
    const moved: Array<Log> = []
    const db = fromDatabase(yield* open(path))
    const get: Db["get"] = <Row extends object>(sql: string) =>
      Effect.tap(db.get<Row & Log>(sql), (log) =>
        Effect.sync(() => void moved.push(log ?? { log: 0, checkpointed: -1 }))
      )
    const writer = yield* makeWriter(transactionsOn(db), move({ ...db, get }))
    const insert = Effect.gen(function* () {
      const tx = yield* Tx
      yield* tx.run("INSERT INTO numbers (filler) VALUES (?)", ["x".repeat(200)])
    })
    const one = writer.write(insert)
    return { moved, one, some: Effect.all(Arr.replicate(one, 200), { concurrency: "unbounded", discard: true }) }
  })

/** Pages in the WAL, as another connection sees them. */
const logged = (path: string) =>
  Effect.scoped(
    Effect.map(open(path), (database) => {
      const [{ log }] = database.pragma("wal_checkpoint(NOOP)") as [Log]
      return log
    })
  )

const rows = (path: string) =>
  Effect.scoped(Effect.map(open(path), (database) => database.prepare("SELECT count(*) FROM numbers").pluck().get()))

liveTest("a thread checkpoints the WAL during commits, and the writer the rest: the WAL restarts", function* () {
  const path = yield* temporaryDatabase
  const { moved, one, some } = yield* writing(path, built("chunks/checkpointer.js"))
  for (let i = 0; i < 20; i++) yield* some
  const before = yield* logged(path)
  let ones = 0
  for (; moved.length === 0; ones++) yield* one
  expect(moved.map(({ checkpointed, log }) => checkpointed - log)).toEqual([0])
  yield* one
  expect(yield* logged(path)).toBeLessThan(10)
  expect(before).toBeGreaterThan(100)
  expect(yield* rows(path)).toBe(20 * 200 + ones + 1)
})

liveTest("without a thread the writer checkpoints the whole WAL", function* () {
  const path = yield* temporaryDatabase
  const { moved, one, some } = yield* writing(path, built("chunks/nothing.js"))
  for (let i = 0; i < 20; i++) yield* some
  while (moved.length === 0) yield* one
  expect(moved[0]?.log).toBeGreaterThan(100)
  yield* one
  expect(yield* logged(path)).toBeLessThan(10)
})

liveTest("the thread leaves a database alone that is not the one which the WAL belongs to", function* () {
  const path = yield* temporaryDatabase
  const database = yield* open(path)
  database.pragma("wal_checkpoint(TRUNCATE)")
  copyFileSync(path, `${path}.new`)
  database.exec("INSERT INTO numbers (filler) VALUES ('acknowledged')")
  noteLog(path)
  renameSync(path, `${path}.former`)
  renameSync(`${path}.new`, path)
  const files = () => [path, `${path}-wal`].map((file) => readFileSync(file))
  const before = files()
  const move = yield* threadOf<string, null>(pathToFileURL(built("chunks/checkpointer.js")), "1 minute")
  yield* move(path)
  expect(files()).toEqual(before)
  renameSync(`${path}.former`, path)
  yield* move(path)
  expect(files()).not.toEqual(before)
  expect(yield* rows(path)).toBe(1)
})

liveTest("lone commits are checkpointed by the bytes of the WAL, long before as many statements", function* () {
  const path = yield* temporaryDatabase
  const { moved, one } = yield* writing(path, built("chunks/checkpointer.js"))
  let ones = 0
  for (; ones === 0 || statSync(`${path}-wal`).size <= longestLog; ones++) yield* one
  expect(ones).toBeLessThan(2_000)
  while (moved.length === 0) yield* one
})

liveTest("a WAL that a reader let grow is cut, and the next one is checkpointed at the usual length", function* () {
  const path = yield* temporaryDatabase
  const { moved, one, some } = yield* writing(path, built("chunks/nothing.js"))
  const size = () => statSync(`${path}-wal`).size
  yield* one
  const reader = yield* open(path)
  reader.exec("BEGIN; SELECT count(*) FROM numbers")
  while (size() < 3 * longestLog) yield* some
  reader.exec("COMMIT")
  while (size() > longestLog) yield* one
  const before = moved.length
  while (moved.length === before) yield* one
  expect(size()).toBeLessThan(2 * longestLog)
})

liveTest("after a full disk the WAL is checkpointed however short it is", function* () {
  const path = yield* temporaryDatabase
  let isFull = false
  const isSynced = yield* Deferred.make<void>()
  const sync = Deferred.succeed(isSynced, undefined)
  const { moved, one } = yield* writing(path, built("chunks/checkpointer.js"), () => isFull, sync)
  yield* one
  isFull = true
  yield* one
  isFull = false
  yield* Effect.timeout(Deferred.await(isSynced), "1 minute")
  yield* one
  expect(moved.map(({ checkpointed, log }) => checkpointed - log)).toEqual([0])
})

liveTest("the WAL stays small while little is written", function* () {
  const path = yield* temporaryDatabase
  const { moved, some } = yield* writing(path, built("chunks/checkpointer.js"))
  for (let i = 0; i < 19; i++) yield* some
  expect(moved).toEqual([])
})

// Older versions corrupt a database when one connection checkpoints while another restarts the WAL:
// https://www.sqlite.org/wal.html, "the WAL-reset bug".
it("SQLite is new enough for two connections that checkpoint", () => {
  const version = String(new Database(":memory:").prepare("SELECT sqlite_version()").pluck().get())
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number)
  expect((major * 1_000 + minor) * 1_000 + patch).toBeGreaterThanOrEqual(3_051_003)
})
