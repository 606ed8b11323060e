import { expect } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, TestClock } from "effect"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import { replan } from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, temporaryDatabase } from "../lib/store.ts"
import {
  besideDispatcher,
  deliveries,
  newPayment,
  publish,
  rememberingClient,
  stopped,
  untilRecorded,
  webhooksOn
} from "../lib/webhooks.ts"
import {
  a,
  b,
  hour,
  minute,
  ok,
  redeliver,
  refused,
  register,
  scripted,
  sendingTest,
  storeTest,
  watchedStore
} from "./endpoints.ts"

const month = 30 * 24 * hour

sendingTest(
  "a retry that was planned by a clock 30 days ahead is made in time once that is set back",
  { [a]: refused },
  function* () {
    yield* TestClock.setTime(month)
    yield* register(a)
    yield* publish(yield* newPayment(), "pending", month)
    yield* untilRecorded(1)
    yield* TestClock.setTime(hour)
    yield* publish(yield* newPayment(), "pending", hour)
    yield* untilRecorded(2)
    const planned = { attempts: 1, next_attempt_at: hour + minute }
    expect(yield* deliveries).toMatchObject([planned, planned])
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(4)
  }
)

clockTest("a target whose turn was put off by a clock 30 days ahead gets it at the next start", function* () {
  const path = yield* temporaryDatabase
  const client = scripted({})
  yield* Effect.gen(function* () {
    yield* register(a)
    yield* publish(yield* newPayment(), "pending")
    yield* execute("UPDATE lanes SET next_at = ?", [month])
    yield* besideDispatcher(untilRecorded(1))
  }).pipe(Effect.provide(webhooksOn(path, client.layer)))
  expect(client.to(a)).toBe(1)
})

clockTest(
  "a redelivery ordered by a clock 30 days ahead is made, and the schedule goes on in time after it",
  function* () {
    const path = yield* temporaryDatabase
    const client = scripted({ [a]: refused })
    yield* TestClock.setTime(month)
    yield* Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending", month)
      yield* besideDispatcher(untilRecorded(1))
      yield* redeliver(1)
      expect(yield* deliveries).toMatchObject([{ redelivery: 1, resume_at: month + minute }])
    }).pipe(Effect.provide(webhooksOn(path, client.layer)))
    yield* TestClock.setTime(hour)
    yield* Effect.gen(function* () {
      yield* untilRecorded(2)
      expect(yield* deliveries).toMatchObject([{ attempts: 1, redeliveries: 1, next_attempt_at: hour + minute }])
    }).pipe(besideDispatcher, Effect.provide(webhooksOn(path, client.layer)))
  }
)

storeTest(
  "attempts scheduled too far ahead are found by index, lane by lane, and no other one is changed",
  function* () {
    yield* register(a)
    yield* publish(yield* newPayment(), "pending", 1)
    const { steps, watched } = yield* watchedStore
    /** When the attempt is made at the time 10 that was planned for `nextAt`, after so many attempts. */
    const replanned = (made: number, nextAt: number) =>
      Effect.gen(function* () {
        yield* execute("UPDATE deliveries SET attempts = ?, next_attempt_at = ?", [made, nextAt])
        yield* inTransaction(watched(replan(10)))
        return (yield* deliveries)[0]?.next_attempt_at
      })
    expect(yield* replanned(0, 11)).toBe(10)
    expect(yield* replanned(0, 9)).toBe(9)
    expect(yield* replanned(1, 9 + minute)).toBe(9 + minute)
    expect(yield* replanned(1, 11 + minute)).toBe(10 + minute)
    expect(yield* replanned(4, 9 + 2 * hour)).toBe(9 + 2 * hour)
    expect(yield* replanned(5, 9 + 24 * hour)).toBe(9 + 24 * hour)
    expect(yield* replanned(5, month)).toBe(10 + 24 * hour)
    const found = steps.filter((step) => /^(SEARCH|SCAN) (d|deliveries)/.test(step))
    for (const step of found) expect(step).toMatch(/deliveries_due \(target=\? AND redelivery=\?|INTEGER PRIMARY KEY/)
    expect(found.length).toBeGreaterThan(7)
  }
)

clockTest("a retry of a target whose turn a clock 30 days ahead put off at a stop comes in time", function* () {
  const path = yield* temporaryDatabase
  const gate = yield* Deferred.make<void>()
  const begun = yield* Deferred.make<void>()
  let isAhead = false
  const client = rememberingClient(() =>
    isAhead ? Effect.zipRight(Deferred.succeed(begun, undefined), Effect.zipRight(Deferred.await(gate), ok)) : refused
  )
  const webhooks = webhooksOn(path, client.layer, { concurrencyPerEndpoint: 1 })
  yield* Effect.gen(function* () {
    yield* register(a)
    yield* publish(yield* newPayment(), "pending")
    yield* publish(yield* newPayment(), "pending")
    const { run } = yield* Dispatcher
    const worker = yield* Effect.forkDaemon(run)
    yield* untilRecorded(2)
    isAhead = true
    yield* TestClock.setTime(month)
    yield* Deferred.await(begun)
    const stop = yield* Effect.fork(Fiber.interrupt(worker))
    yield* Effect.yieldNow()
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(stop)
    expect(yield* deliveries).toContainEqual(expect.objectContaining({ attempts: 1, next_attempt_at: minute }))
  }).pipe(Effect.provide(webhooks))
  yield* TestClock.setTime(40_000)
  yield* Effect.gen(function* () {
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(4)
  }).pipe(besideDispatcher, Effect.provide(webhooks))
})

clockTest("a retry comes in time after the clock was set forward, whatever was waited for before", function* () {
  const path = yield* temporaryDatabase
  const client = scripted({ [a]: refused, [b]: refused })
  const clock = yield* Effect.clock
  let ahead = 0
  const setForward: Clock.Clock = Object.assign(Clock.make(), {
    sleep: clock.sleep.bind(clock),
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + ahead),
    currentTimeNanos: clock.currentTimeNanos
  })
  yield* Effect.gen(function* () {
    const { run } = yield* Dispatcher
    const worker = yield* Effect.forkDaemon(Effect.withClock(run, setForward))
    yield* publish(yield* newPayment(a), "pending")
    yield* untilRecorded(1)
    yield* TestClock.adjust("1 minute")
    // The next attempt would be at six minutes.
    yield* untilRecorded(2)
    ahead = hour
    yield* publish(yield* newPayment(b), "pending", hour + minute)
    yield* untilRecorded(4)
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(5)
    expect(client.to(b)).toBe(2)
    yield* stopped(worker)
  }).pipe(Effect.provide(webhooksOn(path, client.layer)))
})
