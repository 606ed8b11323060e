import { expect, it } from "@effect/vitest"
import { Deferred, Effect, TestClock } from "effect"
import type { Endpoint } from "../../../src/Domain/Webhook.ts"
import { eventLoopTurn } from "../../../src/lib/waiting.ts"
import * as RedeliveryRepo from "../../../src/Webhooks/queue/RedeliveryRepo.ts"
import { Webhooks } from "../../../src/Webhooks.ts"
import {
  deliveries,
  dispatching,
  merchant,
  newPayment,
  publish,
  rememberingClient,
  untilRecorded
} from "../../lib/webhooks.ts"
import { a, b, c, commit, idOf, ok, refused, register, scripted } from "../endpoints.ts"

const failing = { owner: merchant, status: "failing", since: 0, until: 1_000 } as const

it.scoped("a delivery cancelled by a deletion goes to another endpoint, as a new delivery of the same event", () => {
  const client = scripted({ [a]: refused })
  return dispatching(client, function* () {
    const webhooks = yield* Webhooks
    const gone = yield* register(a)
    yield* publish(yield* newPayment(), "pending")
    yield* untilRecorded(1)
    expect(yield* webhooks.remove(merchant, gone.id)).toBe(1)
    const other = yield* register(b)
    const id = yield* idOf(1)
    const ordered = yield* commit((now) => RedeliveryRepo.redeliver(id, now, other))
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
    expect(yield* commit((now) => RedeliveryRepo.redeliver(id, now, other))).toEqual({ ...ordered, attemptsMade: 1 })
    yield* untilRecorded(3)
    expect((yield* deliveries)[1]).toMatchObject({ status: "delivered", attempts: 1, redeliveries: 1 })
  })
})

it.scoped("events that report no new status go only to endpoints that name their kind", () =>
  dispatching(scripted({}), function* () {
    yield* register(a, ["payment.updated"])
    yield* publish(yield* newPayment(), "detecting", 0, "payment.updated")
    yield* untilRecorded(1)
    const [sent] = yield* deliveries
    const five = yield* register(b)
    const naming = yield* register(c, ["payment.updated"])
    const to = (other: Endpoint) => commit((now) => RedeliveryRepo.redeliver(sent?.id ?? "", now, other))
    expect(yield* to(five)).toMatchObject({ result: "refused" })
    expect(yield* to(naming)).toMatchObject({ result: "ordered" })
    yield* untilRecorded(2)
    expect((yield* deliveries).map(({ endpoint_id }) => endpoint_id)).not.toContain(five.id)
  })
)

it.scoped("a range goes to another endpoint once, and those that are added are not part of it", () => {
  const client = scripted({ [a]: refused, [b]: refused })
  return dispatching(client, function* () {
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
  })
})

it.scoped("events of a payment go to another endpoint in their order", () =>
  Effect.gen(function* () {
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
)

it.scoped("a range that is repeated sends nothing again that has arrived at the other endpoint", () =>
  dispatching(scripted({ [a]: refused }), function* () {
    const { id } = yield* register(a)
    yield* publish(yield* newPayment(), "pending")
    yield* untilRecorded(1)
    const other = yield* register(b)
    const range = commit((now) => RedeliveryRepo.redeliverSome({ ...failing, endpoint: id }, undefined, 10, now, other))
    expect(yield* range).toMatchObject({ ordered: 1 })
    yield* untilRecorded(2)
    expect(yield* range).toMatchObject({ ordered: 0 })
  })
)
