import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Reader } from "../../src/Sql.ts"
import { recordAttempts } from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import * as LogRepo from "../../src/Webhooks/queue/DeliveryLogRepo.ts"
import * as LanesRepo from "../../src/Webhooks/queue/LanesRepo.ts"
import * as RedeliveryRepo from "../../src/Webhooks/queue/redelivery.ts"
import type { AttemptOutcome } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { collected, type Logged } from "../lib/logs.ts"
import { execute, inTransaction } from "../lib/store.ts"
import { attempts, dispatching, merchant, neighbour, newPayment, publish, untilRecorded } from "../lib/webhooks.ts"
import {
  a,
  addFailed,
  hour,
  idOf,
  minute,
  ok,
  publishMany,
  refused,
  register,
  scripted,
  storeTest,
  watchedStore
} from "./endpoints.ts"

/** Stores an attempt of the first delivery, as one of the schedule or one that someone asked for. */
const record = (bodyStart: string, made: number, isRedelivery = false) => {
  const times = { isRetried: true, startedAt: 0, endedAt: 1 }
  const outcome = { status: 500, address: "x".repeat(500), bodyStart }
  return inTransaction(recordAttempts([{ sequence: 1, attempts: made, isRedelivery, ...times, ...outcome }], 1, 1e9))
}

storeTest(
  "the beginning of a response is cut between characters, stored once, and shown with every attempt that had it",
  function* () {
    yield* publishMany(1, a)
    const body = `x${"é".repeat(500)}`
    yield* record(body, 1)
    yield* record(body, 2)
    yield* record("other", 3)
    yield* record(body, 4)
    const kept = `x${"é".repeat(255)}`
    expect((yield* attempts).map((row) => row.body_start)).toEqual([kept, null, "other", null])
    expect((yield* attempts)[0]?.address).toHaveLength(128)
    const shown = yield* LogRepo.byId(yield* Reader, yield* idOf(1))
    expect(shown?.attempts.map(({ bodyStart }) => bodyStart)).toEqual([kept, kept, "other", kept])
  }
)

storeTest(
  "of many redeliveries the first attempt, the last ten and what they refer to are kept, and all are counted",
  function* () {
    yield* publishMany(1, a)
    for (let i = 1; i <= 6; i++) yield* record("failed", i)
    for (let i = 7; i <= 40; i++) yield* record(i % 2 === 0 ? "even" : `odd ${i}`, 6, true)
    const numbers = (yield* attempts).map(({ number }) => number)
    expect(numbers).toEqual([1, 8, ...Array.from({ length: 10 }, (_, i) => 31 + i)])
    const shown = yield* LogRepo.byId(yield* Reader, yield* idOf(1))
    expect(shown?.made).toBe(40)
    expect(shown?.attempts.map(({ bodyStart }) => bodyStart).slice(-3)).toEqual(["even", "odd 39", "even"])
  }
)

/** The lines above debug level that report deliveries. */
const logged = (lines: ReadonlyArray<Logged>) =>
  lines.filter(({ level, message }) => level !== "DEBUG" && message.startsWith("a webhook"))

it.scoped("the log reports a delivery's first failure and its recovery, with its ids and the response", () => {
  let answer: Effect.Effect<AttemptOutcome> = refused
  const { lines, logger } = collected()
  return dispatching(scripted({ [a]: Effect.suspend(() => answer) }), function* () {
    const { id } = yield* register(a)
    yield* publishMany(1)
    yield* untilRecorded(1)
    yield* TestClock.adjust(minute)
    yield* untilRecorded(2)
    answer = ok
    yield* TestClock.adjust(5 * minute)
    yield* untilRecorded(3)
    const about = { delivery: yield* idOf(1), endpoint: id, host: "a.example" }
    expect(logged(lines)).toEqual([
      {
        level: "WARN",
        message: "a webhook attempt failed: it is retried",
        annotations: { ...about, attempts: 1, result: 500, service: "webhooks" }
      },
      {
        level: "INFO",
        message: "a webhook was delivered after failed attempts",
        annotations: { ...about, attempts: 3, result: 200, service: "webhooks" }
      }
    ])
  }).pipe(Effect.provide(logger))
})

it.scoped("a dead endpoint with a long queue fills no log, and what is left out is counted", () => {
  const { lines, logger } = collected()
  return dispatching(scripted({ [a]: refused }), function* () {
    yield* register(a)
    yield* publishMany(50)
    yield* untilRecorded(50)
    expect(logged(lines)).toHaveLength(6)
    // The second and third attempts are not logged.
    yield* TestClock.adjust(minute)
    yield* untilRecorded(100)
    yield* TestClock.adjust(5 * minute)
    yield* untilRecorded(150)
    expect(logged(lines)).toHaveLength(6)
    yield* TestClock.adjust(0.5 * hour)
    yield* untilRecorded(200)
    yield* TestClock.adjust(2 * hour)
    yield* untilRecorded(250)
    expect(logged(lines)).toHaveLength(12)
    expect(logged(lines)[6]).toMatchObject({
      message: "a webhook delivery has failed: one attempt is left, 24 hours later",
      annotations: { attempts: 5, omitted: 44 }
    })
  }).pipe(Effect.provide(logger))
})

storeTest("a target's next deliveries are found by its index, whatever else is due or waits", function* () {
  const endpoint = yield* register(a)
  yield* publish(yield* newPayment(), "pending")
  yield* addFailed(endpoint.id, 50)
  // Many retries that are not due hide no redelivery, and many redeliveries no retry.
  yield* execute(
    `UPDATE deliveries SET status = iif(sequence % 2 = 1, status, 'pending'), redelivery = sequence % 2, done_at = NULL,
         next_attempt_at = iif(sequence % 2 = 1, 1, 1000) WHERE sequence > 1`
  )
  const { db, steps: plans, watched } = yield* watchedStore
  const headOf = (isRedelivery: boolean, limit: number) =>
    Effect.map(LanesRepo.head(db, endpoint.id, isRedelivery, limit), (places) =>
      places.map(({ sequence, nextAttemptAt }) => [sequence, nextAttemptAt])
    )
  expect(yield* headOf(false, 3)).toEqual([
    [1, 0],
    [2, 1_000],
    [4, 1_000]
  ])
  expect(yield* headOf(true, 2)).toEqual([
    [3, 1],
    [5, 1]
  ])
  expect(yield* LanesRepo.backlog(db, 1)).toEqual({ due: 26, oldestDueMillis: 1 })
  yield* inTransaction(watched(LanesRepo.endTurn(endpoint.id, false, 0)))
  const steps = plans.filter((step) => step.includes("deliveries") || step.includes("TEMP B-TREE"))
  for (const step of steps) {
    expect(step).toMatch(/^SEARCH (d|deliveries) USING (COVERING )?INDEX deliveries_due \(target=\? AND redelivery=\?/)
  }
  expect(steps.length).toBeGreaterThan(6)
})

it.scoped("a new event goes before redeliveries, however many of them wait", () => {
  const client = scripted({})
  return dispatching({ ...client, webhooks: { concurrency: 1, concurrencyPerEndpoint: 1 } }, function* () {
    const { id } = yield* register(a)
    yield* publishMany(1)
    yield* untilRecorded(1)
    yield* addFailed(id, 50)
    yield* execute("UPDATE deliveries SET redelivery = 1, done_at = NULL, next_attempt_at = 0 WHERE sequence > 1")
    yield* publishMany(1)
    yield* untilRecorded(52)
    // All redeliveries are of the first event.
    const [first, ...ids] = client.sent.map(({ headers }) => headers["webhook-id"])
    expect(ids.findIndex((id) => id !== first)).toBeLessThan(2)
  })
})

storeTest("lists and redeliveries find their rows by an index, in its order", function* () {
  const { id: endpoint } = yield* register(a)
  const payment = yield* newPayment()
  yield* publish(payment, "pending")
  const { db, steps: plans, watched } = yield* watchedStore
  const selection = { owner: merchant, endpoint: undefined, status: "pending" as const, since: 0, until: 1 }
  yield* LogRepo.list(db, [selection], 20)
  yield* LogRepo.list(db, [{ ...selection, endpoint }], 20)
  yield* LogRepo.list(db, [{ ...selection, status: "failing" }], 20, { createdAt: 1, sequence: 9 })
  yield* LogRepo.list(db, [{ ...selection, endpoint, status: "failing" }], 20)
  yield* LogRepo.byId(db, yield* idOf(1))
  const first = { createdAt: 0, sequence: 0 }
  yield* inTransaction(watched(RedeliveryRepo.redeliverSome(selection, first, 20, 1)))
  yield* inTransaction(watched(RedeliveryRepo.redeliverSome({ ...selection, endpoint }, undefined, 20, 1)))
  yield* inTransaction(watched(RedeliveryRepo.orderAgain(yield* idOf(1), 1)))
  expect(plans.filter((step) => /SCAN (?!json_each)|TEMP B-TREE/.test(step))).toEqual([])
  // The few of one payment are sorted.
  yield* LogRepo.list(db, [{ ...selection, payment: payment.id, endpoint }], 20)
  yield* LogRepo.ofPayment(db, payment.id)
  expect(plans.filter((step) => /SCAN (?!json_each)/.test(step))).toEqual([])
  for (const index of [
    "deliveries_list",
    "deliveries_list_endpoint",
    "deliveries_failing",
    "deliveries_failing_endpoint",
    "deliveries_event"
  ]) {
    expect(plans.some((step) => step.includes(`INDEX ${index} `))).toBe(true)
  }
})

storeTest("due deliveries are found account by account, past all the lanes of each", function* () {
  for (let i = 0; i < 3; i++) yield* publish(yield* newPayment(`https://hole${i}.example/`, neighbour), "pending", 1)
  yield* publish(yield* newPayment(a), "pending", 2)
  const { db, steps: plans } = yield* watchedStore
  expect(yield* LanesRepo.dueAccounts(db, 0)).toEqual([])
  expect(yield* LanesRepo.dueAccounts(db, 1)).toEqual([neighbour.account])
  expect([...(yield* LanesRepo.dueAccounts(db, 2))].sort()).toEqual([merchant.account, neighbour.account])
  expect(yield* LanesRepo.dueOf(db, merchant.account, false, 2, 9)).toEqual([
    { target: "https://a.example default/test", slow: false }
  ])
  expect(yield* LanesRepo.dueOf(db, neighbour.account, false, 1, 2)).toHaveLength(2)
  expect([yield* LanesRepo.firstAfter(db, 0), yield* LanesRepo.firstAfter(db, 1)]).toEqual([1, 2])
  expect(yield* LanesRepo.firstAfter(db, 2)).toBeUndefined()
  const steps = plans.filter((step) => step.includes("lanes") || step.includes("TEMP B-TREE"))
  // The look for the first account of all takes the first of its index, too.
  for (const step of steps) expect(step).toMatch(/^SEARCH lanes USING (COVERING )?INDEX lanes_(account|next)/)
  expect(steps.length).toBeGreaterThan(9)
})
