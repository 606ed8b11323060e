import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { makePrices } from "../../src/Quotes/Prices.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { scopedTest } from "../lib/scopedTest.ts"

const test = scopedTest(Workers.layer)

const stuckFor = (seconds: number) => ({ ready: false, reason: `a tick has not ended for ${seconds} seconds` })

describe("a worker", () => {
  test("is not ready while a tick takes more than three of its intervals, and is ready again with its end", function* () {
    const workers = yield* Workers
    const end = yield* Deferred.make<void>()
    yield* Effect.forkScoped(workers.worker("slow", "30 seconds")(Deferred.await(end)))
    workers.worker("idle", "1 second")
    yield* TestClock.adjust("90 seconds")
    expect(yield* workers.health).toEqual([
      { name: "idle", ready: true },
      { name: "slow", ready: true }
    ])
    yield* TestClock.adjust("1 second")
    expect(yield* workers.health).toEqual([
      { name: "idle", ready: true },
      { name: "slow", ...stuckFor(91) }
    ])
    yield* Deferred.succeed(end, undefined)
    yield* TestClock.adjust(0)
    expect(yield* workers.health).toContainEqual({ name: "slow", ready: true })
  })

  test("has twenty seconds for a tick, however often it ticks", function* () {
    const workers = yield* Workers
    const tick = workers.worker("hasty", "1 second")
    yield* Effect.forkScoped(tick(Effect.never))
    yield* TestClock.adjust("20 seconds")
    // Another loop of it goes on.
    yield* tick(Effect.void)
    expect(yield* workers.health).toEqual([{ name: "hasty", ready: true }])
    yield* TestClock.adjust("1 second")
    expect(yield* workers.health).toEqual([{ name: "hasty", ...stuckFor(21) }])
  })

  test("is ready when its ticks fail or are given up: they have ended", function* () {
    const workers = yield* Workers
    const tick = workers.worker("failing", "1 second")
    yield* Effect.ignore(tick(Effect.fail("no")))
    const given = yield* Effect.fork(tick(Effect.never))
    yield* Effect.yieldNow()
    yield* Fiber.interrupt(given)
    yield* TestClock.adjust("1 hour")
    expect(yield* workers.health).toEqual([{ name: "failing", ready: true }])
  })
})

test("prices whose source hangs are not ready, while those of another one are read", function* () {
  const workers = yield* Workers
  const read = Effect.succeed({ points: [], refused: [] })
  const prices = yield* makePrices([
    { name: "stuck", kind: "http", read: Effect.never },
    { name: "live", kind: "http", read }
  ])
  yield* Effect.forkScoped(prices.run)
  yield* TestClock.adjust("90 seconds")
  expect(yield* workers.health).toEqual([{ name: "prices", ready: true }])
  yield* TestClock.adjust("1 second")
  expect(yield* workers.health).toEqual([{ name: "prices", ...stuckFor(91) }])
})
