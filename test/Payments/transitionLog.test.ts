import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { alarms, createdAt, loggedTransitions, scanTo, start, test, transfer } from "./settling.ts"

test("each change of a status is one line with the payment, its chain and mode, and both statuses", function* () {
  const payment = yield* start
  const at = createdAt / 1000 + 10
  yield* scanTo(at, transfer(at, payment.amount))
  yield* scanTo(at + 1)
  yield* scanTo(at + 20)
  yield* Effect.yieldNow()
  const about = { service: "payments", payment: payment.id, chain: payment.chain, mode: payment.mode }
  expect(loggedTransitions).toEqual([
    { ...about, from: "pending", to: "detecting" },
    { ...about, from: "detecting", to: "confirmed" }
  ])
  expect(alarms).toEqual([])
})
