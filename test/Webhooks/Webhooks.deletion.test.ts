import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { recordAttempts } from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import { releaseEndpoint } from "../../src/Webhooks/queue/EndpointReleaseRepo.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { execute, inTransaction, rows, temporaryDatabase } from "../lib/store.ts"
import { deliveries, dispatching, FullStore, merchant, newPayment, publish, untilRecorded } from "../lib/webhooks.ts"
import {
  a,
  addFailed,
  allEvents,
  onStore,
  publishMany,
  refused,
  register,
  scripted,
  sendingNothing
} from "./endpoints.ts"

it.scoped("deleting an endpoint cancels its queue, except what is owed to a payment's own URL", () =>
  onStore(function* () {
    const webhooks = yield* Webhooks
    const endpoint = yield* register("https://shop.example/a")
    const plain = yield* newPayment()
    const own = yield* newPayment("https://shop.example:443/a")
    for (const payment of [plain, own]) {
      yield* publish(payment, "pending", 1)
      yield* publish(payment, "detecting", 2)
    }
    expect(yield* webhooks.remove({ ...merchant, mode: "live" }, endpoint.id)).toBeUndefined()
    expect(yield* webhooks.remove(merchant, endpoint.id)).toBe(2)
    expect(yield* webhooks.remove(merchant, endpoint.id)).toBeUndefined()
    expect(yield* webhooks.list(merchant)).toEqual([])
    expect(
      (yield* deliveries).map((row) => [
        row.status,
        row.target,
        row.endpoint_id,
        row.next_attempt_at,
        row.after_sequence
      ])
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
)

it.scoped("a deletion that was cut short is finished at the next start", () =>
  Effect.gen(function* () {
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
)

it.scoped("deleting an endpoint with a long queue takes it in pieces", () =>
  onStore(function* () {
    const webhooks = yield* Webhooks
    const endpoint = yield* register("https://shop.example/a")
    yield* publishMany(1)
    yield* addFailed(endpoint.id, 2500)
    yield* execute("UPDATE deliveries SET status = 'pending', attempts = 1, next_attempt_at = 1, done_at = NULL")
    yield* webhooks.remove(merchant, endpoint.id)
    expect(new Set((yield* deliveries).map((row) => row.status))).toEqual(new Set(["cancelled"]))
  })
)

it.scoped("deleting an endpoint cancels all, where those that wait and those that are due fill a piece together", () =>
  onStore(function* () {
    const webhooks = yield* Webhooks
    const endpoint = yield* register("https://shop.example/a")
    yield* publishMany(1)
    yield* addFailed(endpoint.id, 1600)
    yield* execute("UPDATE deliveries SET status = 'pending', attempts = 1, next_attempt_at = 1, done_at = NULL")
    yield* execute(
      "UPDATE deliveries SET attempts = 0, next_attempt_at = NULL, after_sequence = 1 WHERE sequence % 2 = 0"
    )
    expect(yield* inTransaction(releaseEndpoint(endpoint.id, 801))).toEqual({ cancelled: 801, isDone: false })
    expect(yield* webhooks.remove(merchant, endpoint.id)).toBe(800)
    expect(new Set((yield* deliveries).map((row) => row.status))).toEqual(new Set(["cancelled"]))
  })
)

it.scoped("a delivery to a payment's own URL becomes due when a deletion cancels the delivery it waits for", () =>
  onStore(function* () {
    const url = "https://shop.example/own"
    const webhooks = yield* Webhooks
    const first = yield* register(url, ["payment.created"])
    const both = yield* register(url, ["payment.created", "payment.confirmed"])
    const payment = yield* newPayment(url)
    yield* publish(payment, "pending", 1)
    const [, second] = yield* deliveries
    const attempt = { sequence: second?.sequence ?? 0, attempts: 1, isRedelivery: false, startedAt: 1, endedAt: 1 }
    yield* inTransaction(recordAttempts([{ ...attempt, status: 200 }], 1, 1e9))
    yield* publish(payment, "confirmed", 2)
    // The second event goes to the second endpoint as the payment's own URL, behind the first event's delivery there.
    const waiting = (yield* deliveries).find((row) => row.after_sequence !== null)
    expect(waiting).toMatchObject({ endpoint_id: both.id, own_url: 1 })
    yield* webhooks.remove(merchant, both.id)
    const after = (yield* deliveries).find((row) => row.sequence === waiting?.sequence)
    expect(after).toMatchObject({
      endpoint_id: first.id,
      status: "pending",
      after_sequence: null,
      next_attempt_at: 0
    })
  })
)

it.scoped("what a payment's own URL is owed goes on to the endpoint that takes a deleted one's place, once", () =>
  onStore(function* () {
    const url = "https://shop.example/own"
    const webhooks = yield* Webhooks
    yield* register(url, allEvents, { ...merchant, mode: "live" })
    const old = yield* register(url)
    const payment = yield* newPayment(url)
    yield* publish(payment, "pending")
    yield* publish(payment, "detecting")
    const next = yield* register("https://shop.example:443/own", ["payment.confirmed"])
    yield* publish(payment, "confirmed")
    yield* publish(payment, "expired")
    expect(yield* deliveries).toMatchObject([
      { endpoint_id: old.id, own_url: 1, after_sequence: null },
      { endpoint_id: old.id, own_url: 1, after_sequence: 1 },
      { sequence: 3, endpoint_id: next.id, own_url: 0, after_sequence: null },
      { sequence: 4, endpoint_id: old.id, own_url: 1, after_sequence: 2 },
      { endpoint_id: old.id, own_url: 1, after_sequence: 4 }
    ])
    yield* webhooks.remove(merchant, old.id)
    const moved = { endpoint_id: next.id, target: next.id, own_url: 1, status: "pending" }
    expect(yield* deliveries).toMatchObject([
      { ...moved, after_sequence: null, next_attempt_at: 0 },
      { ...moved, after_sequence: 1 },
      { ...moved, after_sequence: null, next_attempt_at: 0 },
      { endpoint_id: old.id, own_url: 0, status: "cancelled" },
      // It waits for the event before it, as it did: for the delivery that goes out.
      { ...moved, after_sequence: 3 }
    ])
    // The debt has moved with them.
    yield* webhooks.remove(merchant, next.id)
    const rest = (yield* deliveries).filter((row) => row.status === "pending")
    expect(rest.map((row) => [row.sequence, row.endpoint_id, row.target])).toEqual(
      [1, 2, 3, 5].map((sequence) => [sequence, null, "https://shop.example default/test"])
    )
  })
)

it.scoped("what has failed five times, with a sixth attempt ahead, is cancelled and counted like what is pending", () =>
  onStore(function* () {
    const webhooks = yield* Webhooks
    const { id } = yield* register("https://shop.example/hook")
    yield* publish(yield* newPayment(), "pending")
    yield* execute("UPDATE deliveries SET status = 'failed', attempts = 5, next_attempt_at = 86400000")
    expect(yield* webhooks.remove(merchant, id)).toBe(1)
    expect(yield* deliveries).toMatchObject([{ status: "cancelled", next_attempt_at: null }])
  })
)

it.scoped("what its endpoint's place-taker has failed to deliver for good is owed to a payment's own URL still", () =>
  onStore(function* () {
    const url = "https://shop.example/own"
    const webhooks = yield* Webhooks
    const old = yield* register(url)
    const next = yield* register(url)
    yield* publish(yield* newPayment(url), "pending")
    const failed = "status = 'failed', attempts = 6, next_attempt_at = NULL, done_at = 1"
    yield* execute(`UPDATE deliveries SET ${failed} WHERE endpoint_id = ?`, [next.id])
    yield* webhooks.remove(merchant, old.id)
    expect(yield* deliveries).toMatchObject([
      { endpoint_id: next.id, own_url: 0, status: "failed" },
      { endpoint_id: next.id, own_url: 1, status: "pending", next_attempt_at: 0 }
    ])
  })
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
    expect(yield* Effect.exit(webhooks.remove(merchant, id))).toMatchObject({ _tag: "Failure" })
    isFull = false
    expect(yield* webhooks.list(merchant)).toEqual([])
    expect(yield* webhooks.remove({ ...merchant, mode: "live" }, id)).toBeUndefined()
    expect(yield* webhooks.remove(merchant, id)).toBe(1)
    expect(yield* webhooks.remove(merchant, id)).toBeUndefined()
    expect(yield* deliveries).toMatchObject([{ status: "cancelled", next_attempt_at: null }])
  }).pipe(Effect.provideService(FullStore, store))
})
