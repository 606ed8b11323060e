import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { AddressPool } from "../../../src/Payments/addresses/AddressPool.ts"
import { eventLoopTurn } from "../../../src/Sql/eventLoopTurn.ts"

const addressOf = (index: number) => `address ${index}`

/** A pool whose wallet counts how often each address is derived, and which tells what it asks others for. */
const observedPool = () => {
  const derived = new Map<number, number>()
  const wanted = { addresses: 0, vetting: 0 }
  const wallet = {
    fingerprint: "wallet",
    address: (index: number) => {
      derived.set(index, (derived.get(index) ?? 0) + 1)
      return addressOf(index)
    }
  }
  const pool = new AddressPool(wallet, "test", 200, (what) => {
    wanted[what] += 1
  })
  const take = (count: number, from: number) => {
    for (let index = from; index < from + count; index++) {
      expect(pool.address(index)).toBe(addressOf(index))
      pool.passed(index)
    }
  }
  return { pool, derived, wanted, take }
}

it.live("an address is derived once, also when addresses are taken faster than a refill derives them", () =>
  Effect.gen(function* () {
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
    expect(derived.size).toBe(5000)
    expect(Math.max(...derived.values())).toBe(1)

    const before = wanted.addresses
    for (let index = 4000; index < 4501; index++) pool.passed(index)
    expect(wanted.addresses).toBe(before + 1)
  })
)

it("addresses that were asked about are not derived again when they are taken", () => {
  const { derived, pool } = observedPool()
  pool.startAt(7)
  const unvetted = pool.unvetted()
  expect(unvetted.map(({ index }) => index).slice(0, 2)).toEqual([7, 8])
  expect(pool.address(7)).toBe(addressOf(7))
  expect(derived.get(7)).toBe(1)
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
