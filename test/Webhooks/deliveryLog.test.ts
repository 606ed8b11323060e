import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { AttemptOutcome } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { collected, type Logged } from "../lib/logs.ts"
import { dispatching, untilRecorded } from "../lib/webhooks.ts"
import { a, hour, idOf, minute, ok, publishMany, refused, register, scripted } from "./endpoints.ts"

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
