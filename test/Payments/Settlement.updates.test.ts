import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { EventKind, StatusEventKind } from "../../src/Domain/Event.ts"
import { eventId } from "../../src/Domain/Ids.ts"
import { Reader } from "../../src/Sql.ts"
import { execute } from "../lib/store.ts"
import { look, scanTo, startWith, test, tick, transfer } from "./settling.ts"

const own = "https://shop.example/own"

const register = (id: string, events: ReadonlyArray<EventKind>, url: string) =>
  execute(
    `INSERT INTO endpoints (id, account_id, mode, url, events, secret, created_at)
     VALUES (?, 'default', 'test', ?, ?, x'00', 0)`,
    [id, url, JSON.stringify(events)]
  )

/** A payment with a URL of its own, an endpoint that names every kind, and one that names those of the statuses. */
const shop = Effect.gen(function* () {
  const payment = yield* startWith({ webhookUrl: own })
  yield* register("wh_every", EventKind.literals, "https://shop.example/every")
  yield* register("wh_status", StatusEventKind.literals, "https://shop.example/status")
  return payment
})

/** The kinds that each receiver gets, in their order; `own` is the payment's URL. */
const received = Effect.gen(function* () {
  const reader = yield* Reader
  const rows = yield* reader.all<{ kind: string; receiver: string }>(
    `SELECT e.kind, coalesce(d.endpoint_id, 'own') AS receiver FROM deliveries AS d JOIN events AS e ON e.id = d.event_id
     ORDER BY d.sequence`
  )
  return Object.fromEntries(
    ["own", "wh_every", "wh_status"].map((name) => [
      name,
      rows.filter(({ receiver }) => receiver === name).map(({ kind }) => kind.replace("payment.", ""))
    ])
  )
})

test("a further part is an event for the endpoints that name it, and for no one else", function* () {
  const payment = yield* shop
  yield* scanTo(110, transfer(110, 400n))
  yield* scanTo(111, transfer(111, 300n))
  const withoutUpdate = ["detecting"]
  expect(yield* received).toEqual({ own: withoutUpdate, wh_every: ["detecting", "updated"], wh_status: withoutUpdate })
  const { events } = yield* look(payment)
  const [, updated] = events.map(({ body }) => JSON.parse(body))
  expect(updated).toMatchObject({
    event: "payment.updated",
    data: { status: "detecting", amountReceived: "700", amountRemaining: "300" }
  })
  expect(updated.data.paymentUri).toMatch(/[?]value=300$/)
})

test("an endpoint at the payment's own URL gets the updates that it names", function* () {
  yield* shop
  yield* register("wh_own", ["payment.updated"], own)
  yield* scanTo(110, transfer(110, 400n))
  yield* scanTo(111, transfer(111, 300n))
  const reader = yield* Reader
  const rows = yield* reader.all<{ own_url: number; kind: string }>(
    `SELECT d.own_url, e.kind FROM deliveries AS d JOIN events AS e ON e.id = d.event_id WHERE d.endpoint_id = 'wh_own'
     ORDER BY d.sequence`
  )
  expect(rows.map(({ kind, own_url }) => [kind, own_url])).toEqual([
    ["payment.detecting", 1],
    ["payment.updated", 0]
  ])
})

test("a reorg that changes what remains is an update, each with an id of its own that a restored copy repeats", function* () {
  const payment = yield* shop
  yield* scanTo(110, transfer(110, 400n))
  yield* scanTo(111, transfer(111, 300n))
  yield* tick({ head: 111, ancestor: 110 })
  yield* scanTo(112, transfer(112, 300n))
  const { events } = yield* look(payment)
  const bodies = events.map(({ body }) => JSON.parse(body))
  expect(bodies.map(({ data }) => data.amountReceived)).toEqual(["400", "700", "400", "700"])
  expect(bodies.slice(1).map(({ id }) => id)).toEqual(
    [1, 2, 3].map((ordinal) => eventId(payment.id, "payment.updated", ordinal))
  )
})

test("small transfers are reported with the next event, in its sum", function* () {
  const payment = yield* shop
  yield* scanTo(110, transfer(110, 400n))
  for (const block of [111, 112, 113]) yield* scanTo(block, transfer(block, 9n))
  yield* scanTo(114, transfer(114, 100n))
  const { events } = yield* look(payment)
  expect(events.map(({ body }) => JSON.parse(body).data.amountReceived)).toEqual(["400", "527"])
})
