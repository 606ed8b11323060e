import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { type Db, Reader, StoreUnavailable, Writer } from "../../../src/Sql.ts"
import type { Attempt } from "../../../src/Webhooks/queue/DeliveriesRepo.ts"
import { DueQueue } from "../../../src/Webhooks/queue/DueQueue.ts"
import type { Slot, SlotLimits } from "../../../src/Webhooks/queue/slots.ts"
import { execute, rows } from "../../lib/store.ts"
import { neighbour, newPayment, publish } from "../../lib/webhooks.ts"
import { a, b, c, minute, publishMany, storeTest } from "../endpoints.ts"

const queueOf = (limits: SlotLimits, reader?: Db) =>
  Effect.gen(function* () {
    const db = reader ?? (yield* Reader)
    return new DueQueue(limits, db, yield* Writer, 1e9)
  })

const urlsOf = (slots: ReadonlyArray<Slot>) => slots.map(({ delivery }) => delivery.url)

/** The attempt of a slot, which failed at once. */
const failed = ({ delivery: { sequence } }: Slot, made: number): Attempt => ({
  sequence,
  attempts: made,
  status: 500,
  isRedelivery: false,
  isRetried: true,
  startedAt: 0,
  endedAt: 0
})

storeTest("what was begun when the store cannot be read is not lost, nor is what was to be read", function* () {
  for (const url of [a, b]) yield* publishMany(1, url)
  const reader = yield* Reader
  let read = 0
  const failing: Db = {
    ...reader,
    get: (sql, params) =>
      sql.includes("JOIN events") && ++read === 2
        ? new StoreUnavailable({ code: "SQLITE_IOERR", message: "unreadable" })
        : reader.get(sql, params)
  }
  const queue = yield* queueOf({ concurrency: 8, perLane: 2 }, failing)
  expect(yield* Effect.flip(queue.step)).toMatchObject({ _tag: "StoreUnavailable" })
  expect(urlsOf((yield* queue.step).slots)).toEqual([a, b])
})

storeTest("targets that the store lists as due too early hide no other, and their places are corrected", function* () {
  for (let i = 0; i < 3; i++) yield* publish(yield* newPayment(`https://early${i}.example/`), "pending", 1_000)
  // They wait for a retry.
  yield* execute("UPDATE deliveries SET attempts = 1")
  yield* execute("UPDATE lanes SET next_at = 0")
  yield* publish(yield* newPayment(c), "pending", 1)
  yield* TestClock.adjust(1)
  const queue = yield* queueOf({ concurrency: 1, perLane: 1 })
  const steps = yield* Effect.replicateEffect(queue.step, 9)
  expect(urlsOf(steps.flatMap(({ slots }) => slots))).toEqual([c])
  expect(yield* rows("SELECT next_at FROM lanes ORDER BY next_at")).toEqual(
    [1, 1_000, 1_000, 1_000].map((at) => ({ next_at: at }))
  )
})

storeTest("the next step is at the earliest retry of those that one commit stores", function* () {
  for (const url of [a, b]) yield* publishMany(1, url)
  const queue = yield* queueOf({ concurrency: 8, perLane: 2 })
  const [first, second] = (yield* queue.step).slots
  if (first === undefined || second === undefined) return expect.unreachable()
  queue.end(first, failed(first, 1))
  queue.end(second, failed(second, 2))
  expect((yield* queue.step).nextAt).toBe(minute)
})

storeTest("slots that another account gives back are for targets that were beyond an account's own", function* () {
  const queue = yield* queueOf({ concurrency: 4, perLane: 1 })
  const busy = Array.from({ length: 4 }, (_, i) => `https://busy${i}.example/`)
  const answered = Effect.gen(function* () {
    const { slots } = yield* queue.step
    for (const slot of slots) queue.end(slot, { ...failed(slot, 1), status: 200 })
    return slots.length
  })
  for (const url of busy) yield* publishMany(1, url, neighbour)
  yield* Effect.repeat(answered, { until: (count) => count === 0 })
  for (const url of busy) yield* publishMany(1, url, neighbour)
  queue.wake()
  const theirs = (yield* queue.step).slots
  expect(theirs).toHaveLength(4)
  for (const url of [a, b, c]) yield* publishMany(1, url)
  queue.wake()
  expect(urlsOf((yield* queue.step).slots)).toEqual([a])
  for (const slot of theirs) queue.end(slot, { ...failed(slot, 1), status: 200 })
  // Half of the slots are for targets that have not answered yet.
  expect(urlsOf((yield* queue.step).slots)).toEqual([b])
})
