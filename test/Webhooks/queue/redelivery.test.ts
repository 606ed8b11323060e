import { expect, it } from "@effect/vitest"
import { Deferred, Effect, TestClock } from "effect"
import { retryDelays } from "../../../src/Domain/DeliveryObject.ts"
import { Dispatcher } from "../../../src/Webhooks/Dispatcher.ts"
import * as RedeliveryRepo from "../../../src/Webhooks/queue/redelivery.ts"
import type { AttemptOutcome } from "../../../src/Webhooks/transport/DeliveryClient.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import {
  attempts,
  besideDispatcher,
  deliveries,
  dispatching,
  newPayment,
  publish,
  rememberingClient,
  stopped,
  untilRecorded,
  webhooksOn
} from "../../lib/webhooks.ts"
import { a, commit, minute, ok, publishMany, redeliver, refused, register, second, sendingTest } from "../endpoints.ts"

/** An event for an endpoint, that was tried once. */
const triedOnce = Effect.gen(function* () {
  yield* register(a)
  yield* publishMany(1)
  yield* untilRecorded(1)
})

sendingTest(
  "what was delivered is sent once more, the same id and bytes, and stays delivered when that fails",
  { [a]: ok },
  function* (client) {
    yield* triedOnce
    yield* TestClock.adjust("1 hour")
    client.answers[a] = refused
    expect(yield* redeliver(1)).toBe("ordered")
    yield* untilRecorded(2)
    yield* TestClock.adjust("3 days")
    const [first, again] = client.sent
    expect(client.sent).toHaveLength(2)
    expect(again?.headers["webhook-id"]).toBe(first?.headers["webhook-id"])
    expect(Buffer.compare(Buffer.from(again?.body ?? []), Buffer.from(first?.body ?? []))).toBe(0)
    expect(yield* deliveries).toMatchObject([
      { status: "delivered", attempts: 1, redeliveries: 1, next_attempt_at: null, done_at: 60 * minute }
    ])
    expect(yield* attempts).toMatchObject([
      { number: 1, redelivery: 0, status: 200 },
      { number: 2, redelivery: 1, status: 500, started_at: 60 * minute }
    ])
  }
)

sendingTest(
  "a redelivery that fails leaves the schedule as it was, and one that succeeds ends it",
  { [a]: refused },
  function* (client) {
    yield* triedOnce
    yield* TestClock.adjust("30 seconds")
    expect(yield* redeliver(1)).toBe("ordered")
    yield* untilRecorded(2)
    expect(yield* deliveries).toMatchObject([
      { status: "pending", attempts: 1, next_attempt_at: minute, resume_at: null }
    ])
    yield* TestClock.adjust("30 seconds")
    yield* untilRecorded(3)
    expect(yield* deliveries).toMatchObject([{ status: "pending", attempts: 2, next_attempt_at: 6 * minute }])
    client.answers[a] = ok
    yield* TestClock.adjust("1 minute")
    expect(yield* redeliver(1)).toBe("ordered")
    yield* untilRecorded(4)
    yield* TestClock.adjust("3 days")
    expect((yield* attempts).map((attempt) => [attempt.number, attempt.redelivery, attempt.started_at])).toEqual([
      [1, 0, 0],
      [2, 1, 30 * second],
      [3, 0, minute],
      [4, 1, 2 * minute]
    ])
    expect(yield* deliveries).toMatchObject([
      { status: "delivered", attempts: 2, redeliveries: 2, next_attempt_at: null, done_at: 2 * minute }
    ])
  }
)

sendingTest(
  "a failed delivery keeps its last attempt, and is delivered when a redelivery succeeds after that",
  { [a]: refused },
  function* (client) {
    yield* triedOnce
    for (const [retries, delay] of retryDelays.slice(0, 4).entries()) {
      yield* TestClock.adjust(delay)
      yield* untilRecorded(retries + 2)
    }
    const last = (yield* deliveries)[0]?.next_attempt_at
    yield* redeliver(1)
    yield* untilRecorded(6)
    expect(yield* deliveries).toMatchObject([{ status: "failed", attempts: 5, next_attempt_at: last }])
    yield* TestClock.adjust("24 hours")
    yield* untilRecorded(7)
    expect(yield* deliveries).toMatchObject([{ status: "failed", attempts: 6, next_attempt_at: null, done_at: last }])
    client.answers[a] = ok
    yield* redeliver(1)
    yield* untilRecorded(8)
    expect(yield* deliveries).toMatchObject([{ status: "delivered", attempts: 6, redeliveries: 2 }])
  }
)

clockTest("ordering a redelivery while one is due or under way, or of an unknown delivery, adds nothing", function* () {
  const gate = yield* Deferred.make<AttemptOutcome>()
  let answer: Effect.Effect<AttemptOutcome> = ok
  const client = rememberingClient(() => answer)
  yield* dispatching(client, function* () {
    yield* triedOnce
    answer = Deferred.await(gate)
    yield* TestClock.adjust("1 second")
    expect(yield* redeliver(1)).toBe("ordered")
    yield* TestClock.adjust("1 second")
    expect(client.sent).toHaveLength(2)
    expect(yield* redeliver(1)).toBe("due")
    // The event behind it has its first attempt ahead.
    const payment = yield* newPayment()
    yield* publish(payment, "pending", 2 * second)
    yield* publish(payment, "detecting", 2 * second)
    expect([yield* redeliver(2), yield* redeliver(3)]).toEqual(["due", "due"])
    const none = "dlv_aaaaaaaaaaaaaaaaaaaaaa_own"
    expect(yield* commit((now) => RedeliveryRepo.orderAgain(none, now))).toBeUndefined()
    yield* Deferred.succeed(gate, { status: 200 })
    yield* untilRecorded(4)
    yield* TestClock.adjust("3 days")
    expect(client.sent).toHaveLength(4)
  })
})

it.scoped("a redelivery before the first scheduled attempt releases the payment's next events", () => {
  const client = rememberingClient(() => ok)
  return dispatching(client, function* () {
    yield* register(a)
    const payment = yield* newPayment()
    // The clock was an hour ahead when they were queued.
    yield* publish(payment, "pending", 60 * minute)
    yield* publish(payment, "detecting", 60 * minute)
    expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["ordered", "due"])
    yield* untilRecorded(2)
    expect(yield* deliveries).toMatchObject([
      { status: "delivered", attempts: 0, redeliveries: 1 },
      { status: "delivered", attempts: 1, after_sequence: null }
    ])
  })
})

clockTest(
  "a redelivery that a stop cuts off is made after the next start, and the schedule goes on after it",
  function* () {
    const path = yield* temporaryDatabase
    let answer: Effect.Effect<AttemptOutcome> = refused
    const client = rememberingClient(() => answer)
    yield* Effect.gen(function* () {
      yield* register(a)
      yield* publishMany(1)
      const worker = yield* Effect.fork(Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.run))
      yield* untilRecorded(1)
      answer = Effect.never
      yield* redeliver(1)
      yield* TestClock.adjust("1 second")
      yield* stopped(worker)
      expect(yield* deliveries).toMatchObject([{ redelivery: 1, next_attempt_at: 0, resume_at: minute }])
    }).pipe(Effect.provide(webhooksOn(path, client.layer)))
    answer = refused
    yield* besideDispatcher(
      Effect.gen(function* () {
        yield* untilRecorded(2)
        expect(yield* deliveries).toMatchObject([{ status: "pending", attempts: 1, next_attempt_at: minute }])
      })
    ).pipe(Effect.provide(webhooksOn(path, client.layer)))
  }
)
