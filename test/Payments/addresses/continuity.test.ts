import fs, { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { dirname } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Layer, TestClock } from "effect"
import { WatchedAddresses } from "../../../src/Chains/ledger/WatchedAddresses.ts"
import type { Owner } from "../../../src/Domain/Account.ts"
import { eventLoopTurn } from "../../../src/lib/waiting.ts"
import { Addresses } from "../../../src/Payments/addresses/Addresses.ts"
import type { Mark } from "../../../src/Payments/addresses/IndexMark.ts"
import { lossOf } from "../../../src/Payments/addresses/IndexMark.ts"
import { doubtOf, UnitFolder } from "../../../src/Payments/addresses/numbering.ts"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import { StoreHistory } from "../../../src/Sql.ts"
import { Workers } from "../../../src/Telemetry/Workers.ts"
import { liveTest, scopedTest } from "../../lib/scopedTest.ts"
import { liveXpub } from "../../lib/settings.ts"
import { execute, rows, temporaryDatabase } from "../../lib/store.ts"
import {
  addShop,
  gap,
  markOf,
  nextOf,
  owner,
  restore,
  running,
  shop,
  skipped,
  take,
  takeFor,
  takeMany,
  threeTaken,
  wallet
} from "./addressing.ts"

/** A test on the test clock. */
const test = scopedTest(Layer.empty)

const copy = (path: string) => copyFileSync(path, `${path}.backup`)
const indexAt = (path: string) => Effect.map(Effect.provide(take, running(path)), ({ index }) => index)
const gapAt = (path: string) => Effect.provide(gap, running(path))
const token = Effect.map(rows<{ token: string }>("SELECT token FROM numbering"), ([row]) => row)

liveTest("a restored older copy assigns no address again, and all skipped addresses are watched", function* () {
  const path = yield* threeTaken
  expect((yield* gapAt(path)).rows).toEqual([])
  copy(path)
  yield* Effect.provide(takeMany(40), running(path))
  restore(path)
  for (const index of [1043, 1044]) {
    expect(yield* nextOf(running(path))).toEqual({ index, rows: skipped(3, 1043), watched: 1040 })
  }
})

liveTest("the same copy restored again jumps over the addresses assigned since", function* () {
  const path = yield* threeTaken
  copy(path)
  yield* indexAt(path)
  for (const lives of [1, 2, 3]) {
    restore(path)
    expect(yield* indexAt(path)).toBe(3 + lives * 1001)
  }
  expect((yield* gapAt(path)).rows).toEqual(skipped(3, 3 + 3 * 1001))
})

liveTest("a copy that has run elsewhere jumps where it comes back, though its number is higher", function* () {
  const path = yield* threeTaken
  const elsewhere = `${path}.elsewhere`
  copyFileSync(path, elsewhere)
  yield* Effect.provide(takeMany(5), running(elsewhere))
  copyFileSync(elsewhere, path)
  expect(yield* indexAt(path)).toBe(1008 + 1000)
  expect(yield* indexAt(elsewhere)).toBe(1008)
})

liveTest("a copy that runs beside the original from another place jumps, and the original does not", function* () {
  const path = yield* threeTaken
  const beside = `${path}.beside`
  copyFileSync(path, beside)
  expect(yield* indexAt(beside)).toBe(1003)
  expect(yield* indexAt(path)).toBe(3)
  expect(yield* indexAt(beside)).toBe(1004)
  expect(yield* indexAt(path)).toBe(4)
})

test("skipped addresses are watched as long as those of ended payments", function* () {
  const path = yield* threeTaken
  rmSync(markOf(path))
  expect((yield* gapAt(path)).watched).toBe(1000)
  yield* TestClock.adjust("30 days")
  const { rows, watched } = yield* gapAt(path)
  expect({ rows: rows.length, watched }).toEqual({ rows: 1000, watched: 0 })
})

test("also those that a start skips while the clock is in the past, as that of an image is", function* () {
  const path = yield* threeTaken
  const read = execute(
    `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
     VALUES ('base', 'test', 0, 1, '0x1', ?, 0)`,
    [Duration.toSeconds("40 days")]
  )
  yield* Effect.provide(read, running(path))
  rmSync(markOf(path))
  expect((yield* gapAt(path)).watched).toBe(1000)
  yield* TestClock.adjust("41 days")
  expect((yield* gapAt(path)).watched).toBe(1000)
})

for (const [what, spoil] of [
  ["missing", (mark: string) => rmSync(mark)],
  ["torn", (mark: string) => writeFileSync(mark, "torn ".repeat(1000))],
  [
    "without its tokens",
    (mark: string) => writeFileSync(mark, JSON.stringify({ tokens: [], wallets: {}, database: "" }))
  ]
] as const) {
  liveTest(`numbering jumps by a thousand, once, where the mark is ${what}`, function* () {
    const path = yield* threeTaken
    spoil(markOf(path))
    expect(yield* indexAt(path)).toBe(1003)
    expect(yield* nextOf(running(path))).toMatchObject({ index: 1004, rows: skipped(3, 1003) })
  })
}

liveTest("the history of a server says whether numbering continues, whichever mark the node has", function* () {
  const path = yield* temporaryDatabase
  const takenWith = (history: string) =>
    Effect.map(
      Effect.provide(take, Layer.provide(running(path), Layer.succeed(StoreHistory, history))),
      ({ index }) => index
    )
  expect(yield* takenWith("00000001/5")).toBe(0)
  rmSync(markOf(path))
  expect(yield* takenWith("00000001/5")).toBe(1)
  expect(yield* takenWith("00000002/5")).toBe(1002)
  expect(yield* takenWith("00000002/5")).toBe(1003)
})

liveTest("a new database in place of another one assigns no address again", function* () {
  const path = yield* threeTaken
  for (const part of ["", "-wal", "-shm"]) rmSync(`${path}${part}`, { force: true })
  expect(yield* nextOf(running(path))).toEqual({ index: 1003, rows: skipped(0, 1003), watched: 1003 })
})

liveTest("a new database jumps over a mark in the unit's folder, too", function* () {
  const path = yield* threeTaken
  for (const part of ["", "-wal", "-shm"]) rmSync(`${path}${part}`, { force: true })
  renameSync(`${path}.marks`, `${path}.unit`)
  const daemon = Layer.provide(running(path), Layer.succeed(UnitFolder, `${path}.unit`))
  expect(yield* Effect.provide(take, daemon)).toMatchObject({ index: 1003 })
  expect(yield* Effect.provide(take, daemon)).toMatchObject({ index: 1004 })
})

liveTest("a database is lost where its mark has addresses and the file is missing or empty", function* () {
  const path = yield* threeTaken
  const place = (of: string) => ({ path: of, markFolder: `${path}.marks` })
  expect(lossOf(place(path))).toBeUndefined()
  writeFileSync(path, "")
  expect(lossOf(place(path))).toBe(`the database ${path} is empty although 3 addresses were given out from it`)
  rmSync(path)
  expect(lossOf(place(path))).toContain("is missing although 3 addresses")
  // Another database of the same wallet, another machine, and a first start that was cut off.
  expect(lossOf(place(`${path}.other`))).toBeUndefined()
  expect(lossOf({ path, markFolder: `${path}.elsewhere` })).toBeUndefined()
  writeFileSync(markOf(path), JSON.stringify({ tokens: ["a"], wallets: { [wallet.fingerprint]: 0 }, database: path }))
  expect(lossOf(place(path))).toBeUndefined()
})

describe("a crash skips nothing", () => {
  liveTest("between a commit and its mark, again and again", function* () {
    const path = yield* temporaryDatabase
    let expected = 0
    for (let life = 0; life < 12; life++) {
      yield* Effect.gen(function* () {
        const taken = yield* takeMany(life % 4)
        const mark = readFileSync(markOf(path))
        const more = yield* takeMany(1 + (life % 7))
        const indexes = [...taken, ...more].map(({ index }) => index).sort((a, b) => a - b)
        expect(indexes).toEqual(indexes.map((_, i) => expected + i))
        expected += indexes.length
        // So the mark stays when the process dies after the commit: no one writes it when it ends.
        writeFileSync(markOf(path), mark)
      }).pipe(Effect.provide(running(path)))
    }
    expect((yield* gapAt(path)).rows).toEqual([])
  })

  liveTest("at every moment of a start", function* () {
    const path = yield* threeTaken
    copy(path)
    const before = readFileSync(markOf(path), "utf8")
    const { tokens: last, ...rest } = JSON.parse(before) as Mark
    const started = yield* Effect.provide(token, running(path))
    const both = JSON.stringify({ tokens: [...last, started?.token], ...rest })
    // Killed before the commit of the token, and behind it.
    writeFileSync(markOf(path), both)
    expect((yield* gapAt(path)).rows).toEqual([])
    restore(path)
    writeFileSync(markOf(path), both)
    expect(yield* indexAt(path)).toBe(3)
    expect((yield* gapAt(path)).rows).toEqual([])
  })

  liveTest("at every moment of the first start", function* () {
    const path = yield* temporaryDatabase
    mkdirSync(dirname(markOf(path)))
    writeFileSync(markOf(path), JSON.stringify({ tokens: ["", "new"], wallets: {}, database: path }))
    expect(yield* indexAt(path)).toBe(0)
  })

  liveTest("at every moment of a start that jumps: it jumps once", function* () {
    const path = yield* threeTaken
    copy(path)
    yield* Effect.provide(takeMany(7), running(path))
    const ahead = JSON.parse(readFileSync(markOf(path), "utf8")) as Mark
    restore(path)
    const begun = yield* Effect.provide(token, running(path))
    // The token and what is left to jump are committed, and the mark is as it was before that.
    const undone = execute("UPDATE wallets SET next_index = 3, jump = 1007")
    yield* Effect.provide(Effect.zipRight(undone, execute("DELETE FROM gap_addresses")), running(path))
    const now = yield* Effect.provide(token, running(path))
    expect(now?.token).not.toBe(begun?.token)
    writeFileSync(markOf(path), JSON.stringify({ ...ahead, tokens: [now?.token] }))
    expect(yield* nextOf(running(path))).toMatchObject({ index: 1010, rows: skipped(3, 1010) })
  })
})

liveTest("a restored copy watches the skipped addresses of an account's own wallet, in its mode", function* () {
  const path = yield* temporaryDatabase
  const own = hdWallet(liveXpub)
  const liveShop: Owner = { ...shop, mode: "live" }
  yield* Effect.provide(Effect.zipRight(addShop(liveXpub, "live"), takeFor(liveShop)), running(path))
  copy(path)
  yield* Effect.provide(takeFor(liveShop), running(path))
  restore(path)
  const [{ rows }, matchSet] = yield* Effect.provide(Effect.zip(gap, WatchedAddresses), running(path))
  expect(rows.filter(({ mode }) => mode === "live")).toEqual(skipped(1, 1002, own, "live"))
  expect([matchSet.has("live", own.address(1)), matchSet.has("test", own.address(1))]).toEqual([true, false])
  expect((yield* Effect.provide(takeFor(liveShop), running(path))).index).toBe(1002)
})

liveTest("a wallet that a copy does not know begins after what the lost one may have assigned", function* () {
  const path = yield* threeTaken
  copy(path)
  const twice = Effect.zip(takeFor(shop), takeFor(shop))
  yield* Effect.provide(Effect.zipRight(addShop(liveXpub), twice), running(path))
  restore(path)
  const both = Effect.zip(takeFor(shop), takeFor(shop), { concurrent: true })
  const again = Effect.zip(Effect.zipRight(addShop(liveXpub), both), gap)
  const [taken, { rows }] = yield* Effect.provide(again, running(path))
  expect(taken.map(({ index }) => index)).toEqual([1002, 1003])
  const own = hdWallet(liveXpub)
  const lost = rows.filter(({ address }) => address === own.address(0) || address === own.address(1))
  expect(lost).toHaveLength(2)
  expect(yield* indexAt(path)).toBe(1003)
})

test("a wallet that comes when a lost copy's addresses are watched no longer begins at 0, whatever others have jumped", function* () {
  const path = yield* threeTaken
  rmSync(markOf(path))
  expect(yield* indexAt(path)).toBe(1003)
  yield* TestClock.adjust("31 days")
  const { index } = yield* Effect.provide(Effect.zipRight(addShop(liveXpub), takeFor(shop)), running(path))
  expect([index, yield* indexAt(path)]).toEqual([0, 1004])
})

liveTest("a wallet whose key comes back after the restore jumps then", function* () {
  const path = yield* temporaryDatabase
  const own = hdWallet(liveXpub)
  // It was another operator's, who is gone: no one provides its key at the start.
  const known = execute("INSERT INTO wallets (fingerprint, next_index) VALUES (?, 5)", [own.fingerprint])
  yield* Effect.provide(known, running(path))
  rmSync(markOf(path))
  const again = Effect.zip(Effect.zipRight(addShop(liveXpub), takeFor(shop)), gap)
  const [{ index }, { rows }] = yield* Effect.provide(again, running(path))
  expect(index).toBe(1005)
  expect(rows.filter(({ address }) => address === own.address(5))).toHaveLength(1)
})

liveTest("the daemon does not start without a folder for the mark", function* () {
  const path = yield* temporaryDatabase
  writeFileSync(`${path}.marks`, "no folder")
  const exit = yield* Effect.exit(Effect.provide(take, running(path)))
  expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toContain("database.mark_folder")
})

it("continuity is proven by a mark with the token, which is ahead of no wallet", () => {
  const known = (token: string, wallets: Record<string, number> = {}) => ({ token, wallets })
  const mark = (wallets: Record<string, number>, ...tokens: ReadonlyArray<string>): Mark => {
    return { tokens, wallets, database: "" }
  }
  expect(doubtOf(known(""), undefined)).toBeUndefined()
  expect(doubtOf(known("a", { w: 5 }), mark({ w: 5 }, "a"))).toBeUndefined()
  expect(doubtOf(known("a", { v: 1, w: 9 }), mark({ w: 5 }, "b", "a"))).toBeUndefined()
  expect(doubtOf(known("a", { v: 9, w: 4 }), mark({ v: 1, w: 5 }, "a"))).toContain("older")
  expect(doubtOf(known("a", { w: 4 }), mark({ v: 1, w: 4 }, "a"))).toContain("older")
  expect(doubtOf(known("a", { w: 9 }), mark({ w: 5 }, "b"))).toContain("another start")
  expect(doubtOf(known("a"), undefined)).toContain("missing")
  expect(doubtOf(known("", { w: 0 }), undefined)).toContain("missing")
  expect(doubtOf(known(""), mark({ w: 7 }, "a"))).toContain("older")
})

test("a mark that cannot be written makes the numbering unready, and is written once it can be", function* () {
  const path = yield* threeTaken
  const { writeSync } = fs
  const setWrite = (write: typeof writeSync) =>
    Effect.sync(() => {
      fs.writeSync = write
      syncBuiltinESMExports()
    })
  yield* Effect.addFinalizer(() => setWrite(writeSync))
  yield* Effect.gen(function* () {
    const { run } = yield* Addresses
    yield* Effect.forkScoped(run)
    const { health } = yield* Workers
    const reported = Effect.map(health, (all) => all.find(({ name }) => name === "addresses"))
    yield* takeMany(2)
    const mark = statSync(markOf(path)).ino
    const refuse = (descriptor: number, ...rest: [string, number]) => {
      if (fs.fstatSync(descriptor).ino === mark) throw new Error("EROFS: read-only file system, write")
      return writeSync(descriptor, ...rest)
    }
    yield* setWrite(refuse as typeof writeSync)
    yield* takeMany(3)
    expect(yield* reported).toMatchObject({ ready: false, reason: expect.stringMatching(/mark cannot.*EROFS/) })
    yield* setWrite(writeSync)
    yield* Effect.repeat(Effect.zipRight(TestClock.adjust("1 second"), Effect.zipRight(eventLoopTurn, reported)), {
      until: (found) => found?.ready === true
    })
    expect(JSON.parse(readFileSync(markOf(path), "utf8")).wallets).toEqual({ [wallet.fingerprint]: 8 })
  }).pipe(Effect.provide(running(path)))
})

/** Databases of one machine: they share the folder of their marks. */
const machine = Effect.map(temporaryDatabase, (path) => ({
  path,
  other: `${path}.other`,
  on: (database: string) => running(database, [], `${path}.marks`)
}))

const wallets = rows("SELECT fingerprint, next_index FROM wallets")

liveTest("a new database continues after the addresses of the one that database.path named before", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(takeMany(3), on(path))
  expect(yield* nextOf(on(other))).toEqual({ index: 1003, rows: skipped(0, 1003), watched: 1003 })
  expect((yield* Effect.provide(take, on(other))).index).toBe(1004)
})

liveTest("and the former one continues after the new one, once", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(takeMany(3), on(path))
  yield* Effect.provide(take, on(other))
  expect(yield* nextOf(on(path))).toEqual({ index: 1004 + 1000, rows: skipped(3, 2004), watched: 2001 })
  expect((yield* Effect.provide(take, on(path))).index).toBe(2005)
})

liveTest("a copy that is older than the mark of its former path continues after that", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(takeMany(3), on(path))
  copyFileSync(path, other)
  yield* Effect.provide(takeMany(40), on(path))
  expect((yield* Effect.provide(take, on(other))).index).toBe(43 + 1000)
})

liveTest("a database that is further than the marks of all others skips nothing", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(take, on(other))
  yield* Effect.provide(takeMany(3), on(path))
  yield* Effect.provide(take, on(path))
  expect((yield* Effect.provide(take, on(path))).index).toBe(1001 + 4)
})

for (const [what, before] of [
  ["once it is asked for", () => Effect.void],
  ["before the transaction that takes its first address", () => Effect.flatMap(Addresses, ({ ready }) => ready(shop))]
] as const) {
  liveTest(`the wallet of an account that is created again does, too: ${what}`, function* () {
    const { on, other, path } = yield* machine
    const own = hdWallet(liveXpub)
    const two = Effect.zip(takeFor(shop), takeFor(shop))
    yield* Effect.provide(Effect.zipRight(addShop(liveXpub), two), on(path))
    const again = Effect.gen(function* () {
      yield* addShop(liveXpub)
      yield* before()
      const taken = yield* Effect.zip(takeFor(shop), takeFor(shop), { concurrent: true })
      const matchSet = yield* WatchedAddresses
      return { indexes: taken.map(({ index }) => index), isWatched: matchSet.has("test", own.address(1)) }
    })
    expect(yield* Effect.provide(again, on(other))).toEqual({ indexes: [1002, 1003], isWatched: true })
    // The account is known at this start.
    expect((yield* Effect.provide(takeFor(shop), on(path))).index).toBe(1004 + 1000)
  })
}

liveTest("a wallet that only the other database uses is not taken over", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(Effect.zipRight(addShop(liveXpub), takeFor(shop)), on(path))
  const found = yield* Effect.provide(
    Effect.flatMap(Addresses, ({ ready }) => Effect.zipRight(ready(owner), wallets)),
    on(other)
  )
  expect(found).toEqual([{ fingerprint: wallet.fingerprint, next_index: 0 }])
})

liveTest("unreadable marks, and other files there, are ignored", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(take, on(path))
  const marks = `${path}.marks`
  writeFileSync(`${marks}/numbering-0123456789abcdef.json`, "torn")
  writeFileSync(`${marks}/numbering-0123456789abcdef.json.kept`, "{}")
  expect((yield* Effect.provide(take, on(other))).index).toBe(1001)
})
