import { pathToFileURL } from "node:url"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, TestClock } from "effect"
import { eventLoopTurn } from "../../../src/lib/waiting.ts"
import {
  AddressPool,
  type Derive,
  derivingThread,
  type IndexRange
} from "../../../src/Payments/addresses/AddressPool.ts"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import { NoThread } from "../../../src/Sql/workerThread.ts"
import { built } from "../../lib/processes.ts"
import { liveTest, scopedTest } from "../../lib/scopedTest.ts"
import { testXpub } from "../../lib/settings.ts"

/** A test on the test clock. */
const test = scopedTest(Layer.empty)

const addressOf = (index: number) => `address ${index}`

const byThread: Derive = ({ count, from }) =>
  Effect.succeed(Array.from({ length: count }, (_, i) => addressOf(from + i)))

/** A pool whose wallet counts how often each address is derived here, and which tells what it asks others for. */
const observedPool = (derive: Derive = byThread) => {
  const derived = new Map<number, number>()
  const wanted = { addresses: 0, vetting: 0 }
  const asked: Array<Omit<IndexRange, "external">> = []
  const wallet = {
    fingerprint: "wallet",
    account: undefined,
    sponsor: addressOf(0),
    external: { publicKey: new Uint8Array(33), chainCode: new Uint8Array(32) },
    address: (index: number) => {
      derived.set(index, (derived.get(index) ?? 0) + 1)
      return addressOf(index)
    }
  }
  const observed: Derive = (range) => {
    asked.push({ from: range.from, count: range.count })
    return derive(range)
  }
  const pool = new AddressPool(wallet, "test", observed, 200, (what) => {
    wanted[what] += 1
  })
  const take = (count: number, from: number) => {
    for (let index = from; index < from + count; index++) {
      expect(pool.address(index)).toBe(addressOf(index))
      pool.passed(index)
    }
  }
  return { pool, derived, wanted, asked, take }
}

liveTest("an address is derived once, also when addresses are taken faster than a refill derives them", function* () {
  const { derived, pool, take, wanted } = observedPool()
  pool.startAt(0)
  const refill = yield* Effect.fork(pool.refill)
  for (let turn = 0; turn < 20; turn++) {
    take(200, turn * 200)
    yield* eventLoopTurn
  }
  yield* Fiber.join(refill)
  expect(Math.max(...derived.values())).toBe(1)
  yield* pool.refill
  // And the first of the thread's once more, to compare it.
  expect(derived.size).toBe(4001)

  const before = wanted.addresses
  for (let index = 4000; index < 4501; index++) pool.passed(index)
  expect(wanted.addresses).toBe(before + 1)
})

it("addresses that were asked about are not derived again when they are taken", () => {
  const { derived, pool } = observedPool()
  pool.startAt(7)
  const unvetted = pool.unvetted()
  expect(unvetted.map(({ index }) => index).slice(0, 2)).toEqual([7, 8])
  expect(pool.address(7)).toBe(addressOf(7))
  expect(derived.get(7)).toBe(1)
})

test("a refill soon after the last one runs on the thread, without the addresses taken meanwhile", function* () {
  const { asked, derived, pool, take } = observedPool((range) =>
    Effect.zipRight(
      Effect.sync(() => take(10, 600)),
      byThread(range)
    )
  )
  pool.startAt(0)
  yield* pool.refill
  expect(asked).toEqual([])
  take(600, 0)
  yield* TestClock.adjust("4 seconds")
  yield* pool.refill
  expect(asked).toEqual([{ from: 600, count: 1000 }])
  // Those that were taken meanwhile; and the first of the thread's is compared.
  expect(derived.size).toBe(610)
  take(990, 610)
  expect(derived.size).toBe(610)

  yield* TestClock.adjust("1 minute")
  yield* pool.refill
  expect(asked).toHaveLength(1)
  // Few again: not a burst.
  expect(derived.size).toBe(610 + 256)
})

test("addresses of another wallet are never handed out, whatever the thread says", function* () {
  const { pool, take } = observedPool(({ count }) => Effect.succeed(Array.from({ length: count }, () => "theirs")))
  pool.startAt(0)
  yield* pool.refill
  take(600, 0)
  expect(Exit.isFailure(yield* Effect.exit(pool.refill))).toBe(true)
  take(1000, 600)
})

test("without a thread a burst's refill runs on the main thread", function* () {
  const { asked, derived, pool, take } = observedPool(() => Effect.fail(new NoThread({ cause: "none" })))
  pool.startAt(0)
  yield* pool.refill
  take(600, 0)
  yield* pool.refill
  expect(asked).toHaveLength(1)
  expect(derived.size).toBe(1600)
})

it("vets more when few are vetted ahead, and continues after addresses with a history", () => {
  const { pool, take, wanted } = observedPool()
  const range = () => pool.unvetted().map(({ index }) => index)
  pool.startAt(0)
  expect([range()[0], range().length]).toEqual([0, 200])
  pool.vettedTo(200)
  expect(range()).toEqual([])
  const before = wanted.vetting
  take(100, 0)
  expect(wanted.vetting).toBe(before)
  take(1, 100)
  expect(wanted.vetting).toBe(before + 1)
  pool.skip(250)
  expect([range()[0], range().at(-1)]).toEqual([200, 450])
  expect(pool.unvetted(440).map(({ index }) => index)).toEqual(Array.from({ length: 11 }, (_, i) => 440 + i))
})

it("uncorroborated histories advance a chain's look-ahead five times at most, corroborated ones however far", () => {
  const { pool } = observedPool()
  pool.startAt(0)
  const farApart = [199, 399, 599, 799, 999, 1199]
  expect(farApart.filter((index) => pool.skipUncorroborated(index, "base"))).toEqual(farApart.slice(0, 5))
  expect([pool.hasHistory(999), pool.hasHistory(1199)]).toEqual([true, false])
  // Each chain for itself, and among indexes that are in sight anyway as many as are reported.
  expect(pool.skipUncorroborated(1199, "optimism")).toBe(true)
  expect(pool.skipUncorroborated(500, "base")).toBe(true)
  pool.skip(5000)
  expect(pool.unvetted(5001).map(({ index }) => index)).toHaveLength(200)
})

const wallet = hdWallet(testXpub)
const range = (from: number, count: number) => ({ external: wallet.external, from, count })
const addresses = (from: number, count: number) => Array.from({ length: count }, (_, i) => wallet.address(from + i))

liveTest("the bundle's thread derives the wallet's addresses, one range after another", function* () {
  const derive = yield* derivingThread(pathToFileURL(built("chunks/deriver.js")))
  const warnings: Array<Error> = []
  process.on("warning", (warning) => warnings.push(warning))
  expect(yield* derive(range(0, 20))).toEqual(addresses(0, 20))
  for (let time = 0; time < 20; time++) yield* derive(range(0, 1))
  expect(yield* derive(range(2_000_000_000, 3))).toEqual(addresses(2_000_000_000, 3))
  // Node's word for listeners that were left behind.
  expect(warnings).toEqual([])
})

liveTest("a thread that cannot start, or has ended, is a failure at once", function* () {
  const derive = yield* derivingThread(pathToFileURL(built("chunks/nothing.js")))
  for (let time = 0; time < 2; time++) {
    const error = yield* Effect.flip(derive(range(0, 1)))
    expect(error).toBeInstanceOf(NoThread)
  }
})
