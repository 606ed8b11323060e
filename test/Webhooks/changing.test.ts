import { expect, it } from "@effect/vitest"
import { DateTime, Deferred, Duration, Effect, Redacted, TestClock } from "effect"
import { Webhook } from "standardwebhooks"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { wouldCancel } from "../../src/Webhooks/queue/EndpointsRepo.ts"
import { defaultSecrets, markOf } from "../../src/Webhooks/SigningKeys.ts"
import type { DeliveryRequest } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { rows } from "../lib/store.ts"
import {
  attempts,
  deliveries,
  dispatching,
  merchant,
  neighbour,
  newPayment,
  publish,
  untilRecorded
} from "../lib/webhooks.ts"
import {
  a,
  b,
  changeEndpoint,
  hangs,
  ok,
  publishMany,
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
  "what is queued when an endpoint moves goes to its new URL only, and to a payment's own URL once it is deleted",
  { [a]: refused, [b]: refused },
  function* (client) {
    const { id } = yield* register(a)
    yield* publish(yield* newPayment(a), "pending")
    yield* untilRecorded(1)
    yield* changeEndpoint(id, { url: b })
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(2)
    expect(client.sent.map(({ url }) => url)).toEqual([a, b])
    expect(yield* deliveries).toMatchObject([{ endpoint_id: id, own_url: 1, url: b, attempts: 2 }])
    expect(yield* removeEndpoint(id)).toBe(0)
    yield* TestClock.adjust("5 minutes")
    yield* untilRecorded(3)
    const own = Redacted.value((yield* defaultSecrets(merchant)).current)
    expect(client.sent.map((request) => [request.url, isSignedWith(request, own)]).at(2)).toEqual([a, true])
    const moved = { endpoint_id: null, own_url: 1, target: "https://a.example default/test", url: a }
    expect(yield* deliveries).toMatchObject([{ ...moved, status: "pending", attempts: 3 }])
  }
)

storeTest("after a move a payment's own URL gets later events for itself, behind those before the move", function* () {
  const { id } = yield* register(a)
  const payment = yield* newPayment(a)
  yield* publish(payment, "pending")
  yield* changeEndpoint(id, { url: b })
  yield* publish(payment, "detecting")
  expect(yield* deliveries).toMatchObject([
    { endpoint_id: id, own_url: 1, after_sequence: null },
    { endpoint_id: id, own_url: 0, url: b, after_sequence: 1 },
    { endpoint_id: null, own_url: 1, url: a, after_sequence: 1 }
  ])
})

storeTest(
  "a deletion cancels and counts what no payment's own URL is owed, whatever URLs the endpoint had",
  function* () {
    const { id } = yield* register(a)
    yield* publish(yield* newPayment(a), "pending")
    yield* changeEndpoint(id, { url: b })
    yield* publish(yield* newPayment(b), "pending")
    yield* publish(yield* newPayment(), "pending")
    expect(yield* wouldCancel(yield* Reader, id)).toBe(1)
    expect(yield* removeEndpoint(id)).toBe(1)
    expect(yield* deliveries).toMatchObject([
      { endpoint_id: null, url: a, status: "pending" },
      { endpoint_id: null, url: b, status: "pending" },
      { endpoint_id: id, status: "cancelled" }
    ])
  }
)

clockTest(
  "an endpoint deleted during an attempt at its new URL leaves the next one to a payment's own URL",
  function* () {
    const begun = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    const waiting = Effect.zip(Deferred.succeed(begun, undefined), Deferred.await(gate))
    yield* dispatching(scripted({ [a]: refused, [b]: Effect.zipRight(waiting, refused) }), function* () {
      const { id } = yield* register(a)
      yield* publish(yield* newPayment(a), "pending")
      yield* untilRecorded(1)
      yield* changeEndpoint(id, { url: b })
      yield* TestClock.adjust("1 minute")
      yield* Deferred.await(begun)
      yield* removeEndpoint(id)
      yield* Deferred.succeed(gate, undefined)
      yield* untilRecorded(2)
      expect(yield* deliveries).toMatchObject([{ endpoint_id: null, url: a, status: "pending", attempts: 2 }])
    })
  }
)

sendingTest(
  "what an endpoint that is deleted has under way is not sent to the payment's own URL beside it, but after it",
  { [a]: hangs },
  function* (client) {
    const { id } = yield* register(a)
    const payment = yield* newPayment(a)
    yield* publish(payment, "pending")
    yield* publish(payment, "detecting")
    yield* client.until(1, a)
    yield* removeEndpoint(id)
    yield* publish(yield* newPayment(b), "pending")
    yield* untilRecorded(1)
    expect(client.to(a)).toBe(1)
    yield* TestClock.adjust("30 seconds")
    // The event behind it.
    yield* client.until(2, a)
    yield* TestClock.adjust("30 seconds")
    yield* untilRecorded(3)
    yield* TestClock.adjust("30 seconds")
    yield* client.until(3, a)
    yield* TestClock.adjust("30 seconds")
    yield* untilRecorded(4)
    expect(yield* attempts).toMatchObject([
      { delivery: 1, number: 1, started_at: 0 },
      { delivery: 3, number: 1, started_at: 0 },
      { delivery: 2, number: 1, started_at: 30_000 },
      { delivery: 1, number: 2, started_at: 90_000 }
    ])
  }
)

it.scoped("what was read ahead of an endpoint that is deleted goes to the payment's own URL only", () => {
  const answers = [ok, Effect.delay(refused, "10 seconds"), hangs, refused]
  // With so many under way ended attempts are gathered.
  const busy = Array.from({ length: 8 }, (_, i) => `https://busy${i}.example/`)
  const hanging = Object.fromEntries(busy.map((url) => [url, hangs]))
  const client = scripted({ ...hanging, [a]: Effect.suspend(() => answers.shift() ?? ok) })
  return dispatching({ ...client, webhooks: { concurrencyPerEndpoint: 2 } }, function* () {
    const { id } = yield* register(a, ["payment.confirmed"])
    yield* publishMany(1, a)
    yield* untilRecorded(1)
    for (const url of busy) yield* publishMany(1, url)
    yield* client.until(8, ...busy)
    for (let i = 0; i < 3; i++) yield* publish(yield* newPayment(a), "pending", 1_000)
    yield* TestClock.adjust("1 second")
    // Its two slots are taken, and one delivery is next.
    yield* client.until(3, a)
    yield* removeEndpoint(id)
    yield* client.until(4, a)
    yield* TestClock.adjust("10 seconds")
    yield* TestClock.adjust("1 second")
    yield* untilRecorded(3)
    yield* publishMany(1, b)
    yield* client.until(1, b)
    expect(client.to(a)).toBe(4)
  })
})

storeTest("new kinds of events count from the change on", function* () {
  const { id } = yield* register(a, ["payment.confirmed"])
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
    "SELECT bytes, endpoint_bytes FROM usage WHERE account_id = ? AND mode = 'test'",
    [merchant.account]
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
  yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE endpoints SET secret = randomblob(60)")))
  expect(yield* Effect.flip(rotateTo(id, next))).toMatchObject({ _tag: "SecretUnreadable" })
  expect(yield* rotateTo(id, next, Duration.zero)).toMatchObject({ id })
})
