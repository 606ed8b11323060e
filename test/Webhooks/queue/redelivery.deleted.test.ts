import { expect, it } from "@effect/vitest"
import { Clock, Redacted, TestClock } from "effect"
import { verifySignature } from "../../../src/Sandbox/Receiver.ts"
import { defaultSecrets } from "../../../src/Webhooks/DefaultSecrets.ts"
import type { DeliveryRequest } from "../../../src/Webhooks/transport/DeliveryClient.ts"
import { Webhooks } from "../../../src/Webhooks.ts"
import { execute } from "../../lib/store.ts"
import { deliveries, dispatching, merchant, rememberingClient, untilRecorded } from "../../lib/webhooks.ts"
import { a, allEvents, ok, onStore, publishMany, redeliver, register } from "../endpoints.ts"

const isSignedWith = (request: DeliveryRequest | undefined, secret: string) => {
  const { body, headers } = request ?? expect.unreachable("nothing was sent")
  return verifySignature({ headers: Object.fromEntries(new Headers(headers)), body: Buffer.from(body) }, secret)
}

it.scoped("nothing is redelivered to a deleted endpoint, except events owed to a payment's own URL", () => {
  const client = rememberingClient(() => ok)
  return dispatching(client, function* () {
    const webhooks = yield* Webhooks
    const endpoint = yield* register(a)
    yield* publishMany(1)
    yield* publishMany(1, a)
    yield* untilRecorded(2)
    yield* TestClock.adjust("1 minute")
    yield* webhooks.remove(merchant, endpoint.id)
    expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["refused", "ordered"])
    yield* untilRecorded(3)
    expect(isSignedWith(client.sent[2], Redacted.value((yield* defaultSecrets(merchant)).current))).toBe(true)
    expect(yield* deliveries).toMatchObject([
      { endpoint_id: endpoint.id, status: "delivered" },
      { endpoint_id: null, target: "https://a.example default/test", status: "delivered", redeliveries: 1 }
    ])
  })
})

it.scoped("a redelivery to a payment's own URL is signed by the endpoint that replaced a deleted one", () => {
  const client = rememberingClient(() => ok)
  return dispatching(client, function* () {
    const webhooks = yield* Webhooks
    const endpoint = yield* register(a)
    yield* publishMany(1, a)
    yield* untilRecorded(1)
    const secret = "whsec_fedcba9876543210"
    const next = yield* webhooks.create(merchant, { url: a, events: allEvents, secret: Redacted.make(secret) })
    yield* webhooks.remove(merchant, endpoint.id)
    expect(yield* redeliver(1)).toBe("ordered")
    yield* untilRecorded(2)
    expect(isSignedWith(client.sent[1], secret)).toBe(true)
    expect(yield* deliveries).toMatchObject([{ endpoint_id: next.id, target: next.id, redeliveries: 1 }])
  })
})

it.scoped("a deletion cancels redeliveries that were ordered to the endpoint; a delivered event stays delivered", () =>
  onStore(function* () {
    const webhooks = yield* Webhooks
    const endpoint = yield* register(a)
    yield* publishMany(2)
    yield* execute("UPDATE deliveries SET attempts = 1, next_attempt_at = 60000")
    yield* execute("UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, done_at = 0 WHERE sequence = 1")
    expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["ordered", "ordered"])
    yield* webhooks.remove(merchant, endpoint.id)
    const now = yield* Clock.currentTimeMillis
    const rest = { redelivery: 0, resume_at: null, next_attempt_at: null, done_at: now }
    expect(yield* deliveries).toMatchObject([
      { status: "delivered", ...rest },
      { status: "cancelled", ...rest }
    ])
  })
)
