import { expect, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Queue, Redacted, TestClock } from "effect"
import type { Endpoint } from "../../../src/Domain/Webhook.ts"
import { eventLoopTurn } from "../../../src/lib/waiting.ts"
import { verifySignature } from "../../../src/Sandbox/Receiver.ts"
import type * as LogRepo from "../../../src/Webhooks/queue/DeliveryLogRepo.ts"
import * as RedeliveryRepo from "../../../src/Webhooks/queue/redelivery.ts"
import { defaultSecrets } from "../../../src/Webhooks/SigningKeys.ts"
import type { AttemptOutcome, DeliveryRequest } from "../../../src/Webhooks/transport/DeliveryClient.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { execute, temporaryDatabase } from "../../lib/store.ts"
import {
  besideDispatcher,
  deliveries,
  dispatching,
  merchant,
  newPayment,
  publish,
  rememberingClient,
  untilRecorded,
  webhooksOn
} from "../../lib/webhooks.ts"
import {
  a,
  addFailed,
  b,
  c,
  commit,
  idOf,
  minute,
  ok,
  publishMany,
  redeliver,
  refused,
  register,
  removeEndpoint,
  second,
  sendingTest,
  storeTest
} from "../endpoints.ts"

const failing = { owner: merchant, status: "failing", since: 0, until: 1_000 } as const

sendingTest(
  "a delivery cancelled by a deletion goes to another endpoint, as a new delivery of the same event",
  { [a]: refused },
  function* (client) {
    const gone = yield* register(a)
    yield* publish(yield* newPayment(), "pending")
    yield* untilRecorded(1)
    expect(yield* removeEndpoint(gone.id)).toBe(1)
    // By order an event goes to an endpoint that does not name its kind, too.
    const other = yield* register(b, ["payment.failed"])
    const id = yield* idOf(1)
    const ordered = yield* commit((now) => RedeliveryRepo.orderAgain(id, now, other))
    yield* untilRecorded(2)
    const [first, second] = client.sent
    expect([second?.url, second?.body, second?.headers["webhook-id"]]).toEqual([
      b,
      first?.body,
      first?.headers["webhook-id"]
    ])
    expect(yield* deliveries).toMatchObject([
      { endpoint_id: gone.id, status: "cancelled" },
      { id: ordered?.id, endpoint_id: other.id, status: "delivered", attempts: 1 }
    ])
    // Once more: the delivery that is there is used.
    expect(yield* commit((now) => RedeliveryRepo.orderAgain(id, now, other))).toEqual({ ...ordered, attemptsMade: 1 })
    yield* untilRecorded(3)
    expect((yield* deliveries)[1]).toMatchObject({ status: "delivered", attempts: 1, redeliveries: 1 })
  }
)

sendingTest("events that report no new status go only to endpoints that name their kind", {}, function* () {
  yield* register(a, ["payment.updated"])
  yield* publish(yield* newPayment(), "detecting", 0, "payment.updated")
  yield* untilRecorded(1)
  const [sent] = yield* deliveries
  const five = yield* register(b)
  const naming = yield* register(c, ["payment.updated"])
  const to = (other: Endpoint) => commit((now) => RedeliveryRepo.orderAgain(sent?.id ?? "", now, other))
  expect(yield* to(five)).toMatchObject({ result: "refused" })
  expect(yield* to(naming)).toMatchObject({ result: "ordered" })
  yield* untilRecorded(2)
  expect((yield* deliveries).map(({ endpoint_id }) => endpoint_id)).not.toContain(five.id)
})

sendingTest(
  "a range goes to another endpoint once, and those that are added are not part of it",
  { [a]: refused, [b]: refused },
  function* (client) {
    const { id: endpoint } = yield* register(a)
    for (let i = 0; i < 3; i++) yield* publish(yield* newPayment(), "pending")
    yield* untilRecorded(3)
    yield* TestClock.adjust("1 second")
    const other = yield* register(b)
    const selection = { owner: merchant, endpoint: undefined, status: "failing" as const, since: 0, until: 1_000 }
    const page = (after?: RedeliveryRepo.RedeliveryCursor) =>
      commit((now) => RedeliveryRepo.redeliverSome(selection, after, 2, now, other))
    const { next, ...counts } = yield* page()
    expect([counts, yield* page(next)]).toEqual([
      { ordered: 2, due: 0, refused: 0 },
      { ordered: 1, due: 0, refused: 0, next: undefined }
    ])
    yield* untilRecorded(6)
    expect(client.to(b)).toBe(3)
    expect((yield* deliveries).map((row) => row.endpoint_id)).toEqual([
      ...[endpoint, endpoint, endpoint],
      ...[other.id, other.id, other.id]
    ])
  }
)

clockTest("events of a payment go to another endpoint in their order", function* () {
  const gate = yield* Deferred.make<void>()
  let isHeld = false
  const kind = (body: Uint8Array): string => JSON.parse(Buffer.from(body).toString()).event
  const client = rememberingClient(({ body, url }) => {
    if (url === a) return refused
    return isHeld && kind(body) === "payment.created" ? Effect.zipRight(Deferred.await(gate), ok) : ok
  })
  yield* dispatching(client, function* () {
    const { id } = yield* register(a)
    const payment = yield* newPayment()
    for (const status of ["pending", "detecting", "confirmed"] as const) yield* publish(payment, status)
    yield* untilRecorded(3)
    const other = yield* register(b)
    // From then on several are sent there at once.
    yield* publish(yield* newPayment(), "pending")
    yield* untilRecorded(5)
    isHeld = true
    const selection = { ...failing, endpoint: id, payment: payment.id }
    yield* commit((now) => RedeliveryRepo.redeliverSome(selection, undefined, 10, now, other))
    const sent = () => client.sent.flatMap(({ body, url }) => (url === b ? [kind(body)] : [])).slice(1)
    yield* Effect.repeatN(eventLoopTurn, 50)
    expect(sent()).toEqual(["payment.created"])
    yield* Deferred.succeed(gate, undefined)
    yield* untilRecorded(8)
    expect(sent()).toEqual(["payment.created", "payment.detecting", "payment.confirmed"])
  })
})

sendingTest(
  "a range that is repeated sends nothing again that has arrived at the other endpoint",
  { [a]: refused },
  function* () {
    const { id } = yield* register(a)
    yield* publish(yield* newPayment(), "pending")
    yield* untilRecorded(1)
    const other = yield* register(b)
    const range = commit((now) => RedeliveryRepo.redeliverSome({ ...failing, endpoint: id }, undefined, 10, now, other))
    expect(yield* range).toMatchObject({ ordered: 1 })
    yield* untilRecorded(2)
    expect(yield* range).toMatchObject({ ordered: 0 })
  }
)

const isSignedWith = (request: DeliveryRequest | undefined, secret: string) => {
  const { body, headers } = request ?? expect.unreachable("nothing was sent")
  return verifySignature({ headers: Object.fromEntries(new Headers(headers)), body: Buffer.from(body) }, secret)
}

it.scoped("nothing is redelivered to a deleted endpoint, except events owed to a payment's own URL", () => {
  const client = rememberingClient(() => ok)
  return dispatching(client, function* () {
    const endpoint = yield* register(a)
    yield* publishMany(1)
    yield* publishMany(1, a)
    yield* untilRecorded(2)
    yield* TestClock.adjust("1 minute")
    yield* removeEndpoint(endpoint.id)
    expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["refused", "ordered"])
    yield* untilRecorded(3)
    expect(isSignedWith(client.sent[2], Redacted.value((yield* defaultSecrets(merchant)).current))).toBe(true)
    expect(yield* deliveries).toMatchObject([
      { endpoint_id: endpoint.id, status: "delivered" },
      { endpoint_id: null, target: "https://a.example default/test", status: "delivered", redeliveries: 1 }
    ])
  })
})

storeTest(
  "a deletion cancels redeliveries that were ordered to the endpoint; a delivered event stays delivered",
  function* () {
    const endpoint = yield* register(a)
    yield* publishMany(2)
    yield* execute("UPDATE deliveries SET attempts = 1, next_attempt_at = 60000")
    yield* execute("UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, done_at = 0 WHERE sequence = 1")
    expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["ordered", "ordered"])
    yield* removeEndpoint(endpoint.id)
    const now = yield* Clock.currentTimeMillis
    const rest = { redelivery: 0, resume_at: null, next_attempt_at: null, done_at: now }
    expect(yield* deliveries).toMatchObject([
      { status: "delivered", ...rest },
      { status: "cancelled", ...rest }
    ])
  }
)

storeTest("a range is ordered in parts, oldest first, and what is outside stays as it is", function* () {
  const [one, other] = [yield* register(a), yield* register(b)]
  yield* publish(yield* newPayment(), "pending", 50 * second)
  yield* addFailed(one.id, 100)
  yield* addFailed(other.id, 100)
  yield* TestClock.adjust("1 hour")
  const times = { since: 10 * second, until: 90 * second }
  const wanted = { owner: merchant, endpoint: one.id, status: "failed" as const, ...times }
  const run = (selection: LogRepo.Selection) =>
    Effect.gen(function* () {
      const parts: Array<number> = []
      let after: RedeliveryRepo.RedeliveryCursor | undefined
      do {
        const part = yield* commit((now) => RedeliveryRepo.redeliverSome(selection, after, 32, now))
        parts.push(part.ordered)
        after = part.next
      } while (after !== undefined)
      return parts
    })
  expect(yield* run(wanted)).toEqual([32, 32, 16])
  // The second time they are due already; the pending one of the event itself was never failed.
  expect(yield* run(wanted)).toEqual([0, 0, 0])
  const ordered = (yield* deliveries).filter((row) => row.redelivery === 1)
  expect(ordered.map((row) => row.sequence)).toEqual(Array.from({ length: 80 }, (_, i) => 13 + i))
  // Of the whole account: the rest of the first endpoint's, and all of the other's in this time.
  const all = { ...wanted, endpoint: undefined, since: 0 }
  expect((yield* run(all)).reduce((sum, part) => sum + part, 0)).toBe(10 + 90)
  expect(yield* run({ ...all, owner: { ...merchant, mode: "live" } })).toEqual([0])
})

clockTest("new events and retries go before a long range, and that goes out nevertheless", function* () {
  const path = yield* temporaryDatabase
  const count = 60
  const begun = yield* Queue.unbounded<void>()
  const answers = yield* Queue.unbounded<AttemptOutcome>()
  let answer: Effect.Effect<AttemptOutcome> = ok
  const client = rememberingClient(() => answer)
  yield* besideDispatcher(
    Effect.gen(function* () {
      yield* register(a)
      yield* publishMany(count)
      yield* untilRecorded(count)
      answer = refused
      yield* publishMany(1)
      yield* untilRecorded(count + 1)

      answer = Effect.zipRight(Queue.offer(begun, undefined), Queue.take(answers))
      const range = { owner: merchant, endpoint: undefined, status: "delivered" as const, since: 0, until: minute }
      const ordered = yield* commit((now) => RedeliveryRepo.redeliverSome(range, undefined, 2 * count, now))
      expect(ordered).toMatchObject({ ordered: count })
      yield* Queue.take(begun)
      yield* TestClock.adjust("1 minute")
      yield* publish(yield* newPayment(), "pending", minute)
      for (let more = count + 1; more > 0; more--) {
        yield* Queue.offer(answers, { status: 200 })
        yield* Queue.take(begun)
      }
      yield* Queue.offer(answers, { status: 200 })
      yield* untilRecorded(2 * count + 3)

      const rows = yield* deliveries
      const sent = client.sent
        .slice(count + 1)
        .map(({ headers }) => rows.findIndex((row) => row.event_id === headers["webhook-id"]) + 1)
      // One is on its way when they are due.
      const [retried, fresh] = [sent.indexOf(count + 1), sent.indexOf(count + 2)]
      expect(Math.max(retried, fresh)).toBe(2)
      expect(sent.toSorted((x, y) => x - y)).toEqual(Array.from({ length: count + 2 }, (_, n) => n + 1))
      expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(["delivered"]))
    })
  ).pipe(Effect.provide(webhooksOn(path, client.layer, { concurrencyPerEndpoint: 1 })))
})
