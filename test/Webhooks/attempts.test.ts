import { expect, it } from "@effect/vitest"
import { Reader } from "../../src/Sql.ts"
import { recordAttempts } from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import * as LogRepo from "../../src/Webhooks/queue/DeliveryLogRepo.ts"
import { inTransaction } from "../lib/store.ts"
import { attempts } from "../lib/webhooks.ts"
import { a, idOf, onStore, publishMany } from "./endpoints.ts"

/** Stores an attempt of the first delivery, as one of the schedule or one that someone asked for. */
const record = (bodyStart: string, made: number, isRedelivery = false) => {
  const times = { startedAt: 0, endedAt: 1 }
  const outcome = { status: 500, address: "x".repeat(500), bodyStart }
  return inTransaction(recordAttempts([{ sequence: 1, attempts: made, isRedelivery, ...times, ...outcome }], 1, 1e9))
}

it.scoped(
  "the beginning of a response is cut between characters, stored once, and shown with every attempt that had it",
  () =>
    onStore(function* () {
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
    })
)

it.scoped(
  "of many redeliveries the first attempt, the last ten and what they refer to are kept, and all are counted",
  () =>
    onStore(function* () {
      yield* publishMany(1, a)
      for (let i = 1; i <= 6; i++) yield* record("failed", i)
      for (let i = 7; i <= 40; i++) yield* record(i % 2 === 0 ? "even" : `odd ${i}`, 6, true)
      const numbers = (yield* attempts).map(({ number }) => number)
      expect(numbers).toEqual([1, 8, ...Array.from({ length: 10 }, (_, i) => 31 + i)])
      const shown = yield* LogRepo.byId(yield* Reader, yield* idOf(1))
      expect(shown?.made).toBe(40)
      expect(shown?.attempts.map(({ bodyStart }) => bodyStart).slice(-3)).toEqual(["even", "odd 39", "even"])
    })
)
