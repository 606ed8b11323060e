import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { eventLoopTurn } from "../../src/eventLoopTurn.ts"
import { AddressPool } from "../../src/Payments/AddressPool.ts"

/** A pool whose wallet counts how often each address is derived, and how often addresses were asked for. */
const countingPool = () => {
  const derived = new Map<number, number>()
  const wanted = { addresses: 0, vetting: 0 }
  const wallet = {
    fingerprint: "wallet",
    address: (index: number) => {
      derived.set(index, (derived.get(index) ?? 0) + 1)
      return `address ${index}`
    }
  }
  const pool = new AddressPool(wallet, "test", (what) => {
    wanted[what] += 1
  })
  return { pool, derived, wanted }
}

it.live("an address is derived once, also when they are taken faster than a refill goes", () =>
  Effect.gen(function* () {
    const { derived, pool, wanted } = countingPool()
    pool.startAt(0)
    const refill = yield* Effect.fork(pool.refill)
    const taken: Array<string> = []
    for (let turn = 0; turn < 20; turn++) {
      for (let i = 0; i < 200; i++) {
        const index = taken.length
        taken.push(pool.address(index))
        pool.passed(index)
      }
      yield* eventLoopTurn
    }
    yield* Fiber.join(refill)
    expect(taken[3999]).toBe("address 3999")
    expect(Math.max(...derived.values())).toBe(1)
    expect(derived.size).toBe(4000 + 1000)

    const before = wanted.addresses
    for (let i = 4000; i < 4501; i++) pool.passed(i)
    expect(wanted.addresses).toBe(before + 1)
  })
)

it("addresses that were asked about are not derived again when they are taken", () => {
  const { derived, pool } = countingPool()
  pool.startAt(7)
  expect(
    pool
      .unvetted()
      .map(({ index }) => index)
      .slice(0, 2)
  ).toEqual([7, 8])
  expect(pool.address(7)).toBe("address 7")
  expect(derived.get(7)).toBe(1)
})
