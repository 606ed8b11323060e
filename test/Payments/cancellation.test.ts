import { describe, expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { WatchedAddresses } from "../../src/Chains/ledger/WatchedAddresses.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { PaymentNotPending } from "../../src/Domain/PaymentErrors.ts"
import { cancelPayment } from "../../src/Payments/cancellation.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { end, look, refunded, start, test } from "./deciding.ts"
import { address, lastOnTime, scanTo, tick, transfer, usdcElsewhere } from "./settling.ts"

const cancel = ({ id }: Payment) =>
  Effect.map(
    cancelPayment((db) => Repo.byId(db, id)),
    (found) => found?.payment
  )

/** A payment that was cancelled at second 110. */
const cancelledPayment = Effect.gen(function* () {
  const payment = yield* start
  yield* scanTo(105)
  yield* TestClock.setTime(110_000)
  yield* cancel(payment)
  return payment
})

const cancelled = { status: "expired", failureReason: "cancelled" }

describe("a pending payment that is cancelled", () => {
  test("expires at once, with its event, and never again", function* () {
    const payment = yield* cancelledPayment
    const first = yield* look(payment.id)
    expect(first).toMatchObject({
      payment: { ...cancelled, endedAt: 110_000 },
      events: ["payment.expired"],
      exceptions: []
    })
    yield* TestClock.setTime(120_000)
    expect(yield* cancel(payment)).toEqual(first.payment)
    yield* scanTo(end + 10)
    expect(yield* look(payment.id)).toEqual(first)
  })

  test("is watched still after a restart", function* () {
    const payment = yield* cancelledPayment
    const watched = yield* Effect.provide(WatchedAddresses, Layer.fresh(WatchedAddresses.layer))
    expect(watched.has(payment.mode, address)).toBe(true)
  })

  test("loses no money that was mined before, in a block that had not been read: it was in time", function* () {
    const payment = yield* cancelledPayment
    yield* scanTo(120, transfer(107, 1000n))
    expect(yield* look(payment.id)).toMatchObject({
      payment: { ...cancelled, amountReceived: undefined },
      events: ["payment.expired"],
      exceptions: ["open found_late 1000"]
    })
  })

  test("loses no money that is mined after, in time or too late, nor another token", function* () {
    const payment = yield* cancelledPayment
    yield* scanTo(150, transfer(130, 400n), usdcElsewhere(131, 7n))
    yield* scanTo(lastOnTime + 50, transfer(lastOnTime + 1, 600n))
    expect((yield* look(payment.id)).exceptions).toEqual(["open found_late 400", "open wrong_token 7", "open late 600"])
  })

  test("loses no money that a reorg removed before, and that is mined again", function* () {
    const payment = yield* start
    yield* scanTo(110, transfer(110, 1000n))
    yield* tick({ head: 110, ancestor: 109 })
    yield* cancel(payment)
    yield* scanTo(112, transfer(112, 1000n, { txHash: "0xt110" }))
    expect(yield* look(payment.id)).toMatchObject({
      payment: cancelled,
      events: ["payment.detecting", "payment.expired"],
      exceptions: ["open found_late 1000"]
    })
  })

  test("can be accepted for money that came all the same, or the money sent back", function* () {
    const payment = yield* cancelledPayment
    yield* scanTo(120, transfer(107, 1000n))
    const { payment: accepted } = (yield* accept(payment.id, undefined)) ?? {}
    expect(accepted).toMatchObject({ status: "confirmed", txHash: "0xt107", failureReason: undefined })
    expect(yield* Effect.flip(cancel(payment))).toEqual(PaymentNotPending.of("confirmed"))
  })

  test("has its money sent back like any other", function* () {
    const payment = yield* cancelledPayment
    yield* scanTo(120, transfer(107, 1000n))
    yield* refunded(payment.id)
    expect(yield* look(payment.id)).toMatchObject({ payment: cancelled, exceptions: ["refunded found_late 1000"] })
  })
})

describe("a payment that is not pending is not cancelled", () => {
  test("while its money waits for confirmations", function* () {
    const payment = yield* start
    yield* scanTo(110, transfer(110, 1n))
    const before = yield* look(payment.id)
    expect(yield* Effect.flip(cancel(payment))).toEqual(PaymentNotPending.of("detecting"))
    expect(yield* look(payment.id)).toEqual(before)
  })

  test("once it has ended", function* () {
    const payment = yield* start
    yield* scanTo(end)
    expect(yield* Effect.flip(cancel(payment))).toEqual(PaymentNotPending.of("expired"))
  })

  test("where there is none", function* () {
    expect(yield* cancelPayment(() => Effect.succeed(undefined))).toBeUndefined()
  })
})
