import { describe, expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { WatchedAddresses } from "../../src/Chains/ledger/WatchedAddresses.ts"
import { type Payment, PaymentNotPending } from "../../src/Domain/Payment.ts"
import { cancelPayment } from "../../src/Payments/cancellation.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { Reader } from "../../src/Sql.ts"
import { end, look, refunded, start, test } from "./deciding.ts"
import { address, lastOnTime, scanTo, tick, transfer, usdcElsewhere } from "./settling.ts"

const cancel = ({ id }: Payment) =>
  Effect.map(
    cancelPayment((db) => Repo.byId(db, id)),
    (found) => found?.payment
  )

/** The exception of the transaction in that block. */
const exceptionOf = (id: Payment["id"], blockNumber: number) =>
  Effect.map(
    Effect.flatMap(Reader, (reader) => Exceptions.ofPayment(reader, id)),
    (all) =>
      all.find(({ txHash }) => txHash === `0xt${blockNumber}`) ?? expect.fail(`no exception of block ${blockNumber}`)
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

  test("is still watched after a restart", function* () {
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

  test("loses no money that is mined afterwards, in time or too late, nor another token", function* () {
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

  test("can be accepted for money that came afterwards, or the money refunded", function* () {
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
    const first = yield* look(payment.id)
    expect(first).toMatchObject({
      payment: { status: "failed", failureReason: "cancelled", amountReceived: 500n, endedAt: 111_000 },
      events: ["payment.detecting", "payment.failed"],
      exceptions: ["open underpaid 500"]
    })
    expect(yield* cancel(payment)).toEqual(first.payment)
    // The other half no longer confirms anything.
    yield* scanTo(130, transfer(120, 500n))
    expect(yield* look(payment.id)).toMatchObject({
      payment: first.payment,
      exceptions: ["open underpaid 500", "open found_late 500"]
    })
    yield* refunded(payment.id, { exceptions: [(yield* exceptionOf(payment.id, 110)).id] })
    expect((yield* look(payment.id)).exceptions).toEqual(["refunded underpaid 500", "open found_late 500"])
    expect((yield* accept(payment.id, undefined))?.payment).toMatchObject({
      status: "confirmed",
      amountReceived: 500n,
      txHash: "0xt120"
    })
  })

  test("expires where only one provider has the money, which is found late once another one has it", function* () {
    const payment = yield* cancelledInPart(false)
    expect(yield* look(payment.id)).toMatchObject({
      payment: { ...cancelled, amountReceived: undefined, txHash: undefined },
      events: ["payment.detecting", "payment.expired"],
      exceptions: []
    })
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
    const payment = yield* start
    yield* scanTo(end)
    expect(yield* Effect.flip(cancel(payment))).toEqual(PaymentNotPending.of("expired"))
  })

  test("where there is none", function* () {
    expect(yield* cancelPayment(() => Effect.succeed(undefined))).toBeUndefined()
  })
})
