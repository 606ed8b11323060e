import { expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Layer, TestClock } from "effect"
import { exposition } from "../../src/Admin/metrics.ts"
import { retryDelays } from "../../src/Domain/DeliveryObject.ts"
import { Metrics } from "../../src/Telemetry/Metrics.ts"
import { Dispatcher, outcomeClass } from "../../src/Webhooks/Dispatcher.ts"
import type { AttemptOutcome } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { readScrape } from "../lib/prometheus.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { temporaryDatabase } from "../lib/store.ts"
import {
  attempts,
  besideDispatcher,
  deliveries,
  dispatching,
  FullStore,
  newPayment,
  publish,
  SlowStore,
  stopped,
  stubClient,
  untilRecorded,
  webhooksOn
} from "../lib/webhooks.ts"
import {
  a,
  b,
  hangs,
  hour,
  minute,
  ok,
  publishMany,
  refused,
  register,
  removeEndpoint,
  scripted,
  second,
  sendingTest
} from "./endpoints.ts"

it.scoped("six attempts, each timed from the end of the one before; failed after the fifth, and counted once", () =>
  dispatching(scripted({ [a]: hangs }), function* () {
    yield* register(a)
    yield* publishMany(1)
    const statuses: Array<string | undefined> = []
    const failures: Array<number | undefined> = []
    const { registry } = yield* Metrics
    for (const [made, delay] of [Duration.zero, ...retryDelays].entries()) {
      yield* TestClock.adjust(Duration.sum(delay, 30 * second - 1))
      expect(yield* attempts).toHaveLength(made)
      yield* TestClock.adjust(1)
      yield* untilRecorded(made + 1)
      statuses.push((yield* deliveries)[0]?.status)
      const counted = readScrape(yield* exposition([], registry))
      failures.push(counted.value("tilld_webhook_deliveries_failed_total"))
      expect(counted.value("tilld_webhook_attempts_total", { outcome: "timeout" })).toBe(made + 1)
      expect(counted.value("tilld_webhook_attempt_duration_seconds_sum")).toBe((made + 1) * 30)
      expect(counted.value("tilld_webhook_attempt_duration_seconds_bucket", { le: "20" })).toBe(0)
    }
    const starts = [0, minute, 6 * minute, 36 * minute, 2 * hour + 36 * minute, 26 * hour + 36 * minute]
    expect((yield* attempts).map((attempt) => attempt.started_at)).toEqual(
      starts.map((start, i) => start + i * 30 * second)
    )
    expect((yield* attempts).map((attempt) => attempt.error)).toEqual(Array(6).fill("timeout"))
    expect(statuses).toEqual(["pending", "pending", "pending", "pending", "failed", "failed"])
    expect(failures).toEqual([0, 0, 0, 0, 1, 1])
    yield* TestClock.adjust("30 days")
    expect(yield* attempts).toHaveLength(6)
  }).pipe(Effect.provide(Metrics.layer))
)

sendingTest(
  "a delivery whose sixth attempt succeeds is delivered, although it had failed",
  { [a]: refused },
  function* (client) {
    yield* register(a)
    yield* publishMany(1)
    for (const [made, delay] of [Duration.zero, ...retryDelays.slice(0, 4)].entries()) {
      yield* TestClock.adjust(delay)
      yield* untilRecorded(made + 1)
    }
    expect(yield* deliveries).toMatchObject([
      { status: "failed", attempts: 5, next_attempt_at: 26 * hour + 36 * minute }
    ])
    client.answers[a] = ok
    yield* TestClock.adjust("24 hours")
    yield* untilRecorded(6)
    expect(yield* deliveries).toMatchObject([{ status: "delivered", attempts: 6, next_attempt_at: null }])
    expect((yield* attempts)[0]).toMatchObject({ status: 500, error: null, body_start: "no" })
  }
)

clockTest(
  "one target's first attempts keep the order of a payment's events; retries delay no other delivery",
  function* () {
    const gate = yield* Deferred.make<AttemptOutcome>()
    const client = scripted({ [a]: Deferred.await(gate) })
    yield* dispatching(client, function* () {
      yield* register(a)
      yield* register(b)
      const payment = yield* newPayment()
      yield* publish(payment, "pending")
      yield* publish(payment, "detecting")
      yield* publish(payment, "confirmed")
      // The other target is not held up, and gets them one after the other.
      yield* untilRecorded(3)
      expect([client.to(a), client.to(b)]).toEqual([1, 3])
      const kinds = client.sent.filter(({ url }) => url === b).map(({ body }) => JSON.parse(body.toString()).event)
      expect(kinds).toEqual(["payment.created", "payment.detecting", "payment.confirmed"])
      // A failed attempt has ended too: the next event goes, and the retry comes a minute later.
      yield* Deferred.succeed(gate, { status: 500 })
      yield* untilRecorded(6)
      expect(client.to(a)).toBe(3)
      yield* TestClock.adjust("1 minute")
      yield* untilRecorded(9)
      expect(client.to(a)).toBe(6)
    })
  }
)

it.scoped(
  "an attempt that ended before the clock was set back is stored when others end, however many are under way",
  () => {
    let answer: Effect.Effect<AttemptOutcome> = ok
    const client = scripted({ [b]: Effect.suspend(() => answer) })
    return dispatching(client, function* () {
      yield* TestClock.setTime(hour)
      yield* publish(yield* newPayment(b), "pending", hour)
      yield* untilRecorded(1)
      answer = Effect.never
      // As many as make attempts that end wait for each other.
      for (let i = 0; i < 8; i++) yield* publish(yield* newPayment(b), "pending", hour)
      yield* publish(yield* newPayment(a), "pending", hour)
      while (client.sent.length < 10) yield* Effect.yieldNow()
      yield* TestClock.setTime(0)
      yield* publish(yield* newPayment(a), "pending", 0)
      yield* untilRecorded(2)
      expect((yield* attempts).map((attempt) => attempt.ended_at)).toEqual([hour, hour])
    })
  }
)

clockTest("a stop gives attempts under way five seconds, and stores what has ended by then", function* () {
  const client = scripted({ [a]: Effect.delay(ok, "4 seconds") })
  yield* Effect.gen(function* () {
    yield* register(a)
    yield* publishMany(1)
    const worker = yield* Effect.fork(Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.run))
    yield* client.until(1, a)
    yield* stopped(worker)
    expect(yield* deliveries).toMatchObject([{ status: "delivered", attempts: 1 }])
  }).pipe(Effect.provide(webhooksOn(yield* temporaryDatabase, client.layer)))
})

clockTest(
  "an attempt that a stop cuts off does not count, and the next start sends the same id and bytes",
  function* () {
    const path = yield* temporaryDatabase
    const cut = scripted({ [a]: Effect.never })
    yield* Effect.gen(function* () {
      yield* register(a)
      yield* publishMany(1)
      const worker = yield* Effect.fork(Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.run))
      yield* TestClock.adjust("1 second")
      expect(cut.to(a)).toBe(1)
      yield* stopped(worker)
      expect(yield* attempts).toEqual([])
    }).pipe(Effect.provide(webhooksOn(path, cut.layer)))

    const again = scripted({})
    yield* besideDispatcher(untilRecorded(1)).pipe(
      Effect.zipRight(deliveries),
      Effect.map((rows) => expect(rows).toMatchObject([{ status: "delivered", attempts: 1 }])),
      Effect.provide(webhooksOn(path, again.layer))
    )
    const [first] = cut.sent
    const [repeated] = again.sent
    expect(repeated?.headers["webhook-id"]).toBe(first?.headers["webhook-id"])
    expect(Buffer.compare(Buffer.from(repeated?.body ?? []), Buffer.from(first?.body ?? []))).toBe(0)
  }
)

it.scoped(
  "the result of an attempt that meets a full store is stored once there is room, and nothing is sent again",
  () => {
    const store = { isFull: false, refused: 0 }
    const fillsUp = Effect.sync(() => {
      store.isFull = true
      return { status: 200 }
    })
    const client = scripted({ [a]: fillsUp })
    return dispatching(client, function* () {
      yield* register(a)
      yield* publishMany(1)
      yield* TestClock.adjust("1 minute")
      expect(store.refused).toBeGreaterThan(1)
      expect(yield* deliveries).toMatchObject([{ status: "pending", attempts: 0 }])
      store.isFull = false
      yield* TestClock.adjust("5 seconds")
      yield* untilRecorded(1)
      expect(yield* deliveries).toMatchObject([{ status: "delivered", attempts: 1 }])
      expect(client.to(a)).toBe(1)
    }).pipe(Effect.provide(Layer.succeed(FullStore, store)))
  }
)

clockTest("an endpoint that is deleted during an attempt gets no other", function* () {
  const gate = yield* Deferred.make<AttemptOutcome>()
  const client = scripted({ [a]: Deferred.await(gate) })
  yield* dispatching(client, function* () {
    const endpoint = yield* register(a)
    const payment = yield* newPayment()
    yield* publish(payment, "pending")
    yield* publish(payment, "detecting")
    yield* TestClock.adjust("1 second")
    expect(client.to(a)).toBe(1)
    yield* removeEndpoint(endpoint.id)
    yield* Deferred.succeed(gate, { status: 500 })
    yield* untilRecorded(1)
    yield* TestClock.adjust("2 days")
    expect((yield* deliveries).map((row) => [row.status, row.attempts])).toEqual([
      ["cancelled", 1],
      ["cancelled", 0]
    ])
    expect(client.to(a)).toBe(1)
  })
})

clockTest("a defect in an attempt ends the worker", function* () {
  const client = stubClient(() => Effect.die("bug"))
  const exit = yield* Effect.gen(function* () {
    yield* register(a)
    yield* publishMany(1)
    return yield* Effect.exit((yield* Dispatcher).run)
  }).pipe(Effect.provide(webhooksOn(yield* temporaryDatabase, client)))
  expect(Exit.isFailure(exit) && exit.cause.toString()).toContain("bug")
})

it("an outcome has one of a few classes, whatever the receiver responds", () => {
  const outcomes = [
    { status: 204 },
    { status: 418 },
    { status: 999 },
    { error: "name not resolved" },
    { error: "?" },
    {}
  ]
  expect(outcomes.map(outcomeClass)).toEqual(["delivered", "http_4xx", "other", "name_not_resolved", "other", "other"])
})

// The dispatcher is stopped when the test is over: a stop that hangs is a time-out.
it.scoped.each([0, 1, 2, 3])(
  "a stop %i turns after attempts ended is not held up by the wait for their retries",
  (turns) => {
    const client = scripted({ [a]: refused, [b]: refused })
    return dispatching(client, function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      yield* untilRecorded(1)
      yield* TestClock.adjust("1 second")
      yield* register(b)
      yield* publish(yield* newPayment(), "pending", 1_000)
      yield* untilRecorded(3)
      for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow()
    })
  }
)

const busy = Array.from({ length: 8 }, (_, i) => `https://busy${i}.example/hook`)

it.scoped("ended attempts are gathered for twice as long as the last commit took, from 5 to 100 ms", () => {
  const store = { takes: 0 }
  const client = scripted({ [a]: ok, ...Object.fromEntries(busy.map((url) => [url, hangs])) })
  return dispatching(client, function* () {
    for (const url of busy) yield* register(url, ["payment.confirmed"])
    yield* register(a, ["payment.created"])
    yield* publish(yield* newPayment(), "confirmed")
    yield* client.until(busy.length, ...busy)
    let made = 0
    /** An attempt ends, and is stored `gathered` milliseconds later by a commit that takes so long. */
    const attempt = (gathered: number, takes: number) =>
      Effect.gen(function* () {
        store.takes = 0
        yield* publish(yield* newPayment(), "pending")
        yield* client.until(++made, a)
        store.takes = takes
        yield* TestClock.adjust(gathered + takes - 1)
        expect(yield* attempts).toHaveLength(made - 1)
        yield* TestClock.adjust(1)
        yield* untilRecorded(made)
      })
    yield* attempt(5, 20)
    yield* attempt(40, 70)
    yield* attempt(100, 1)
    yield* attempt(5, 0)
  }).pipe(Effect.provideService(SlowStore, store))
})
