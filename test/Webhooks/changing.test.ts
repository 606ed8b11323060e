import { expect } from "@effect/vitest"
import { DateTime, Deferred, Duration, Effect, Redacted, TestClock } from "effect"
import { Webhook } from "standardwebhooks"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import * as RedeliveryRepo from "../../src/Webhooks/queue/redelivery.ts"
import { defaultSecrets, markOf } from "../../src/Webhooks/SigningKeys.ts"
import type { DeliveryRequest } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import {
  deliveries,
  dispatching,
  merchant,
  neighbour,
  newPayment,
  publish,
  rememberingClient,
  untilRecorded
} from "../lib/webhooks.ts"
import {
  a,
  b,
  c,
  changeEndpoint,
  commit,
  moreEvents,
  ok,
  redeliver,
  refused,
  register,
  removeEndpoint,
  scripted,
  secret,
  sendingTest,
  storeTest
} from "./endpoints.ts"

const next = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDAAAAAAAAAAA="
const third = "whsec_dGhpcyBpcyBhIHRoaXJkIHNlY3JldCBvZiAzMiBieXRlcw=="

const rotateTo = (id: string, to: string, overlap?: Duration.Duration) =>
  changeEndpoint(id, { secret: Redacted.make(to), overlap })

const isSignedWith = ({ body, headers }: DeliveryRequest, by: string) =>
  verifySignature({ headers: Object.fromEntries(new Headers(headers)), body: Buffer.from(body) }, by)

/** Of the secrets given, those that a Standard Webhooks receiver with it would accept the request by. */
const acceptedWith = ({ body, headers }: DeliveryRequest, ...secrets: ReadonlyArray<string>) => {
  // The library looks at the machine's clock: the signature is checked without its time.
  const { "webhook-id": id, "webhook-signature": signature = "", "webhook-timestamp": time } = headers
  return secrets.filter((each) => {
    const mine = new Webhook(each).sign(
      String(id),
      DateTime.toDateUtc(DateTime.unsafeMake(Number(time) * 1000)),
      Buffer.from(body).toString("utf8")
    )
    return signature.split(" ").includes(mine)
  })
}

sendingTest(
  "a delivery that waits for a retry goes to the new URL, signed with the new secret",
  { [a]: refused },
  function* (client) {
    const { id } = yield* register(a)
    const payment = yield* newPayment()
    yield* publish(payment, "pending")
    yield* publish(payment, "detecting")
    yield* untilRecorded(2)
    const changed = yield* changeEndpoint(id, { url: b, secret: Redacted.make(next), overlap: Duration.zero })
    expect(changed).toMatchObject({ id, url: b })
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(4)
    const later = client.sent.slice(2)
    expect(later.map(({ url }) => url)).toEqual([b, b])
    expect(later.map((request) => [isSignedWith(request, next), isSignedWith(request, secret)])).toEqual([
      [true, false],
      [true, false]
    ])
    expect(yield* deliveries).toMatchObject([
      { status: "delivered", url: b, attempts: 2 },
      { status: "delivered", url: b, attempts: 2 }
    ])
  }
)

sendingTest(
  "the former secret signs for the overlap, and the new one beside it where a header has room for both",
  {},
  function* (client) {
    const { id } = yield* register(a)
    yield* rotateTo(id, next, Duration.hours(1))
    yield* publish(yield* newPayment(), "pending")
    yield* untilRecorded(1)
    yield* TestClock.adjust("1 hour")
    yield* publish(yield* newPayment(), "pending", 3_600_000)
    yield* untilRecorded(2)
    const [during, after] = client.sent
    if (during === undefined || after === undefined) return expect.unreachable()
    expect([isSignedWith(during, secret), acceptedWith(during, secret, next)]).toEqual([true, [secret, next]])
    expect([isSignedWith(after, next), acceptedWith(after, secret, next)]).toEqual([true, [next]])
  }
)

storeTest(
  "during an overlap the same secret changes nothing, another is refused, and without an overlap it ends both",
  function* () {
    const { id } = yield* register(a)
    const reader = yield* Reader
    const row = reader.get<{ previous_until: number | null }>("SELECT previous_until FROM endpoints")
    yield* rotateTo(id, next)
    const day = 86_400_000
    yield* TestClock.adjust("1 hour")
    yield* rotateTo(id, next)
    expect(yield* row).toEqual({ previous_until: day })
    expect(yield* Effect.flip(rotateTo(id, third))).toMatchObject({ _tag: "RotationUnderWay", until: day })
    yield* rotateTo(id, third, Duration.zero)
    expect(yield* row).toEqual({ previous_until: null })
    yield* rotateTo(id, next)
    expect(yield* row).toEqual({ previous_until: day + 3_600_000 })
  }
)

storeTest("the new secret sent again without an overlap ends the overlap", function* () {
  const { id } = yield* register(a)
  yield* rotateTo(id, next)
  yield* rotateTo(id, next, Duration.zero)
  expect(yield* rows("SELECT previous_secret, previous_until FROM endpoints")).toEqual([
    { previous_secret: null, previous_until: null }
  ])
})

storeTest("a rotation that names the secret which it replaces is refused once another one is stored", function* () {
  const { id } = yield* register(a)
  const [stored] = yield* rows<{ secret: Uint8Array }>("SELECT secret FROM endpoints")
  const replaces = markOf(stored)
  const rotate = (to: string) => changeEndpoint(id, { secret: Redacted.make(to), overlap: Duration.zero, replaces })
  yield* rotate(next)
  const after = yield* rows("SELECT * FROM endpoints")
  expect(yield* Effect.flip(rotate(third))).toMatchObject({ _tag: "SecretReplaced" })
  expect(yield* rows("SELECT * FROM endpoints")).toEqual(after)
})

sendingTest(
  "a payment's own URL still gets its events when the endpoint of that URL moves, and when that is deleted",
  { [a]: refused, [b]: refused },
  function* (client) {
    const { id } = yield* register(a)
    yield* publish(yield* newPayment(a), "pending")
    yield* untilRecorded(1)
    yield* changeEndpoint(id, { url: b })
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(3)
    expect(client.sent.map(({ url }) => url)).toEqual([a, b, a])
    const own = Redacted.value((yield* defaultSecrets(merchant)).current)
    expect(client.sent.map((request) => isSignedWith(request, own))).toEqual([false, false, true])
    expect(yield* removeEndpoint(id)).toBe(1)
    expect(yield* deliveries).toMatchObject([
      { endpoint_id: id, url: b, status: "cancelled" },
      { endpoint_id: null, own_url: 1, url: a, status: "pending", attempts: 1 }
    ])
  }
)

sendingTest(
  "an endpoint that moves and is deleted before its next attempt leaves a payment's own URL its events, and its own cancelled",
  { [a]: refused },
  function* (client) {
    const { id } = yield* register(a)
    const payment = yield* newPayment(a)
    yield* publish(payment, "pending")
    yield* untilRecorded(1)
    yield* changeEndpoint(id, { url: b })
    const { id: successor } = yield* register(a)
    const [{ id: its } = { id: "" }] = yield* deliveries
    expect(yield* removeEndpoint(id)).toBe(1)
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(2)
    expect(client.sent.map(({ url }) => url)).toEqual([a, a])
    const [owed, cancelled] = yield* deliveries
    expect(owed).toMatchObject({ endpoint_id: successor, own_url: 1, url: a, attempts: 2 })
    expect(cancelled).toMatchObject({ id: its, endpoint_id: id, own_url: 0, url: b, status: "cancelled" })
    // It can be sent again elsewhere, as every cancelled one.
    const other = yield* register(c)
    expect(yield* commit((now) => RedeliveryRepo.orderAgain(its, now, other))).toMatchObject({ result: "ordered" })
    yield* untilRecorded(3)
    expect(client.sent.at(-1)?.url).toBe(c)
  }
)

storeTest(
  "a deletion counts what the endpoint would have got beside payments' own URLs, of each that it had",
  function* () {
    const { id } = yield* register(a)
    yield* publish(yield* newPayment(a), "pending")
    yield* changeEndpoint(id, { url: b })
    yield* publish(yield* newPayment(b), "pending")
    yield* changeEndpoint(id, { url: c })
    expect(yield* removeEndpoint(id)).toBe(2)
    expect((yield* deliveries).map(({ status }) => status).toSorted()).toEqual([
      ...["cancelled", "cancelled"],
      ...["pending", "pending"]
    ])
  }
)

sendingTest(
  "another endpoint with the former URL serves the payment's own, whose event it gets once",
  { [a]: refused },
  function* (client) {
    const { id } = yield* register(a)
    const twin = yield* register(a, moreEvents)
    yield* publish(yield* newPayment(a), "pending")
    yield* untilRecorded(2)
    yield* changeEndpoint(id, { url: c })
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(4)
    expect(client.sent.map(({ url }) => url).toSorted()).toEqual([a, a, a, c])
    const rows = yield* deliveries
    expect(rows).toHaveLength(2)
    expect(rows.find((row) => row.endpoint_id === id)).toMatchObject({ own_url: 0, url: c })
    expect(rows.find((row) => row.endpoint_id === twin.id)).toMatchObject({ own_url: 1, url: a })
  }
)

sendingTest(
  "endpoints that change their URLs leave a payment's own URL its event, also where one of them had it elsewhere",
  { [a]: refused },
  function* (client) {
    const { id } = yield* register(a)
    const other = yield* register(b)
    yield* publish(yield* newPayment(a), "pending")
    yield* untilRecorded(2)
    yield* changeEndpoint(id, { url: c })
    yield* changeEndpoint(other.id, { url: a })
    client.answers[a] = ok
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(4)
    expect(client.sent.map(({ url }) => url).toSorted()).toEqual([a, a, b, c])
    const ids = (yield* deliveries).map(({ id }) => id)
    expect([ids.length, new Set(ids).size]).toEqual([3, 3])
  }
)

sendingTest(
  "a deleted endpoint leaves a payment's own URL its event, though its place-taker had it elsewhere",
  { [a]: refused },
  function* (client) {
    const { id } = yield* register(a)
    const other = yield* register(b)
    yield* publish(yield* newPayment(a), "pending")
    yield* untilRecorded(2)
    yield* changeEndpoint(other.id, { url: a })
    client.answers[a] = ok
    expect(yield* removeEndpoint(id)).toBe(0)
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(3)
    expect(client.sent.map(({ url }) => url).toSorted()).toEqual([a, a, b])
  }
)

storeTest("new kinds of events count from the change on", function* () {
  const { id } = yield* register(a, ["payment.created"])
  const payment = yield* newPayment()
  yield* publish(payment, "detecting")
  yield* changeEndpoint(id, { events: ["payment.detecting", "payment.confirmed"] })
  yield* publish(payment, "pending")
  yield* publish(payment, "confirmed")
  const reader = yield* Reader
  const kinds = yield* reader.all("SELECT e.kind FROM deliveries AS d JOIN events AS e ON e.id = d.event_id")
  expect(kinds).toEqual([{ kind: "payment.confirmed" }])
})

storeTest("a change of what is not the owner's, or to a target that is refused, changes nothing", function* () {
  const { id } = yield* register(a)
  expect(yield* changeEndpoint(id, { url: b }, neighbour)).toBeUndefined()
  expect(yield* changeEndpoint(id, { url: b }, { ...merchant, mode: "live" })).toBeUndefined()
  expect(yield* changeEndpoint("wh_none", { url: b })).toBeUndefined()
  expect(yield* Effect.flip(changeEndpoint(id, { url: "https://127.0.0.1/" }))).toMatchObject({ _tag: "TargetRefused" })
  const webhooks = yield* Webhooks
  expect(yield* webhooks.list(merchant)).toMatchObject([{ id, url: a }])
  yield* removeEndpoint(id)
  expect(yield* changeEndpoint(id, { url: b })).toBeUndefined()
})

sendingTest("a change that is rolled back, for lack of room, signs nothing with its secret", {}, function* (client) {
  const { id } = yield* register(a)
  const writer = yield* Writer
  yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE accounts SET quota_bytes = 1")))
  expect(yield* Effect.flip(rotateTo(id, next, Duration.zero))).toMatchObject({ _tag: "QuotaExceeded" })
  yield* publish(yield* newPayment(), "pending")
  yield* untilRecorded(1)
  expect(client.sent.map((request) => [isSignedWith(request, secret), isSignedWith(request, next)])).toEqual([
    [true, false]
  ])
})

storeTest("usage follows a change", function* () {
  const { id } = yield* register(a)
  const reader = yield* Reader
  const usage = reader.get<{ bytes: number; endpoint_bytes: number }>(
    "SELECT bytes, endpoint_bytes FROM usage WHERE mode = 'test'"
  )
  const before = yield* usage
  yield* changeEndpoint(id, { url: `${a}/${"x".repeat(1_000)}` })
  const longer = yield* usage
  yield* changeEndpoint(id, { url: a })
  if (before === undefined || longer === undefined) return expect.unreachable()
  expect(longer.endpoint_bytes - before.endpoint_bytes).toBe(1_001)
  expect(longer.bytes).toBeGreaterThan(before.bytes + 900)
  expect(yield* usage).toEqual(before)
})

storeTest("a secret that cannot be read can only be replaced without an overlap", function* () {
  const { id } = yield* register(a)
  const writer = yield* Writer
  yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE endpoints SET secret = zeroblob(60)")))
  expect(yield* Effect.flip(rotateTo(id, next))).toMatchObject({ _tag: "SecretUnreadable" })
  expect(yield* rotateTo(id, next, Duration.zero)).toMatchObject({ id })
})

/** An answer that waits for the test. */
const makeGate = Effect.gen(function* () {
  const begun = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const answer = Effect.zipRight(Deferred.succeed(begun, undefined), Effect.as(Deferred.await(gate), { status: 200 }))
  return { answer, begun: Deferred.await(begun), open: Deferred.succeed(gate, undefined) }
})

/** The parts of a sent event that tell which it is. */
const eventOf = (body: Uint8Array) => {
  const { data, event } = JSON.parse(Buffer.from(body).toString())
  return { payment: data.id, kind: event }
}

const owedToOwnUrl = Effect.map(deliveries, (all) => all.filter(({ own_url }) => own_url === 1))

clockTest("a payment's URL gets what an endpoint that has taken it over was sent at its former URL", function* () {
  const { answer, begun, open } = yield* makeGate
  const client = scripted({ [a]: refused, [c]: answer })
  yield* dispatching(client, function* () {
    const old = yield* register(a)
    const next = yield* register(c)
    yield* publish(yield* newPayment(a), "pending")
    yield* untilRecorded(1)
    yield* begun
    yield* changeEndpoint(next.id, { url: a })
    yield* removeEndpoint(old.id)
    yield* open
    yield* untilRecorded(2)
    expect(yield* owedToOwnUrl).toMatchObject([{ url: a, status: "pending" }])
  })
})

sendingTest(
  "a payment's URL gets what failed for good at the endpoint that is left there",
  { [a]: refused },
  function* () {
    const old = yield* register(a)
    const next = yield* register(a, moreEvents)
    yield* publish(yield* newPayment(a), "pending")
    yield* untilRecorded(2)
    const failed = "status = 'failed', attempts = 6, next_attempt_at = NULL, done_at = 1"
    yield* execute(`UPDATE deliveries SET ${failed} WHERE endpoint_id = ?`, [next.id])
    yield* changeEndpoint(old.id, { url: b })
    const olds = (yield* deliveries).find(({ endpoint_id }) => endpoint_id === old.id)
    yield* redeliver(olds?.sequence ?? 0)
    yield* untilRecorded(3)
    expect((yield* owedToOwnUrl).filter(({ next_attempt_at }) => next_attempt_at !== null)).toHaveLength(1)
  }
)

clockTest("a payment's URL that an endpoint has left gets its events in order", function* () {
  const { answer: created, open } = yield* makeGate
  const { answer: blocked, begun, open: unblock } = yield* makeGate
  let blocking: string | undefined
  const client = rememberingClient(({ body, url }) => {
    const { kind, payment } = eventOf(body)
    if (payment === blocking) return blocked
    return url === a && kind === "payment.created" ? created : ok
  })
  yield* dispatching(client, function* () {
    // From then on several are sent at once to payments' URLs of that origin.
    yield* publish(yield* newPayment("https://a.example/other"), "detecting")
    yield* untilRecorded(1)
    const { id } = yield* register(a)
    const first = yield* newPayment()
    blocking = first.id
    yield* publish(first, "pending")
    yield* begun
    const payment = yield* newPayment(a)
    yield* publish(payment, "pending")
    yield* publish(payment, "detecting")
    yield* changeEndpoint(id, { url: b })
    yield* unblock
    yield* untilRecorded(4)
    const sent = () =>
      client.sent.flatMap(({ body, url }) => {
        const event = eventOf(body)
        return url === a && event.payment === payment.id ? [event.kind] : []
      })
    yield* Effect.repeatN(eventLoopTurn, 50)
    expect(sent()).toEqual(["payment.created"])
    yield* open
    yield* untilRecorded(6)
    expect(sent()).toEqual(["payment.created", "payment.detecting"])
  })
})
