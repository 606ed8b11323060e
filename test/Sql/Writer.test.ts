import { expect, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Fiber, Layer, Runtime, Scope } from "effect"
import { splitRemedy } from "../../src/Domain/ApiError.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader, StoreUnavailable, Tx, Writer } from "../../src/Sql.ts"
import { clockTest, liveTest, liveTestOn, scopedTest } from "../lib/scopedTest.ts"
import { inTransaction, rows, temporaryDatabase, tempStore } from "../lib/store.ts"

const put = (key: string, value: string) =>
  Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO meta (key, value) VALUES (?, ?)", [key, value]))

const keys = Effect.map(
  rows<{ key: string }>("SELECT key FROM meta WHERE key NOT IN ('written_by', 'metadata_indexed') ORDER BY key"),
  (all) => all.map(({ key }) => key)
)

/** Leaves the file room for so many more pages. */
const leaveRoom = (count: number) =>
  Effect.gen(function* () {
    const [now] = yield* rows<{ page_count: number }>("PRAGMA page_count")
    const most = (now?.page_count ?? 0) + count
    yield* inTransaction(Effect.flatMap(Tx, (tx) => tx.all(`PRAGMA max_page_count = ${most}`)))
  })

/** With a clock that stands still, so that no group commit ends by its time limit. */
const standing = scopedTest(tempStore)
const inTime = liveTestOn(tempStore)

standing("commands that arrive together share a commit, and a refusal of one does not affect the others", function* () {
  const writer = yield* Writer
  const reader = yield* Reader
  const seenInside: Array<number> = []
  const command = (i: number) =>
    writer.write(
      Effect.gen(function* () {
        yield* put(`k${i}`, "v")
        // The reader does not see a group before its commit.
        const row = yield* reader.get<{ n: number }>(
          "SELECT count(*) AS n FROM meta WHERE key NOT IN ('written_by', 'metadata_indexed')"
        )
        seenInside.push(row?.n ?? -1)
        if (i % 10 === 3) return yield* Effect.fail("refused" as const)
        return i
      })
    )
  const exits = yield* Effect.forEach(
    Array.from({ length: 40 }, (_, i) => i),
    (i) => Effect.exit(command(i)),
    {
      concurrency: "unbounded"
    }
  )
  expect(new Set(seenInside)).toEqual(new Set([0]))
  expect(exits.filter(Exit.isFailure)).toHaveLength(4)
  expect(yield* keys).toHaveLength(36)
})

standing("a group is repeated only for a command that fails after it has written", function* () {
  const writer = yield* Writer
  const runs = { reading: 0, writing: 0 }
  const group = (name: keyof typeof runs, last: Effect.Effect<void, StoreUnavailable | "refused", Tx>) =>
    Effect.all(
      [
        writer.write(
          Effect.zipRight(
            Effect.sync(() => void runs[name]++),
            put(name, "1")
          )
        ),
        Effect.exit(writer.write(Effect.zipRight(last, Effect.fail("refused" as const))))
      ],
      { concurrency: "unbounded" }
    )
  yield* group(
    "reading",
    Effect.flatMap(Tx, (tx) => Effect.asVoid(tx.get("SELECT 1 AS one")))
  )
  yield* group("writing", put("never", "1"))
  expect(runs).toEqual({ reading: 1, writing: 2 })
  expect(yield* keys).toEqual(["reading", "writing"])
})

inTime("a defect in a command fails only its own caller", function* () {
  const writer = yield* Writer
  const [bad, good] = yield* Effect.all(
    [
      Effect.exit(writer.write(Effect.zipRight(put("a", "1"), Effect.die("bug")))),
      Effect.exit(writer.write(put("b", "1")))
    ],
    { concurrency: "unbounded" }
  )
  expect(Exit.isFailure(bad)).toBe(true)
  expect(Exit.isSuccess(good)).toBe(true)
  expect(yield* keys).toEqual(["b"])
})

inTime("afterCommit runs after the commit, before the acknowledgement, and not for a refusal", function* () {
  const writer = yield* Writer
  const order: Array<string> = []
  yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      tx.afterCommit(() => order.push("after"))
      yield* put("a", "1")
      order.push("inside")
    })
  )
  order.push("answered")
  yield* Effect.exit(
    writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        tx.afterCommit(() => order.push("refused"))
        return yield* Effect.fail("no")
      })
    )
  )
  expect(order).toEqual(["inside", "after", "answered"])
})

standing("a function that several commands pass to afterCommit runs once, after the last of them", function* () {
  const writer = yield* Writer
  const order: Array<string> = []
  const shared = () => order.push("shared")
  const command = (key: string) =>
    writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* put(key, "1")
        tx.afterCommit(() => order.push(key))
        tx.afterCommit(shared)
      })
    )
  yield* Effect.all([command("a"), command("b"), command("c")], { concurrency: "unbounded" })
  expect(order).toEqual(["a", "b", "c", "shared"])
})

standing(
  "a full disk fails the whole group with a typed error, and the writer continues once there is space",
  function* () {
    const writer = yield* Writer
    yield* leaveRoom(2)
    const big = "x".repeat(64 * 1024)
    const [small, full] = yield* Effect.all(
      [Effect.exit(writer.write(put("small", "1"))), Effect.flip(writer.write(put("big", big)))],
      {
        concurrency: "unbounded"
      }
    )
    expect(full).toBeInstanceOf(StoreUnavailable)
    expect(splitRemedy(full.message).remedy).toMatch(/^free some space/)
    // It was in the same group: a command that was not acknowledged must leave nothing.
    expect(Exit.isFailure(small)).toBe(true)
    expect(yield* keys).toEqual([])
    yield* leaveRoom(1_000_000)
    yield* writer.write(put("after", "1"))
    expect(yield* keys).toEqual(["after"])
  }
)

// SQLite rolls back only such a statement, not its transaction, which would stay open and block all later ones.
it.effect.each([
  [
    "one statement of many rows",
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
     INSERT INTO meta (key, value) SELECT 'row ' || i, hex(zeroblob(500)) FROM n`
  ],
  [
    "a row of its own after many",
    "INSERT INTO meta (key, value) VALUES ('row a', hex(zeroblob(500))), ('row b', hex(zeroblob(500000)))"
  ]
] as const)("a full disk in %s rolls back the group, and the next command is executed", ([, statement]) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    yield* leaveRoom(10)
    const many = put("small", "1").pipe(Effect.zipRight(Effect.flatMap(Tx, (tx) => tx.run(statement))))
    expect(yield* Effect.flip(writer.write(many))).toBeInstanceOf(StoreUnavailable)
    expect(yield* keys).toEqual([])
    // There is space for this one.
    yield* writer.write(put("after", "1"))
    expect(yield* keys).toEqual(["after"])
  }).pipe(Effect.provide(tempStore))
)

liveTest("a store that closes interrupts commands that wait, and accepts no others", function* () {
  const path = yield* temporaryDatabase
  const scope = yield* Scope.make()
  const writer = Context.get(yield* Layer.buildWithScope(Sql.layer(path), scope), Writer)
  yield* writer.write(put("a", "1"))
  const waiting = yield* Effect.fork(writer.write(put("b", "1")))
  yield* Effect.yieldNow()
  yield* Scope.close(scope, Exit.void)
  expect(Exit.isInterrupted(yield* Fiber.await(waiting))).toBe(true)
  expect(Exit.isInterrupted(yield* Effect.exit(writer.write(put("c", "1"))))).toBe(true)
  expect(yield* Effect.provide(keys, Sql.layer(path))).toEqual(["a"])
})

/**
 * Runs `count` commands, one in each turn of the event loop. Returns how many of them had been `committed` and how many
 * `given` when each ran.
 */
const oneATurn = (commands: number, onTurn: () => void = () => {}) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const reader = yield* Reader
    const fork = Runtime.runFork(yield* Effect.runtime<never>())
    const forked: Array<Fiber.Fiber<void, StoreUnavailable>> = []
    const committed: Array<number> = []
    const given: Array<number> = []
    const command = (i: number) =>
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run("INSERT INTO meta (key, value) VALUES (?, '')", [`k${i}`])
        const row = yield* reader.get<{ n: number }>("SELECT count(*) AS n FROM meta WHERE value = ''")
        committed.push(row?.n ?? -1)
        given.push(forked.length)
      })
    yield* Effect.async<void>((resume) => {
      // The next turn is requested before the writer requests it, so that the command is there when the writer looks.
      const turn = (i: number) => {
        onTurn()
        if (i < commands) setImmediate(turn, i + 1)
        else resume(Effect.void)
        forked.push(fork(writer.write(command(i))))
      }
      turn(1)
    })
    yield* Fiber.joinAll(forked)
    return { committed, given }
  })

standing("commands that arrive one in each turn of the event loop share a commit", function* () {
  const { committed } = yield* oneATurn(20)
  expect(committed).toEqual(Array.from({ length: 20 }, () => 0))
})

standing("a commit with the maximum number of commands does not wait for more", function* () {
  const { committed, given } = yield* oneATurn(300)
  expect(given[0]).toBe(256)
  expect(committed.filter((n) => n === 0)).toHaveLength(256)
  expect(committed.filter((n) => n === 256)).toHaveLength(44)
})

clockTest("a commit waits for further commands for some milliseconds at most", function* () {
  let now = 0n
  const slowTurn = () => {
    now += 3_000_000n
  }
  const clock = Object.assign(Clock.make(), { unsafeCurrentTimeNanos: () => now })
  const { committed } = yield* Effect.provide(oneATurn(20, slowTurn), Layer.provide(tempStore, Layer.setClock(clock)))
  expect(committed.slice(0, 6)).toEqual([0, 0, 0, 3, 3, 3])
})
