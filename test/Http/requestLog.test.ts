import { expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { AccountId, ApiKeyId } from "../../src/Domain/Ids.ts"
import { RequestLog } from "../../src/Http/RequestLog.ts"
import * as RequestLogRepo from "../../src/Http/RequestLogRepo.ts"
import { Reader } from "../../src/Sql.ts"
import { Metrics } from "../../src/Telemetry/Metrics.ts"
import { counted } from "../lib/prometheus.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { inTransaction, refusingWriter, rows, tempStore } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"

const shop = { account: AccountId.make("shop"), mode: "test" as const }
const key = ApiKeyId.make(`key_${"k".repeat(22)}`)

const request = (n: number, over: Partial<RequestLogRepo.LoggedRequest> = {}): RequestLogRepo.LoggedRequest => ({
  ...shop,
  ...{ id: `req_${n}`, at: n, key, method: "GET", path: "/v1/payments", status: 200, durationMicros: 900 },
  ...{ errorCode: null, errorMessage: null, request: null },
  ...over
})

const stored = Effect.map(rows<{ n: number }>("SELECT count(*) AS n FROM requests"), ([row]) => row?.n ?? 0)

let isFull = false
const test = scopedTest(
  RequestLog.layer.pipe(
    Layer.provideMerge(
      Layer.provideMerge(
        refusingWriter(() => isFull),
        tempStore
      )
    ),
    Layer.provideMerge(Metrics.layer)
  )
)

const dropped = Effect.flatMap(Metrics, ({ requestsNotLogged }) => counted(requestsNotLogged))

/** Lets the worker store what was noted; the writer's acknowledgement takes turns of the event loop, not time. */
const secondLater = Effect.gen(function* () {
  yield* TestClock.adjust("1 second")
  yield* inTransaction(Effect.void)
})

test("logged requests are stored once a second, in order", function* () {
  const { note, run } = yield* RequestLog
  yield* Effect.fork(run)
  for (let n = 1; n <= 250; n++) note(() => request(n))
  expect(yield* stored).toBe(0)
  yield* secondLater
  while ((yield* stored) < 250) yield* inTransaction(Effect.void)
  const listed = yield* RequestLogRepo.list(yield* Reader, shop, { isRefused: false }, 3)
  expect(listed.map(({ id }) => id)).toEqual(["req_250", "req_249", "req_248"])
  note(() => request(251))
  yield* secondLater
  while ((yield* stored) < 251) yield* inTransaction(Effect.void)
})

test("beyond a thousand in a second the rest is counted and dropped, without building the rows", function* () {
  const { note, run } = yield* RequestLog
  let made = 0
  for (let n = 1; n <= 1_500; n++) {
    note(() => {
      made++
      return request(n)
    })
  }
  expect([made, yield* dropped]).toEqual([1_000, 500])
  yield* Effect.fork(run)
  yield* secondLater
  while ((yield* stored) < 1_000) yield* inTransaction(Effect.void)
  note(() => request(1_501))
  yield* secondLater
  while ((yield* stored) < 1_001) yield* inTransaction(Effect.void)
})

test("while the store is full rows are dropped and counted, and not buffered", function* () {
  const { note, run } = yield* RequestLog
  yield* Effect.fork(run)
  isFull = true
  note(() => request(1))
  yield* TestClock.adjust("1 second")
  while ((yield* dropped) !== 1) yield* Effect.yieldNow()
  isFull = false
  note(() => request(2))
  yield* secondLater
  while ((yield* stored) < 1) yield* inTransaction(Effect.void)
  expect((yield* rows<{ id: string }>("SELECT id FROM requests")).map(({ id }) => id)).toEqual(["req_2"])
})

test("rows are deleted by age, a bounded step at a time", function* () {
  yield* inTransaction(RequestLogRepo.insert(Array.from({ length: 10 }, (_, n) => request(n))))
  expect(yield* inTransaction(RequestLogRepo.forget(3, 2))).toBe(true)
  expect(yield* inTransaction(RequestLogRepo.forget(3, 2))).toBe(false)
  expect(yield* stored).toBe(7)
})

test("beyond the total limit, only an account with more than a fair share loses rows, the oldest", function* () {
  const other = { account: AccountId.make("other"), mode: "live" as const }
  yield* inTransaction(RequestLogRepo.insert(Array.from({ length: 3 }, (_, n) => request(n, other))))
  yield* inTransaction(RequestLogRepo.insert(Array.from({ length: 20 }, (_, n) => request(n))))
  const reader = yield* Reader
  expect(yield* RequestLogRepo.beyondShare(reader, 23)).toEqual([])
  const beyond = yield* RequestLogRepo.beyondShare(reader, 10)
  expect(beyond).toEqual([{ owner: shop, excess: 13 }])
  for (const { excess, owner } of beyond) yield* inTransaction(RequestLogRepo.forgetOldest(owner, excess))
  expect(yield* rows("SELECT account_id, count(*) AS n, min(at) AS first FROM requests GROUP BY 1 ORDER BY 1")).toEqual(
    [
      { account_id: "other", n: 3, first: 0 },
      { account_id: "shop", n: 7, first: 13 }
    ]
  )
})

it.each([
  [[], 10, 10],
  [[5, 5], 10, 10],
  [[3, 20], 10, 7],
  [[20, 20, 1], 10, 4],
  [[100, 100], 0, 0]
])("of owners with %j rows and %i for all, each may keep %i", (counts, keep, share) => {
  expect(RequestLogRepo.fairShare(counts, keep)).toBe(share)
  const kept = counts.reduce((sum, count) => sum + Math.min(count, share), 0)
  expect(kept).toBeLessThanOrEqual(keep)
})

test("every list is read by an index, without sorting", function* () {
  const reader = yield* Reader
  const steps: Array<string> = []
  const db = explained(reader, reader, steps)
  for (const filter of [
    { isRefused: false },
    { isRefused: true },
    { isRefused: false, key: "key_1" },
    { isRefused: true, key: "key_1" }
  ]) {
    yield* RequestLogRepo.list(db, shop, filter, 50, 1_000)
  }
  yield* RequestLogRepo.byId(db, shop, "req_1")
  yield* RequestLogRepo.beyondShare(db, -1)
  expect(steps.flatMap((step) => /INDEX (\w+)/.exec(step)?.[1] ?? [])).toEqual([
    ...["requests_owner", "requests_refused", "requests_key", "requests_key_refused", "requests_id"],
    "requests_owner"
  ])
})
