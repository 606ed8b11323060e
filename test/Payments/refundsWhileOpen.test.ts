import { describe, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { refundException } from "../../src/Payments/decisions/resolve.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import type { Refunded, ReturnedMoney } from "../../src/Payments/refunds.ts"
import { Reader } from "../../src/Sql.ts"
import { end, hash, look, refunded, start, test, testOfPair, unattributed } from "./deciding.ts"
import { scanTo, startWith, tick, transfer, usdcElsewhere } from "./settling.ts"

/** A payment of 1,000 with these transfers: those up to block 110 have the confirmations. */
const paidWith = (...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* TestClock.setTime(112_000)
    yield* tick({ head: 112, transfers })
    return payment
  })

/** `amount` of what counts for it was sent back. */
const back = ({ id }: Payment, amount: bigint, txHash?: string, over: Partial<ReturnedMoney> = {}) =>
  refunded(id, { amount, detail: { txHash }, ...over })

const exceptionsOf = ({ id }: Payment) => Effect.flatMap(Reader, (reader) => Exceptions.ofPayment(reader, id))

describe("what was sent back of an open payment's money", () => {
  test("no longer counts: the other half confirms nothing", function* () {
    const payment = yield* paidWith(transfer(110, 500n))
    yield* back(payment, 500n, hash("a"))
    expect(yield* look(payment.id)).toMatchObject({
      payment: { status: "pending", amountReceived: undefined, txHash: undefined },
      events: ["payment.detecting"],
      exceptions: ["refunded underpaid 500"]
    })
    yield* scanTo(130, transfer(120, 500n))
    expect(yield* look(payment.id)).toMatchObject({
      payment: { status: "detecting", amountReceived: 500n, txHash: "0xt120" },
      events: ["payment.detecting", "payment.detecting"]
    })
    yield* scanTo(end)
    expect(yield* look(payment.id)).toMatchObject({
      payment: { status: "failed", failureReason: "insufficient_amount", amountReceived: 500n },
      exceptions: ["refunded underpaid 500", "open underpaid 500"]
    })
  })

  test("no longer counts where one provider reports its transaction in another block, too", function* () {
    const payment = yield* paidWith(transfer(110, 500n))
    yield* back(payment, 500n)
    const again = transfer(110, 500n, { blockHash: "0xfalse" })
    yield* tick({ head: 113, transfers: [again], corroborated: false })
    expect((yield* look(payment.id)).payment).toMatchObject({ status: "pending", amountReceived: undefined })
    // Other money of one provider's shows.
    yield* tick({ head: 114, transfers: [transfer(111, 300n)], corroborated: false })
    expect((yield* look(payment.id)).payment).toMatchObject({ status: "detecting", amountReceived: 300n })
  })

  test("leaves no reason for the payment to fail", function* () {
    const payment = yield* paidWith(transfer(110, 500n))
    yield* back(payment, 500n)
    yield* scanTo(end)
    expect(yield* look(payment.id)).toMatchObject({
      payment: { status: "expired", failureReason: undefined, amountReceived: undefined },
      events: ["payment.detecting", "payment.expired"]
    })
  })

  test("in parts makes the payment miss more, with its event, and what is left is underpaid in the end", function* () {
    const payment = yield* paidWith(transfer(110, 500n))
    yield* back(payment, 200n, hash("a"))
    expect(yield* look(payment.id)).toMatchObject({
      payment: { status: "detecting", amountReceived: 300n },
      events: ["payment.detecting", "payment.updated"],
      exceptions: ["refunded underpaid 200"]
    })
    yield* TestClock.setTime(113_000)
    yield* back(payment, 100n, hash("b"))
    const [noted] = yield* exceptionsOf(payment)
    expect(noted).toMatchObject({
      txHash: "0xt110",
      amount: 300n,
      sentBack: 300n,
      refunds: [
        { amount: 200n, txHash: hash("a"), at: 112_000 },
        { amount: 100n, txHash: hash("b"), at: 113_000 }
      ]
    })
    yield* scanTo(end)
    expect(yield* look(payment.id)).toMatchObject({
      payment: { status: "failed", failureReason: "insufficient_amount", amountReceived: 200n },
      exceptions: ["open underpaid 200"]
    })
    yield* refunded(payment.id)
    expect(yield* exceptionsOf(payment)).toMatchObject([{ id: noted?.id, status: "refunded", amount: 500n }])
  })

  test("without its transaction gets none from another refund of a different amount", function* () {
    const payment = yield* paidWith(transfer(110, 500n))
    yield* back(payment, 200n)
    yield* back(payment, 100n, hash("a"))
    expect((yield* look(payment.id)).payment).toMatchObject({ status: "detecting", amountReceived: 200n })
    expect(yield* exceptionsOf(payment)).toMatchObject([
      {
        sentBack: 300n,
        refunds: [
          { amount: 200n, txHash: undefined },
          { amount: 100n, txHash: hash("a") }
        ]
      }
    ])
  })

  test("is taken from the transactions that came first", function* () {
    const payment = yield* paidWith(transfer(110, 300n), transfer(109, 400n))
    const { closed } = (yield* back(payment, 500n)) ?? {}
    expect(closed?.map(({ amount, txHash }) => [txHash, amount])).toEqual([
      ["0xt109", 400n],
      ["0xt110", 100n]
    ])
    expect(yield* look(payment.id)).toMatchObject({
      payment: { amountReceived: 200n, txHash: "0xt110" },
      exceptions: expect.arrayContaining(["refunded underpaid 400", "refunded underpaid 100"])
    })
  })

  test("stays so when a reorg mines its transaction again, and takes nothing from another one", function* () {
    const payment = yield* paidWith(transfer(110, 500n))
    yield* back(payment, 500n)
    yield* tick({ head: 113, ancestor: 109 })
    expect((yield* look(payment.id)).exceptions).toEqual(["refunded underpaid 500"])
    yield* tick({ head: 114, transfers: [transfer(114, 500n, { txHash: "0xt110" })] })
    expect((yield* look(payment.id)).payment).toMatchObject({ status: "pending", amountReceived: undefined })
    yield* scanTo(130, transfer(115, 1000n))
    expect(yield* look(payment.id)).toMatchObject({
      payment: { status: "confirmed", amountReceived: 1000n, txHash: "0xt115" },
      exceptions: ["refunded underpaid 500"]
    })
  })

  test("is reported with the exception that records it", function* () {
    const payment = yield* paidWith(transfer(110, 500n))
    yield* back(payment, 500n, hash("a"))
    const reader = yield* Reader
    const events = yield* reader.all<{ body: string }>("SELECT body FROM events WHERE kind = 'payment.exception'")
    expect(events.map(({ body }) => JSON.parse(body).exception)).toMatchObject([
      { kind: "underpaid", resolution: "refunded", amount: "500", refunds: [{ amount: "500", txHash: hash("a") }] }
    ])
  })

  test("may be dust, of many small transfers", function* () {
    const payment = yield* startWith({ amount: 1_000_000n })
    const small = (place: number) => transfer(110, 100n, { txHash: `0xd${place}`, position: `tx:${place}`, place })
    yield* tick({ head: 112, transfers: [small(1), small(2), small(3)] })
    yield* back(payment, 250n)
    expect(yield* look(payment.id)).toMatchObject({
      payment: { status: "detecting", amountReceived: 50n },
      exceptions: ["refunded underpaid 250"]
    })
    yield* tick({ head: 113, transfers: [small(4)].map((one) => ({ ...one, blockHash: "0x113", blockNumber: 113 })) })
    expect((yield* look(payment.id)).payment?.amountReceived).toBe(150n)
  })
})

describe("a refund of an open payment's money", () => {
  test("counts once, however often it is recorded with its transaction", function* () {
    const payment = yield* paidWith(transfer(109, 400n), transfer(110, 400n))
    const partsOf = ({ closed }: Refunded) => closed.map(({ amount, id }) => `${amount} ${id}`).toSorted()
    const first = yield* back(payment, 500n, hash("a"))
    const before = yield* look(payment.id)
    const again = yield* back(payment, 500n, hash("a"))
    expect(again && partsOf(again)).toEqual(first && partsOf(first))
    expect(yield* Effect.flip(back(payment, 100n, hash("a")))).toMatchObject({
      _tag: "AlreadyDecided",
      message: expect.stringContaining("is noted already, as a refund of pay_")
    })
    expect(yield* look(payment.id)).toEqual(before)
  })

  test("that was recorded without its transaction gets that later", function* () {
    const payment = yield* paidWith(transfer(109, 400n), transfer(110, 400n))
    yield* back(payment, 500n)
    const before = yield* look(payment.id)
    yield* back(payment, 500n, hash("a"))
    expect(yield* look(payment.id)).toEqual(before)
    const parts = (yield* exceptionsOf(payment)).flatMap(({ refunds }) => refunds)
    expect(parts.map(({ amount, txHash }) => `${amount} ${txHash}`).toSorted()).toEqual([
      `100 ${hash("a")}`,
      `400 ${hash("a")}`
    ])
  })

  test("says how much it is, since more may come", function* () {
    const payment = yield* paidWith(transfer(110, 500n))
    expect(yield* Effect.flip(refunded(payment.id))).toMatchObject({
      _tag: "RefundUnclear",
      message: expect.stringContaining("--amount")
    })
  })

  test("is no more than what counts", function* () {
    const payment = yield* paidWith(transfer(110, 500n))
    const before = yield* look(payment.id)
    expect(yield* Effect.flip(back(payment, 501n))).toMatchObject({
      _tag: "DecisionInvalid",
      field: "amount",
      message: expect.stringContaining("at most 500")
    })
    expect(yield* look(payment.id)).toEqual(before)
  })

  testOfPair("of what one of two providers alone has needs the operator's flag", function* () {
    const payment = yield* start
    yield* tick({ head: 110, transfers: [transfer(109, 100n)], corroborated: false })
    yield* tick({ head: 115, transfers: [transfer(111, 500n)] })
    yield* back(payment, 500n)
    const before = yield* look(payment.id)
    const refused = {
      _tag: "MoneyNotConfirmed",
      message: expect.stringMatching(/^No second provider of base\.test has what counts for .*--uncorroborated$/)
    }
    expect(yield* Effect.flip(back(payment, 100n))).toMatchObject(refused)
    expect(yield* look(payment.id)).toEqual(before)
    yield* refunded(payment.id, { amount: 100n, detail: { uncorroborated: true } })
    expect((yield* look(payment.id)).payment).toMatchObject({ status: "pending", amountReceived: undefined })
  })

  test("does not stand for an exception that is open, nor the other way round", function* () {
    const payment = yield* paidWith(transfer(109, 500n), usdcElsewhere(110, 7n))
    expect(yield* Effect.flip(back(payment, 7n))).toMatchObject({
      _tag: "RefundUnclear",
      message: expect.stringMatching(/500 base units of ETH count .*wrong_token, 7 .*--counted.*--exception/)
    })
    const before = (yield* exceptionsOf(payment)).map(({ id }) => id)
    expect(yield* Effect.flip(back(payment, 7n, undefined, { counted: true, exceptions: before }))).toMatchObject({
      _tag: "RefundUnclear"
    })
    yield* back(payment, 500n, undefined, { counted: true })
    expect((yield* look(payment.id)).exceptions.toSorted()).toEqual(["open wrong_token 7", "refunded underpaid 500"])
    // With nothing that counts, the only open exception is meant again.
    yield* refunded(payment.id)
    expect((yield* look(payment.id)).exceptions).toContain("refunded wrong_token 7")
  })

  test("is not recorded for an ended payment, whose money is in its exceptions, nor for a confirmed one", function* () {
    const payment = yield* paidWith(transfer(110, 1000n))
    yield* scanTo(130)
    expect(yield* Effect.flip(back(payment, 1n, undefined, { counted: true }))).toMatchObject({
      _tag: "NothingToDecide",
      message: expect.stringContaining("your own shop")
    })
  })
})

test("coins without a transaction that are sent back while their payment is open no longer count, at once", function* () {
  const payment = yield* paidWith(transfer(110, 300n, unattributed), transfer(111, 100n))
  expect((yield* look(payment.id)).payment?.amountReceived).toBe(400n)
  const [one] = yield* exceptionsOf(payment)
  yield* refundException(one?.id ?? "", undefined, 300n, {})
  expect(yield* look(payment.id)).toMatchObject({
    payment: { status: "detecting", amountReceived: 100n },
    events: ["payment.detecting", "payment.updated"],
    exceptions: ["refunded unattributed 300"]
  })
})
