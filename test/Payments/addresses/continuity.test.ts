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
import { lossOf } from "../../../src/Payments/addresses/lostDatabase.ts"
import { doubtOf, UnitFolder } from "../../../src/Payments/addresses/numbering.ts"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { Workers } from "../../../src/Telemetry/Workers.ts"
import { change } from "../../lib/rows.ts"
import { liveTest } from "../../lib/scopedTest.ts"
import { liveXpub } from "../../lib/settings.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import {
  addShop,
  gap,
  markOf,
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

const copy = (path: string) => copyFileSync(path, `${path}.backup`)
const indexAt = (path: string) => Effect.map(Effect.provide(take, running(path)), ({ index }) => index)
const gapAt = (path: string) => Effect.provide(gap, running(path))
const token = Effect.flatMap(Reader, (reader) => reader.get<{ token: string }>("SELECT token FROM numbering"))

liveTest("a restored older copy assigns no address again, and all skipped addresses are watched", function* () {
  const path = yield* threeTaken
  expect((yield* gapAt(path)).rows).toEqual([])
  copy(path)
  yield* Effect.provide(takeMany(40), running(path))
  restore(path)
  const [first, found] = yield* Effect.provide(Effect.zip(take, gap), running(path))
  expect(first.index).toBe(1043)
  expect(found).toEqual({ rows: skipped(3, 1043), watched: 1040 })
  const [later, same] = yield* Effect.provide(Effect.zip(take, gap), running(path))
  expect(later.index).toBe(1044)
  expect(same).toEqual(found)
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

liveTest(
  "a copy that has run elsewhere meanwhile jumps where it comes back, though its number is higher",
  function* () {
    const path = yield* threeTaken
    const elsewhere = `${path}.elsewhere`
    copyFileSync(path, elsewhere)
    yield* Effect.provide(takeMany(5), running(elsewhere))
    copyFileSync(elsewhere, path)
    expect(yield* indexAt(path)).toBe(1008 + 1000)
    expect(yield* indexAt(elsewhere)).toBe(1008)
  }
)

liveTest("a copy that runs beside the original from another place jumps, and the original does not", function* () {
  const path = yield* threeTaken
  const beside = `${path}.beside`
  copyFileSync(path, beside)
  expect(yield* indexAt(beside)).toBe(1003)
  expect(yield* indexAt(path)).toBe(3)
  expect(yield* indexAt(beside)).toBe(1004)
  expect(yield* indexAt(path)).toBe(4)
})

it.effect("skipped addresses are watched as long as those of ended payments", () =>
  Effect.gen(function* () {
    const path = yield* threeTaken
    rmSync(markOf(path))
    expect((yield* gapAt(path)).watched).toBe(1000)
    yield* TestClock.adjust("30 days")
    const { rows, watched } = yield* gapAt(path)
    expect({ rows: rows.length, watched }).toEqual({ rows: 1000, watched: 0 })
  }).pipe(Effect.scoped)
)

it.effect("also those that a start skips while the clock is in the past, as that of an image is", () =>
  Effect.gen(function* () {
    const path = yield* threeTaken
    const read = change(
      `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
       VALUES ('base', 'test', 0, 1, '0x1', ?, 0)`,
      Duration.toSeconds("40 days")
    )
    yield* Effect.provide(read, running(path))
    rmSync(markOf(path))
    expect((yield* gapAt(path)).watched).toBe(1000)
    yield* TestClock.adjust("41 days")
    expect((yield* gapAt(path)).watched).toBe(1000)
  }).pipe(Effect.scoped)
)

for (const [what, spoil] of [
  ["missing", (mark: string) => rmSync(mark)],
  ["torn", (mark: string) => writeFileSync(mark, "torn ".repeat(1000))],
  [
    "without its tokens",
    (mark: string) => writeFileSync(mark, JSON.stringify({ tokens: [], wallets: {}, database: "" }))
  ]
] as const) {
  it.live(`numbering jumps by a thousand, once, where the mark is ${what}`, () =>
    Effect.gen(function* () {
      const path = yield* threeTaken
      spoil(markOf(path))
      expect(yield* indexAt(path)).toBe(1003)
      const [{ index }, { rows }] = yield* Effect.provide(Effect.zip(take, gap), running(path))
      expect(index).toBe(1004)
      expect(rows).toEqual(skipped(3, 1003))
    }).pipe(Effect.scoped)
  )
}

liveTest("a new database in place of another one assigns no address again", function* () {
  const path = yield* threeTaken
  for (const part of ["", "-wal", "-shm"]) rmSync(`${path}${part}`, { force: true })
  const [{ index }, found] = yield* Effect.provide(Effect.zip(take, gap), running(path))
  expect(index).toBe(1003)
  expect(found).toEqual({ rows: skipped(0, 1003), watched: 1003 })
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
    const undone = Effect.flatMap(Tx, (tx) =>
      Effect.zipRight(tx.run("UPDATE wallets SET next_index = 3, jump = 1007"), tx.run("DELETE FROM gap_addresses"))
    )
    yield* Effect.flatMap(Writer, ({ write }) => write(undone)).pipe(Effect.provide(running(path)))
    const now = yield* Effect.provide(token, running(path))
    expect(now?.token).not.toBe(begun?.token)
    writeFileSync(markOf(path), JSON.stringify({ ...ahead, tokens: [now?.token] }))
    const [{ index }, { rows }] = yield* Effect.provide(Effect.zip(take, gap), running(path))
    expect(index).toBe(1010)
    expect(rows).toEqual(skipped(3, 1010))
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

liveTest("a wallet whose key comes back after the restore jumps then", function* () {
  const path = yield* temporaryDatabase
  const own = hdWallet(liveXpub)
  // It was another operator's, who is gone: no one provides its key at the start.
  const known = Effect.flatMap(Tx, (tx) =>
    tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES (?, 5)", [own.fingerprint])
  )
  yield* Effect.flatMap(Writer, (writer) => writer.write(known)).pipe(Effect.provide(running(path)))
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
  const mark = (wallets: Record<string, number>, ...tokens: ReadonlyArray<string>): Mark => ({
    tokens,
    wallets,
    database: ""
  })
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

it.scoped("a mark that cannot be written makes the numbering unready, and is written once it can be", () =>
  Effect.gen(function* () {
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
)
