import { expect } from "@effect/vitest"
import { Effect } from "effect"
import * as LogRepo from "../../src/Webhooks/queue/DeliveryLogRepo.ts"
import * as LanesRepo from "../../src/Webhooks/queue/LanesRepo.ts"
import * as RedeliveryRepo from "../../src/Webhooks/queue/RedeliveryRepo.ts"
import { execute, inTransaction } from "../lib/store.ts"
import { merchant, neighbour, newPayment, publish } from "../lib/webhooks.ts"
import { a, addFailed, idOf, register, storeTest, watchedStore } from "./endpoints.ts"

storeTest("the head of a lane is found by its index, whatever else is due or waits", function* () {
  const endpoint = yield* register(a)
  yield* publish(yield* newPayment(), "pending")
  yield* addFailed(endpoint.id, 50)
  // Many retries that are not due hide no redelivery, and many redeliveries no retry.
  yield* execute(
    `UPDATE deliveries SET status = iif(sequence % 2, status, 'pending'), redelivery = sequence % 2, done_at = NULL,
         next_attempt_at = iif(sequence % 2, 1, 1000) WHERE sequence > 1`
  )
  const { db, steps: plans, watched } = yield* watchedStore
  const headAt = (now: number, limit: number) =>
    Effect.map(LanesRepo.head(db, endpoint.id, limit, now), (places) => places.map(({ sequence }) => sequence))
  expect(yield* headAt(1, 4)).toEqual([1, 3, 5, 7])
  expect(yield* headAt(1_000, 4)).toEqual([1, 2, 4, 6])
  expect(yield* headAt(0, 100)).toHaveLength(51)
  expect(yield* LanesRepo.backlog(db, 1)).toEqual({ due: 26, oldestDueMillis: 1 })
  yield* inTransaction(watched(LanesRepo.endTurn(endpoint.id, false, 0)))
  const steps = plans.filter((step) => step.includes("deliveries") || step.includes("TEMP B-TREE"))
  for (const step of steps) {
    expect(step).toMatch(/^SEARCH (d|deliveries) USING (COVERING )?INDEX deliveries_due \(target=\? AND redelivery=\?/)
  }
  expect(steps.length).toBeGreaterThan(8)
})

storeTest("lists and redeliveries find their rows by an index, in its order", function* () {
  const { id: endpoint } = yield* register(a)
  const payment = yield* newPayment()
  yield* publish(payment, "pending")
  const { db, steps: plans, watched } = yield* watchedStore
  const selection = { owner: merchant, endpoint: undefined, status: "pending" as const, since: 0, until: 1 }
  yield* LogRepo.list(db, [selection], 20)
  yield* LogRepo.list(db, [{ ...selection, endpoint }], 20)
  yield* LogRepo.list(db, [{ ...selection, status: "failing" }], 20, { createdAt: 1, sequence: 9 })
  yield* LogRepo.list(db, [{ ...selection, endpoint, status: "failing" }], 20)
  yield* LogRepo.byId(db, yield* idOf(1))
  const first = { createdAt: 0, sequence: 0 }
  yield* inTransaction(watched(RedeliveryRepo.redeliverSome(selection, first, 20, 1)))
  yield* inTransaction(watched(RedeliveryRepo.redeliverSome({ ...selection, endpoint }, undefined, 20, 1)))
  yield* inTransaction(watched(RedeliveryRepo.redeliver(yield* idOf(1), 1)))
  expect(plans.filter((step) => /SCAN (?!json_each)|TEMP B-TREE/.test(step))).toEqual([])
  // The few of one payment are sorted.
  yield* LogRepo.list(db, [{ ...selection, payment: payment.id, endpoint }], 20)
  yield* LogRepo.ofPayment(db, payment.id)
  expect(plans.filter((step) => /SCAN (?!json_each)/.test(step))).toEqual([])
  for (const index of [
    "deliveries_list",
    "deliveries_list_endpoint",
    "deliveries_failing",
    "deliveries_failing_endpoint",
    "deliveries_event"
  ]) {
    expect(plans.some((step) => step.includes(`INDEX ${index} `))).toBe(true)
  }
})

storeTest("due deliveries are found account by account, past all the lanes of each", function* () {
  for (let i = 0; i < 3; i++) yield* publish(yield* newPayment(`https://hole${i}.example/`, neighbour), "pending", 1)
  yield* publish(yield* newPayment(a), "pending", 2)
  const { db, steps: plans } = yield* watchedStore
  expect(yield* LanesRepo.dueAccounts(db, 0)).toEqual([])
  expect(yield* LanesRepo.dueAccounts(db, 1)).toEqual([neighbour.account])
  expect(yield* LanesRepo.dueAccounts(db, 2)).toEqual([merchant.account, neighbour.account])
  expect(yield* LanesRepo.dueOf(db, merchant.account, false, 2, 9)).toEqual(["https://a.example default/test"])
  expect(yield* LanesRepo.dueOf(db, neighbour.account, false, 1, 2)).toHaveLength(2)
  expect([yield* LanesRepo.firstAfter(db, 0), yield* LanesRepo.firstAfter(db, 1)]).toEqual([1, 2])
  expect(yield* LanesRepo.firstAfter(db, 2)).toBeUndefined()
  const steps = plans.filter((step) => step.includes("lanes") || step.includes("TEMP B-TREE"))
  // The look for the first account of all takes the first of its index, too.
  for (const step of steps) expect(step).toMatch(/^SEARCH lanes USING (COVERING )?INDEX lanes_(account|next)/)
  expect(steps.length).toBeGreaterThan(9)
})
