import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reader, Writer } from "../../src/Sql.ts"
import { recordAttempts } from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import * as LogRepo from "../../src/Webhooks/queue/DeliveryLogRepo.ts"
import { attempts, newPayment, publish } from "../lib/webhooks.ts"
import { a, onStore } from "./endpoints.ts"
import { idOf } from "./queue/redelivering.ts"

/** Stores an attempt of the first delivery, as one of the schedule or one that somebody asked for. */
const record = (bodyStart: string, attempt: number, isRedelivery = false, sequence = 1) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      recordAttempts(
        [
          {
            sequence,
            attempts: attempt,
            isRedelivery,
            startedAt: 0,
            endedAt: 1,
            status: 500,
            address: "x".repeat(500),
            bodyStart
          }
        ],
        1
      )
    )
  )

it.scoped(
  "what an answer began with is cut between characters, stored once, and shown with every attempt that had it",
  () =>
    onStore(
      Effect.gen(function* () {
        yield* publish(yield* newPayment(a), "pending")
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
      })
    )
)

it.scoped(
  "of many redeliveries the first attempt, the last ten and what they refer to are kept, and all are counted",
  () =>
    onStore(
      Effect.gen(function* () {
        yield* publish(yield* newPayment(a), "pending")
        for (let i = 1; i <= 6; i++) yield* record("failed", i)
        for (let i = 7; i <= 40; i++) yield* record(i % 2 === 0 ? "even" : `odd ${i}`, 6, true)
        const numbers = (yield* attempts).map(({ number }) => number)
        expect(numbers).toEqual([1, 8, ...Array.from({ length: 10 }, (_, i) => 31 + i)])
        const shown = yield* LogRepo.byId(yield* Reader, yield* idOf(1))
        expect(shown?.made).toBe(40)
        expect(shown?.attempts.map(({ bodyStart }) => bodyStart).slice(-3)).toEqual(["even", "odd 39", "even"])
      })
    )
)

it.scoped(
  "an attempt with an answer of 1 KB takes less than 750 bytes, and less than 300 when it is the same again",
  () =>
    onStore(
      Effect.gen(function* () {
        const reader = yield* Reader
        const size = Effect.map(
          reader.all<{ size: number }>("SELECT sum(pgsize) AS size FROM dbstat WHERE name = 'attempts'"),
          ([row]) => row?.size ?? 0
        )
        const count = 200
        for (let i = 0; i < count; i++) yield* publish(yield* newPayment(a), "pending")
        for (let i = 0; i < count; i++) yield* record(`${i} ${"x".repeat(1024)}`, 1, false, i + 1)
        const once = yield* size
        expect(once / count).toBeLessThan(750)
        for (let i = 0; i < count; i++) yield* record(`${i} ${"x".repeat(1024)}`, 2, false, i + 1)
        expect(((yield* size) - once) / count).toBeLessThan(300)
      })
    )
)
