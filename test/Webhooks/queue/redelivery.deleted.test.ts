import { expect, it } from "@effect/vitest"
import { Clock, Effect, Redacted, TestClock } from "effect"
import type { EndpointId } from "../../../src/Domain/Ids.ts"
import { verifySignature } from "../../../src/Sandbox/Receiver.ts"
import { defaultSecrets } from "../../../src/Webhooks/DefaultSecrets.ts"
import type { AttemptOutcome, DeliveryRequest } from "../../../src/Webhooks/transport/DeliveryClient.ts"
import { Webhooks } from "../../../src/Webhooks.ts"
import { temporaryDatabase } from "../../lib/store.ts"
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
import { a, allEvents, ok, refused, register } from "../endpoints.ts"
import { redeliver } from "./redelivering.ts"

/** A test beside a dispatcher, with an endpoint that takes everything, and what was sent. */
const withEndpoint = <A, E, R>(
  test: (endpoint: { readonly id: EndpointId }, sent: ReadonlyArray<DeliveryRequest>) => Effect.Effect<A, E, R>
) => {
  const { layer, sent } = rememberingClient(() => ok)
  return dispatching(
    { layer },
    Effect.flatMap(register(a), (endpoint) => test(endpoint, sent))
  )
}

const isSignedWith = ({ body, headers }: DeliveryRequest, secret: string) =>
  verifySignature({ headers: Object.fromEntries(new Headers(headers)), body: Buffer.from(body) }, secret)

it.scoped("nothing is redelivered to a deleted endpoint, except events owed to a payment's own URL", () =>
  withEndpoint((endpoint, sent) =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      yield* publish(yield* newPayment(), "pending")
      yield* publish(yield* newPayment(a), "pending")
      yield* untilRecorded(2)
      // Ordered, and then the endpoint goes: both stay what they were.
      yield* TestClock.adjust("1 minute")
      yield* webhooks.remove(merchant, endpoint.id)
      expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["refused", "ordered"])
      yield* untilRecorded(3)
      const own = Redacted.value((yield* defaultSecrets(merchant)).current)
      const [, , again] = sent
      if (again === undefined) return expect.unreachable()
      expect(isSignedWith(again, own)).toBe(true)
      expect(yield* deliveries).toMatchObject([
        { endpoint_id: endpoint.id, status: "delivered" },
        { endpoint_id: null, target: "https://a.example default/test", status: "delivered", redeliveries: 1 }
      ])
    })
  )
)

it.scoped("what a payment's own URL is owed again is signed by the endpoint that took a deleted one's place", () =>
  withEndpoint((endpoint, sent) =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      yield* publish(yield* newPayment(a), "pending")
      yield* untilRecorded(1)
      const secret = "whsec_fedcba9876543210"
      const next = yield* webhooks.create(merchant, { url: a, events: allEvents, secret: Redacted.make(secret) })
      yield* webhooks.remove(merchant, endpoint.id)
      expect(yield* redeliver(1)).toBe("ordered")
      yield* untilRecorded(2)
      const again = sent.at(-1)
      if (again === undefined) return expect.unreachable()
      expect(isSignedWith(again, secret)).toBe(true)
      expect(yield* deliveries).toMatchObject([{ endpoint_id: next.id, target: next.id, redeliveries: 1 }])
    })
  )
)

it.scoped("a deletion takes back what was ordered for the endpoint, and what was delivered stays delivered", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    let answer: Effect.Effect<AttemptOutcome> = ok
    const client = rememberingClient(() => answer)
    yield* Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const endpoint = yield* register(a)
      yield* besideDispatcher(
        Effect.gen(function* () {
          yield* publish(yield* newPayment(), "pending")
          yield* untilRecorded(1)
          answer = refused
          yield* publish(yield* newPayment(), "pending")
          yield* untilRecorded(2)
        })
      )
      expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["ordered", "ordered"])
      yield* webhooks.remove(merchant, endpoint.id)
      const now = yield* Clock.currentTimeMillis
      const rest = { redelivery: 0, resume_at: null, next_attempt_at: null, done_at: now }
      expect(yield* deliveries).toMatchObject([
        { status: "delivered", ...rest },
        { status: "cancelled", ...rest }
      ])
    }).pipe(Effect.provide(webhooksOn(path, client.layer)))
  })
)
