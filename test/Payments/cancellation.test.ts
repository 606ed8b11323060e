import { describe, expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { WatchedAddresses } from "../../src/Chains/ledger/WatchedAddresses.ts"
import { type Payment, PaymentNotPending } from "../../src/Domain/Payment.ts"
import { cancelPayment } from "../../src/Payments/cancellation.ts"
import { accept } from "../../src/Payments/decisions/accept.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { end, exceptionOf, look, paidBy, refunded, stands, start, test } from "./deciding.ts"
import { address, lastOnTime, scanTo, tick, transfer, usdcElsewhere } from "./settling.ts"

const cancel = ({ id }: Payment) =>
  Effect.map(
    cancelPayment((db) => Repo.byId(db, id)),
    (found) => found?.payment
  )

/** A payment that was cancelled at second 110. */
const cancelledPayment = Effect.gen(function* () {
  const payment = yield* paidBy(105)
  yield* TestClock.setTime(110_000)
  yield* cancel(payment)
  return payment
})

describe("a pending payment that is cancelled", () => {
  test("expires at once, with its event, and never again", function* () {
    const payment = yield* cancelledPayment
    const first = yield* look(payment.id)
    yield* stands(payment.id, "expired: cancelled")
    expect([first.payment?.endedAt, first.events]).toEqual([110_000, ["payment.expired"]])
    yield* TestClock.setTime(120_000)
    expect(yield* cancel(payment)).toEqual(first.payment)
    yield* scanTo(end + 10)
    expect(yield* look(payment.id)).toEqual(first)
  })

  test("is still watched after a restart", function* () {
    const payment = yield* cancelledPayment
    const watched = yield* Effect.provide(WatchedAddresses, Layer.fresh(WatchedAddresses.layer))
    expect(watched.has(payment.mode, address)).toBe(true)
  })

  test("loses no money that was mined before, in a block that had not been read: it was in time", function* () {
    const payment = yield* cancelledPayment
    yield* scanTo(120, transfer(107, 1000n))
    yield* stands(payment.id, "expired: cancelled", "open found_late 1000")
    expect((yield* look(payment.id)).events).toEqual(["payment.expired"])
  })

  test("loses no money that is mined afterwards, in time or too late, nor another token", function* () {
    const payment = yield* cancelledPayment
    yield* scanTo(150, transfer(130, 400n), usdcElsewhere(131, 7n))
    yield* scanTo(lastOnTime + 50, transfer(lastOnTime + 1, 600n))
    expect((yield* look(payment.id)).exceptions).toEqual(["open found_late 400", "open wrong_token 7", "open late 600"])
  })

  test("loses no money that a reorg removed before, and that is mined again", function* () {
    const payment = yield* paidBy(110, transfer(110, 1000n))
    yield* tick({ head: 110, ancestor: 109 })
    yield* cancel(payment)
    yield* scanTo(112, transfer(112, 1000n, { txHash: "0xt110" }))
    yield* stands(payment.id, "expired: cancelled", "open found_late 1000")
    expect((yield* look(payment.id)).events).toEqual(["payment.detecting", "payment.expired"])
  })

  test("can be accepted for money that came afterwards", function* () {
    const payment = yield* cancelledPayment
    yield* scanTo(120, transfer(107, 1000n))
    yield* accept(payment.id, undefined, {})
    yield* stands(payment.id, "confirmed 1000 0xt107", "accepted found_late 1000")
    expect(yield* Effect.flip(cancel(payment))).toEqual(PaymentNotPending.of("confirmed"))
  })
})

describe("a payment whose money has been seen, when it is cancelled,", () => {
  /** Cancelled at second 111, with half of its money two blocks deep. */
  const cancelledInPart = (corroborated = true) =>
    Effect.gen(function* () {
      const payment = yield* start
      yield* TestClock.setTime(111_000)
      yield* tick({ head: 111, transfers: [transfer(110, 500n)], corroborated })
      yield* cancel(payment)
      return payment
    })

  test("fails at once, and its money is an exception that can be decided like any other", function* () {
    const payment = yield* cancelledInPart()
    const { id } = payment
    const first = yield* look(id)
    yield* stands(id, "failed: cancelled 500 0xt110", "open underpaid 500")
    expect([first.payment?.endedAt, first.events]).toEqual([111_000, ["payment.detecting", "payment.failed"]])
    expect(yield* cancel(payment)).toEqual(first.payment)
    // The other half no longer confirms anything.
    yield* scanTo(130, transfer(120, 500n))
    yield* stands(id, "failed: cancelled 500 0xt110", "open underpaid 500", "open found_late 500")
    yield* refunded((yield* exceptionOf(id, { txHash: "0xt110" })).id)
    yield* accept(id, undefined, {})
    yield* stands(id, "confirmed 500 0xt120", "refunded underpaid 500", "accepted found_late 500")
  })

  test("expires where only one provider has the money, which is found late once another one has it", function* () {
    const payment = yield* cancelledInPart(false)
    yield* stands(payment.id, "expired: cancelled")
    expect((yield* look(payment.id)).events).toEqual(["payment.detecting", "payment.expired"])
    yield* TestClock.setTime(112_000)
    yield* tick({ head: 112, transfers: [transfer(112, 500n)] })
    expect((yield* look(payment.id)).exceptions).toEqual(["open found_late 500"])
  })

  test("reports no money that a reorg removes afterwards", function* () {
    const payment = yield* cancelledInPart()
    yield* tick({ head: 112, ancestor: 109 })
    expect((yield* look(payment.id)).exceptions).toEqual(["gone underpaid 500"])
  })
})

describe("a payment that is not open is not cancelled", () => {
  test("once it has ended", function* () {
    const payment = yield* paidBy(end)
    expect(yield* Effect.flip(cancel(payment))).toEqual(PaymentNotPending.of("expired"))
  })

  test("where there is none", function* () {
    expect(yield* cancelPayment(() => Effect.succeed(undefined))).toBeUndefined()
  })
})
