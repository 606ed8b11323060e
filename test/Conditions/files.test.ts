import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs"
import { expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Chunk, Effect, Layer, TestClock } from "effect"
import { makeFiles } from "../../src/Conditions/files.ts"
import { keyOf } from "../../src/Conditions/standing.ts"
import { iso } from "../../src/lib/moment.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import * as Sql from "../../src/Sql.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { asShipped, installation } from "../Backup/backing.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { temporaryDatabase } from "../lib/store.ts"

liveTest("the newest backup is told of once a byte of it has changed, and no more after a good one", function* () {
  const { backUp, path } = yield* installation
  const { file } = yield* backUp("first.db")
  const keys = (files = makeFiles(path)) => Effect.map(asShipped(files.readBack), () => files.conditions().map(keyOf))
  expect(yield* keys()).toEqual([])
  const middle = Math.floor(readFileSync(file).length / 2)
  const [byte = 0] = readFileSync(file).subarray(middle)
  const open = openSync(file, "r+")
  writeSync(open, Buffer.from([byte ^ 1]), 0, 1, middle)
  closeSync(open)
  const daemon = makeFiles(path)
  expect(yield* keys(daemon)).toEqual(["backup_broken"])
  yield* backUp("first.db", { force: true })
  expect(yield* keys(daemon)).toEqual([])
  writeFileSync(file, readFileSync(file).subarray(0, middle))
  expect(yield* keys()).toEqual(["backup_broken"])
})

clockTest(
  "a backup that was broken before a start is found a minute after it, before its end would be told",
  function* () {
    const path = yield* temporaryDatabase
    writeFileSync(`${path}.backup`, "no backup")
    writeFileSync(`${path}.last-backup`, JSON.stringify({ madeAt: iso(0), file: `${path}.backup` }))
    const files = makeFiles(path)
    yield* Effect.forkScoped(asShipped(files.run))
    const turn = Effect.zipRight(eventLoopTurn, TestClock.sleeps())
    const sleeps = yield* Effect.repeat(turn, { until: Chunk.isNonEmpty })
    expect([...sleeps]).toEqual([60_000])
    yield* TestClock.adjust("1 minute")
    yield* Effect.repeat(eventLoopTurn, { until: () => files.conditions().length > 0 })
    expect(files.conditions().map(keyOf)).toEqual(["backup_broken"])
  }
)

liveTest("a log that a reader keeps from being checkpointed is told of, until the reader has gone", function* () {
  const path = yield* temporaryDatabase
  const keys = () => makeFiles(path).conditions().map(keyOf)
  yield* Effect.gen(function* () {
    const { write } = yield* Sql.Writer
    // Content that differs each time: SQLite does not write a page again that has not changed.
    let filled = 0
    const fill = (rows: number) =>
      Effect.forEach(
        Array.from({ length: rows }, (_, i) => i),
        (i) =>
          write(
            Sql.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [
              `row ${i}`,
              `${filled++}`.padStart(8, "0").repeat(125_000)
            ])
          ),
        { discard: true }
      )
    yield* fill(10)
    const reader = new Database(path, { readonly: true })
    reader.exec("BEGIN")
    reader.prepare("SELECT count(*) FROM meta").get()
    yield* fill(30)
    expect(keys()).toEqual([])
    yield* fill(60)
    expect(keys()).toEqual(["wal_long"])
    reader.close()
    // A thread moves the log in its own time, and the commit after that cuts it.
    yield* Effect.repeat(fill(1), { until: () => keys().length === 0 })
  }).pipe(Effect.provide(Layer.provideMerge(Sql.layer(path), Workers.layer)))
})
