import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { AccountId } from "../../src/Domain/Ids.ts"
import { TooManyEndpoints } from "../../src/Domain/Webhook.ts"
import { Reader } from "../../src/Sql.ts"
import { recordAttempts } from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import { releaseEndpoint } from "../../src/Webhooks/queue/OwnUrlRepo.ts"
import { defaultSecrets } from "../../src/Webhooks/SigningKeys.ts"
import { TargetRefused } from "../../src/Webhooks/transport/TargetGuard.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, rows, temporaryDatabase } from "../lib/store.ts"
import { deliveries, dispatching, FullStore, merchant, newPayment, publish, untilRecorded } from "../lib/webhooks.ts"
import {
  a,
  addFailed,
  allEvents,
  publishMany,
  refused,
  register,
  removeEndpoint,
  scripted,
  secret,
  sendingNothing,
  storeTest
} from "./endpoints.ts"

storeTest("an endpoint is listed only for its owner, and its secret is stored sealed", function* () {
  const webhooks = yield* Webhooks
  const reader = yield* Reader
  const endpoint = yield* register("https://shop.example/a", ["payment.confirmed"])
  expect(endpoint).toEqual({
    id: endpoint.id,
    ...merchant,
    url: "https://shop.example/a",
    events: ["payment.confirmed"],
    createdAt: 0
  })
  expect(yield* webhooks.list(merchant)).toEqual([endpoint])
  expect(yield* webhooks.list({ ...merchant, mode: "live" })).toEqual([])
  expect(yield* webhooks.list({ ...merchant, account: AccountId.make("other") })).toEqual([])
  const row = yield* reader.get<{ secret: Uint8Array }>("SELECT secret FROM endpoints")
  expect(Buffer.from(row?.secret ?? []).includes(secret)).toBe(false)
})

storeTest("a target is checked by its text: registering a name does not reveal what it resolves to", function* () {
  const webhooks = yield* Webhooks
  expect(yield* Effect.flip(register("https://10.0.0.7/"))).toBeInstanceOf(TargetRefused)
  expect(yield* Effect.flip(register("http://shop.example/"))).toBeInstanceOf(TargetRefused)
  yield* register("https://not-yet.example/")
  yield* register("https://inside.example/")
  yield* webhooks.checkTarget("https://inside.example/")
  expect(yield* Effect.flip(webhooks.checkTarget("https://10.0.0.7/"))).toBeInstanceOf(TargetRefused)
  expect(yield* webhooks.list(merchant)).toHaveLength(2)
})

storeTest("50 endpoints in each mode, also when more are asked for at once", function* () {
  const webhooks = yield* Webhooks
  const outcomes = yield* Effect.forEach(
    Array.from({ length: 60 }, (_, i) => `https://shop.example/${i}`),
    (url) => Effect.either(register(url)),
    { concurrency: "unbounded" }
  )
  const refused = outcomes.flatMap((outcome) => (outcome._tag === "Left" ? [outcome.left] : []))
  expect(refused).toEqual(Array.from({ length: 10 }, () => TooManyEndpoints.of(50)))
  const [first] = yield* webhooks.list(merchant)
  expect(yield* removeEndpoint(first?.id ?? "")).toBe(0)
  yield* register("https://shop.example/again")
  yield* register("https://shop.example/live", allEvents, { ...merchant, mode: "live" })
})

storeTest("an event is queued once for each target, and the next one waits for it", function* () {
  const a = yield* register("https://shop.example/a")
  const b = yield* register("https://shop.example/b", ["payment.detecting"])
  const payment = yield* newPayment("https://other.example/own")
  yield* publish(payment, "pending", 1)
  yield* publish(payment, "detecting", 2)
  yield* publish(payment, "confirmed", 3)
  const rows = yield* deliveries
  const shape = rows.map((row) => [row.target, row.next_attempt_at, row.after_sequence])
  const own = "https://other.example default/test"
  expect(shape).toEqual([
    [a.id, 1, null],
    [own, 1, null],
    [a.id, null, 1],
    [b.id, 2, null],
    [own, null, 2],
    [a.id, null, 3],
    [own, null, 5]
  ])
  expect(rows.map((row) => row.own_url)).toEqual([0, 1, 0, 0, 1, 0, 1])
})

storeTest("the same payment's own URL keeps its order when it becomes an endpoint's", function* () {
  const payment = yield* newPayment("https://shop.example/own")
  yield* publish(payment, "pending")
  const endpoint = yield* register("https://shop.example/own")
  yield* publish(payment, "detecting")
  expect((yield* deliveries).map((row) => [row.endpoint_id, row.after_sequence])).toEqual([
    [null, null],
    [endpoint.id, 1]
  ])
})

storeTest("the default secret is made once for each account and mode", function* () {
  const asked = yield* Effect.replicateEffect(defaultSecrets(merchant), 10, {
    concurrency: "unbounded"
  })
  const values = new Set(asked.map(({ current }) => Redacted.value(current)))
  expect(values.size).toBe(1)
  const [value = ""] = values
  expect(value).toMatch(/^whsec_/)
  expect(Buffer.from(value.slice(6), "base64")).toHaveLength(32)
  expect(Redacted.value((yield* defaultSecrets(merchant)).current)).toBe(value)
  expect(Redacted.value((yield* defaultSecrets({ ...merchant, mode: "live" })).current)).not.toBe(value)
})

storeTest("deleting an endpoint cancels its queue, except what is owed to a payment's own URL", function* () {
  const webhooks = yield* Webhooks
  const endpoint = yield* register("https://shop.example/a")
  const plain = yield* newPayment()
  const own = yield* newPayment("https://shop.example:443/a")
  for (const payment of [plain, own]) {
    yield* publish(payment, "pending", 1)
    yield* publish(payment, "detecting", 2)
  }
  expect(yield* removeEndpoint(endpoint.id, { ...merchant, mode: "live" })).toBeUndefined()
  expect(yield* removeEndpoint(endpoint.id)).toBe(2)
  expect(yield* removeEndpoint(endpoint.id)).toBeUndefined()
  expect(yield* webhooks.list(merchant)).toEqual([])
  expect(
    (yield* deliveries).map((row) => [row.status, row.target, row.endpoint_id, row.next_attempt_at, row.after_sequence])
  ).toEqual([
    ["cancelled", endpoint.id, endpoint.id, null, null],
    ["cancelled", endpoint.id, endpoint.id, null, null],
    ["pending", "https://shop.example default/test", null, 1, null],
    ["pending", "https://shop.example default/test", null, null, 3]
  ])
  const lane = rows("SELECT next_at FROM lanes WHERE target = 'https://shop.example default/test'")
  expect(yield* lane).toEqual([{ next_at: 1 }])
  yield* publish(plain, "confirmed", 3)
  expect(yield* deliveries).toHaveLength(4)
})

clockTest("a deletion that was cut short is finished at the next start", function* () {
  const path = yield* temporaryDatabase
  yield* Effect.gen(function* () {
    const endpoint = yield* register("https://shop.example/a")
    const payment = yield* newPayment()
    yield* publish(payment, "pending")
    yield* publish(payment, "detecting")
    yield* execute("UPDATE endpoints SET deleted_at = 5 WHERE id = ?", [endpoint.id])
  }).pipe(Effect.provide(sendingNothing(path)))
  const statuses = yield* Effect.provide(deliveries, sendingNothing(path))
  expect(statuses.map((row) => row.status)).toEqual(["cancelled", "cancelled"])
})

storeTest("deleting an endpoint with a long queue takes it in pieces", function* () {
  const endpoint = yield* register("https://shop.example/a")
  yield* publishMany(1)
  yield* addFailed(endpoint.id, 2500)
  yield* execute("UPDATE deliveries SET status = 'pending', attempts = 1, next_attempt_at = 1, done_at = NULL")
  yield* removeEndpoint(endpoint.id)
  expect(new Set((yield* deliveries).map((row) => row.status))).toEqual(new Set(["cancelled"]))
})

storeTest(
  "deleting an endpoint cancels all, where those that wait and those that are due fill a piece together",
  function* () {
    const endpoint = yield* register("https://shop.example/a")
    yield* publishMany(1)
    yield* addFailed(endpoint.id, 1600)
    yield* execute("UPDATE deliveries SET status = 'pending', attempts = 1, next_attempt_at = 1, done_at = NULL")
    yield* execute(
      "UPDATE deliveries SET attempts = 0, next_attempt_at = NULL, after_sequence = 1 WHERE sequence % 2 = 0"
    )
    expect(yield* inTransaction(releaseEndpoint(endpoint.id, 801))).toEqual({ cancelled: 801, isDone: false })
    expect(yield* removeEndpoint(endpoint.id)).toBe(800)
    expect(new Set((yield* deliveries).map((row) => row.status))).toEqual(new Set(["cancelled"]))
  }
)

storeTest(
  "a delivery to a payment's own URL becomes due when a deletion cancels the delivery it waits for",
  function* () {
    const url = "https://shop.example/own"
    yield* register(url, ["payment.created"])
    const both = yield* register(url, ["payment.created", "payment.confirmed"])
    const payment = yield* newPayment(url)
    yield* publish(payment, "pending", 1)
    const [, second] = yield* deliveries
    const attempt = { sequence: second?.sequence ?? 0, attempts: 1, isRedelivery: false, startedAt: 1, endedAt: 1 }
    yield* inTransaction(recordAttempts([{ ...attempt, isRetried: true, status: 200 }], 1, 1e9))
    yield* publish(payment, "confirmed", 2)
    // The second event goes to the second endpoint as the payment's own URL, behind the first event's delivery there.
    const waiting = (yield* deliveries).find((row) => row.after_sequence !== null)
    expect(waiting).toMatchObject({ endpoint_id: both.id, own_url: 1 })
    yield* removeEndpoint(both.id)
    const after = (yield* deliveries).find((row) => row.sequence === waiting?.sequence)
    expect(after).toMatchObject({
      endpoint_id: null,
      status: "pending",
      after_sequence: null,
      next_attempt_at: 0
    })
  }
)

storeTest(
  "what has failed five times, with a sixth attempt ahead, is cancelled and counted like what is pending",
  function* () {
    const { id } = yield* register("https://shop.example/hook")
    yield* publish(yield* newPayment(), "pending")
    yield* execute("UPDATE deliveries SET status = 'failed', attempts = 5, next_attempt_at = 86400000")
    expect(yield* removeEndpoint(id)).toBe(1)
    expect(yield* deliveries).toMatchObject([{ status: "cancelled", next_attempt_at: null }])
  }
)

it.scoped("a deletion that a full disk cut short is finished by the next one", () => {
  const client = scripted({ [a]: refused })
  let writes = 0
  let isFull = false
  const store = {
    get isFull() {
      return isFull && ++writes > 1
    },
    refused: 0
  }
  return dispatching(client, function* () {
    const webhooks = yield* Webhooks
    const { id } = yield* register(a)
    yield* publish(yield* newPayment(), "pending")
    yield* untilRecorded(1)
    isFull = true
    expect(yield* Effect.exit(removeEndpoint(id))).toMatchObject({ _tag: "Failure" })
    isFull = false
    expect(yield* webhooks.list(merchant)).toEqual([])
    expect(yield* removeEndpoint(id, { ...merchant, mode: "live" })).toBeUndefined()
    expect(yield* removeEndpoint(id)).toBe(1)
    expect(yield* removeEndpoint(id)).toBeUndefined()
    expect(yield* deliveries).toMatchObject([{ status: "cancelled", next_attempt_at: null }])
  }).pipe(Effect.provideService(FullStore, store))
})
