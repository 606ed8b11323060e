import { copyFileSync, renameSync, rmSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Layer, TestClock } from "effect"
import * as Sql from "../../src/Sql.ts"
import { StoreHealth, Writer } from "../../src/Sql.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { damagePages } from "../lib/damagePages.ts"
import { collected } from "../lib/logs.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, rows, temporaryDatabase } from "../lib/store.ts"

const put = (key: string) => execute("INSERT INTO meta (key, value) VALUES (?, 'v')", [key])

/** A store whose worker runs; `look` is one round of it. */
const watched = Effect.gen(function* () {
  const path = yield* temporaryDatabase
  const { lines, logger } = collected()
  const services = yield* Layer.build(Layer.provideMerge(Sql.layer(path), Workers.layer))
  const workers = Context.get(services, Workers)
  const run = Context.get(services, StoreHealth).run(Context.get(services, Writer).write)
  yield* Effect.forkScoped(run).pipe(Effect.provide(Layer.merge(Layer.succeedContext(services), logger)))
  return {
    path,
    services,
    lines,
    look: TestClock.adjust("2 seconds"),
    ready: Effect.map(workers.health, (all) => all.find(({ name }) => name === "store"))
  }
})

/** Damage to a file under the daemon, and its repair. */
const harms: ReadonlyArray<
  readonly [what: string, text: string, harm: (path: string) => void, undo?: (path: string) => void]
> = [
  ["moved away", "removed or moved", (p) => renameSync(p, `${p}.away`), (p) => renameSync(`${p}.away`, p)],
  ["deleted", "removed or moved", (p) => rmSync(p)],
  [
    "replaced by a copy",
    "another file",
    (p) => {
      renameSync(p, `${p}.away`)
      copyFileSync(`${p}.away`, p)
    },
    (p) => renameSync(`${p}.away`, p)
  ],
  ["left without its log", "-wal was removed", (p) => rmSync(`${p}-wal`)]
]

describe("a database that is", () => {
  it.scoped.each(harms)(
    "%s under the daemon takes no writes, is not ready, and the log says so",
    ([, text, harm, undo]) =>
      Effect.gen(function* () {
        const { lines, look, path, ready, services } = yield* watched
        yield* Effect.gen(function* () {
          yield* put("before")
          expect(yield* ready).toEqual({ name: "store", ready: true })
          harm(path)
          // At once: not with the worker's next round.
          expect(yield* Effect.flip(put("lost"))).toMatchObject({ _tag: "StoreUnavailable", code: "REPLACED" })
          expect(yield* ready).toMatchObject({ ready: false, reason: expect.stringContaining(text) })
          yield* look
          yield* look
          expect(lines.map(({ level }) => level)).toEqual(["ERROR"])
          expect(lines[0]?.message).toContain(text)
          expect(yield* rows("SELECT key FROM meta WHERE key = 'lost'")).toEqual([])
          if (undo === undefined) return
          undo(path)
          yield* Effect.repeat(Effect.zipRight(look, ready), { until: (health) => health?.ready === true })
          expect(lines.at(-1)).toMatchObject({ level: "INFO", message: "the store takes writes again" })
          yield* put("after")
        }).pipe(Effect.provide(services))
      })
  )
})

clockTest("reading a damaged page ends the worker, and with it the process", function* () {
  const path = yield* temporaryDatabase
  yield* Effect.provide(Effect.void, Sql.layer(path))
  damagePages(path, "api_keys")
  const services = yield* Layer.build(Layer.provideMerge(Sql.layer(path), Workers.layer))
  const run = Context.get(services, StoreHealth).run(Context.get(services, Writer).write)
  const worker = yield* Effect.forkScoped(Effect.provide(run, services))
  yield* TestClock.adjust("2 seconds")
  expect(Exit.isFailure(yield* Effect.exit(Effect.provide(rows("SELECT * FROM api_keys"), services)))).toBe(true)
  const exit = yield* Fiber.await(worker)
  expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toMatchObject({
    code: expect.stringMatching(/^SQLITE_CORRUPT/)
  })
})

clockTest(
  "a store that is full is not ready, and is ready again once a write succeeds, without a request for one",
  function* () {
    const { look, ready, services } = yield* watched
    yield* Effect.gen(function* () {
      const [pages] = yield* rows<{ page_count: number }>("PRAGMA page_count")
      const limit = (count: number) =>
        inTransaction(Effect.flatMap(Sql.Tx, (tx) => tx.all(`PRAGMA max_page_count = ${count}`)))
      yield* limit(pages?.page_count ?? 0)
      const big = execute("INSERT INTO meta (key, value) VALUES ('big', hex(randomblob(100000)))")
      expect(yield* Effect.flip(big)).toMatchObject({ code: "SQLITE_FULL" })
      expect(yield* ready).toMatchObject({
        ready: false,
        reason: expect.stringContaining("the disk or its quota is full")
      })
      // The trial needs no new page: here it succeeds, where a full disk would refuse it.
      yield* Effect.repeat(Effect.zipRight(look, ready), { until: (health) => health?.ready === true })
    }).pipe(Effect.provide(services))
  }
)

// In real time: by the test's clock both sides of an interrupted race end.
liveTest("its worker looks no more once it is interrupted: a reload opens the files again", function* () {
  const path = yield* temporaryDatabase
  const { lines, logger } = collected()
  const services = yield* Layer.build(Layer.provideMerge(Sql.layer(path), Workers.layer))
  const run = Context.get(services, StoreHealth).run(Context.get(services, Writer).write)
  const reload = Effect.delay(Effect.fail("reload"), "100 millis")
  const life = Effect.all([Effect.provide(run, Layer.merge(Layer.succeedContext(services), logger)), reload], {
    concurrency: "unbounded"
  })
  expect(yield* Effect.flip(life)).toBe("reload")
  renameSync(path, `${path}.away`)
  yield* Effect.sleep("2500 millis")
  renameSync(`${path}.away`, path)
  expect(lines).toEqual([])
})
