import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Reader } from "../../src/Sql.ts"
import { recordAttempts } from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import * as LogRepo from "../../src/Webhooks/queue/DeliveryLogRepo.ts"
import type { AttemptOutcome } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { collected, type Logged } from "../lib/logs.ts"
import { inTransaction } from "../lib/store.ts"
import { attempts, dispatching, untilRecorded } from "../lib/webhooks.ts"
import { a, hour, idOf, minute, ok, publishMany, refused, register, scripted, storeTest } from "./endpoints.ts"

/** Stores an attempt of the first delivery, as one of the schedule or one that someone asked for. */
const record = (bodyStart: string, made: number, isRedelivery = false) => {
  const times = { startedAt: 0, endedAt: 1 }
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
