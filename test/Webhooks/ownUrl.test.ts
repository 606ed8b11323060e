import { expect } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { execute } from "../lib/store.ts"
import { deliveries, dispatching, newPayment, publish, rememberingClient, untilRecorded } from "../lib/webhooks.ts"
import {
  a,
  b,
  c,
  changeEndpoint,
  ok,
  redeliver,
  refused,
  register,
  removeEndpoint,
  scripted,
  sendingTest
} from "./endpoints.ts"

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
    const next = yield* register(a)
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
