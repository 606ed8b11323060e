import { describe, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { acceptException, refundException } from "../../src/Payments/decisions/resolve.ts"
import * as ExceptionLists from "../../src/Payments/ExceptionListRepo.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import type { Refunded, ReturnedMoney } from "../../src/Payments/refunds.ts"
import { Reader } from "../../src/Sql.ts"
import { inTransaction, rows } from "../lib/store.ts"
import {
  attributedBy,
  end,
  exceptionOf,
  expiredWith,
  hash,
  look,
  paidBy,
  refunded,
  refusal,
  stands,
  start,
  test,
  testOfPair,
  unattributed
} from "./deciding.ts"
import { block, losePayment, lost, network, scanTo, tick, transfer, usdcElsewhere } from "./settling.ts"

/** An expired payment with 7 and 8 that came late, and the ids of their exceptions. */
const withTwo = Effect.gen(function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 7n), transfer(end + 6, 8n))
  const [seven, eight] = [yield* exceptionOf(id, { amount: 7n }), yield* exceptionOf(id, { amount: 8n })]
  return { id, seven: seven.id, eight: eight.id }
})

test("refunded: where several are open it needs names, closes those, and leaves the others open", function* () {
  const { eight, id, seven } = yield* withTwo
  const before = yield* look(id)
  expect(yield* Effect.flip(refunded(id))).toMatchObject({
    _tag: "RefundUnclear",
    message: expect.stringMatching(/2 open exceptions: exc_.* \(late, 7 base units of ETH, 0xt.*\), exc_.*--exception/)
  })
  expect(yield* look(id)).toEqual(before)
  const result = yield* refunded(id, { exceptions: [seven] })
  expect(result?.closed).toMatchObject([
    { id: seven, kind: "late", amount: 7n, currency: "ETH", txHash: `0xt${end + 5}` }
  ])
  yield* stands(id, "expired", "refunded late 7", "open late 8")
  // Money that has come since the operator's look is not what was named.
  yield* scanTo(end + 19, transfer(end + 15, 9n))
  yield* refunded(id, { exceptions: [eight] })
  yield* stands(id, "expired", "refunded late 7", "refunded late 8", "open late 9")
  yield* refunded(id)
  expect(yield* Effect.flip(refunded(id))).toMatchObject({ _tag: "NothingToDecide" })
  expect(yield* refunded("pay_none")).toBeUndefined()
})

test("refunded: names that are not its open exceptions close nothing, nor those beside them", function* () {
  const { eight, id, seven } = yield* withTwo
  yield* refunded(id, { exceptions: [seven] })
  const before = yield* look(id)
  const reason = (exceptions: ReadonlyArray<string>, amount?: bigint) => refusal(refunded(id, { exceptions, amount }))
  expect(yield* reason([eight, "exc_none"])).toContain("has no exception exc_none")
  expect(yield* reason([eight, seven])).toContain("is refunded, not open")
  expect(yield* reason([eight], 9n)).toContain("less than 9")
  expect(yield* look(id)).toEqual(before)
  yield* scanTo(end + 19, transfer(end + 15, 9n))
  const nine = yield* exceptionOf(id, { amount: 9n })
  expect(yield* reason([eight, nine.id], 8n)).toContain("of one exception")
})

test("refunded: beyond the given amount the rest stays open, and refunded money no longer counts", function* () {
  const { id } = yield* paidBy(130, transfer(120, 1000n, unattributed))
  const result = yield* refunded(id, { amount: 400n })
  expect(result?.closed).toMatchObject([{ kind: "unattributed", amount: 400n }])
  yield* scanTo(131, transfer(125, 1n))
  yield* stands(id, "detecting 601 0xt125", "open unattributed 600")
  // There is money that counts by now: the exception is named.
  yield* refunded(id, { amount: 600n, exceptions: [(yield* exceptionOf(id)).id] })
  yield* scanTo(132, transfer(126, 1n))
  yield* stands(id, "detecting 2 0xt125", "refunded unattributed 1000")
})

test("accept: a payment cannot be accepted for refunded money, but for what came since", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 1000n))
  yield* refunded(id)
  const before = yield* look(id)
  for (const tx of [undefined, `0xt${end + 5}`]) {
    expect(yield* Effect.flip(accept(id, tx))).toMatchObject({
      _tag: "NothingToDecide",
      message: `What came for ${id} was sent back: there is nothing to accept`
    })
  }
  expect(yield* look(id)).toEqual(before)
  yield* scanTo(end + 19, transfer(end + 15, 1000n))
  expect(yield* refusal(accept(id, `0xt${end + 5}`))).toBe(
    `What 0xt${end + 5} brought was sent back: ${id} cannot be accepted for it`
  )
  expect((yield* accept(id, undefined))?.payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 15}` })
})

test("accept: what was found late and sent back keeps no payment confirmed that was accepted for other money", function* () {
  const { id } = yield* expiredWith(transfer(200, 1000n))
  yield* refunded(id)
  yield* scanTo(end + 19, transfer(end + 15, 1000n))
  expect((yield* accept(id, undefined))?.payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 15}` })
  yield* tick({ head: end + 20, ancestor: end + 14, finalized: end + 10 })
  yield* tick({ head: end + 40, finalized: end + 30 })
  expect((yield* look(id)).payment).toMatchObject({ status: "failed", failureReason: "reorged" })
})

test("refunded: money that was sent back confirms nothing when its transaction turns up; the payment expires", function* () {
  const { id } = yield* paidBy(130, transfer(120, 1000n, unattributed))
  yield* stands(id, "detecting 1000", "open unattributed 1000")
  yield* refunded(id)
  // Of that block or one before, and of several transactions as well.
  yield* attributedBy(131, transfer(120, 300n, { position: "call:0xa" }), transfer(117, 700n, { position: "call:0xb" }))
  yield* stands(id, "pending", "refunded unattributed 1000")
  expect((yield* look(id)).events).toEqual(["payment.detecting"])
  yield* scanTo(end)
  yield* stands(id, "expired", "refunded unattributed 1000")
})

test("refunded: other money than what was sent back counts", function* () {
  const { id } = yield* paidBy(130, transfer(110, 400n), transfer(120, 1000n, unattributed))
  yield* refunded(id, { exceptions: [(yield* exceptionOf(id)).id] })
  yield* attributedBy(131, transfer(120, 1100n, { position: "call:0xa" }))
  yield* stands(id, "detecting 500 0xt110", "refunded unattributed 1000")
  yield* scanTo(140, transfer(131, 500n))
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt131" })
})

test("refunded: refunded money that was paid again does not replace orphaned money", function* () {
  const { id } = yield* paidBy(130, transfer(110, 1000n), transfer(120, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["open overpaid 1000"])
  yield* refunded(id)
  // A branch on which the second one came first opens nothing again.
  const again = [transfer(120, 1000n), { ...transfer(125, 1000n), txHash: "0xt110" }]
  yield* tick({ head: 131, ancestor: 105, finalized: 104, transfers: again })
  expect((yield* look(id)).exceptions).toEqual(["refunded overpaid 1000"])
  yield* tick({ head: 132, ancestor: 121, finalized: 104 })
  expect((yield* look(id)).payment?.status).toBe("confirmed")
  yield* tick({ head: 137, finalized: 125 })
  yield* stands(id, "failed: reorged 0xt110", "open reorged 1000", "refunded overpaid 1000")
  const after = yield* look(id)
  expect(yield* Effect.flip(accept(id, undefined))).toMatchObject({ _tag: "TransactionNotProven" })
  // Nor is it what the payment can be accepted for.
  expect(yield* refusal(accept(id, "0xt120"))).toContain("was sent back")
  expect(yield* look(id)).toEqual(after)
})

for (const scanIs of ["after", "before"]) {
  test(`refunded: without the money that replaced orphaned money a payment is undone, with a scan ${scanIs} it`, function* () {
    const { id } = yield* paidBy(130, transfer(110, 1000n, unattributed), transfer(120, 1000n))
    yield* tick({ head: 131, ancestor: 115, finalized: 104 })
    yield* tick({ head: 150, finalized: 140 })
    const settlement = yield* Settlement
    const scan = inTransaction(Effect.asVoid(settlement.settle({ network, head: block(150) }, [])))
    const both = scanIs === "after" ? [refunded(id), scan] : [scan, refunded(id)]
    yield* Effect.all(both, { concurrency: "unbounded", discard: true })
    yield* tick({ head: 151 })
    yield* stands(id, "failed: reorged 0xt120", "open reorged 1000", "refunded unattributed 1000")
  })
}

for (const [outcome, decide] of [
  ["refunded", (id: string) => Effect.asVoid(refundException(id, undefined, undefined, {}))],
  ["accepted", (id: string) => Effect.asVoid(acceptException(id, undefined, {}))]
] as const) {
  test(`money of a lost payment that was ${outcome} is not a new matter when its transaction turns up`, function* () {
    yield* start
    const address = lost.toLowerCase()
    const reader = yield* Reader
    yield* losePayment()
    yield* scanTo(130, transfer(120, 5n, { ...unattributed, address }))
    const [open] = yield* ExceptionLists.open(reader, { limit: 10 })
    yield* decide(open?.id ?? "")
    yield* attributedBy(131, transfer(118, 5n, { address, position: "call:0xa" }))
    expect(yield* Exceptions.unknownAt(reader, network, address)).toMatchObject([{ status: outcome, amount: 5n }])
    yield* scanTo(140, transfer(135, 6n, { address }))
    expect(yield* ExceptionLists.open(reader, { limit: 10 })).toMatchObject([{ kind: "unknown_payment", amount: 6n }])
  })
}

/** A payment of 1,000 with these transfers: those up to block 110 have the confirmations. */
const openWith = (...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.tap(start, Effect.zipRight(TestClock.setTime(112_000), tick({ head: 112, transfers })))

/** `amount` of what counts for it was sent back. */
const back = ({ id }: Payment, amount: bigint, txHash?: string, over: Partial<ReturnedMoney> = {}) =>
  refunded(id, { amount, detail: { txHash }, ...over })

const exceptionsOf = ({ id }: Payment) => Effect.flatMap(Reader, (reader) => Exceptions.ofPayment(reader, id))

describe("what was sent back of an open payment's money", () => {
  test("no longer counts: the other half confirms nothing", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 500n, hash("a"))
    yield* stands(payment.id, "pending", "refunded underpaid 500")
    expect((yield* look(payment.id)).events).toEqual(["payment.detecting"])
    yield* scanTo(130, transfer(120, 500n))
    yield* stands(payment.id, "detecting 500 0xt120", "refunded underpaid 500")
    expect((yield* look(payment.id)).events).toEqual(["payment.detecting", "payment.detecting"])
    yield* scanTo(end)
    const exceptions = ["refunded underpaid 500", "open underpaid 500"]
    yield* stands(payment.id, "failed: insufficient_amount 500 0xt120", ...exceptions)
    const reported = yield* rows<{ body: string }>("SELECT body FROM events WHERE kind = 'payment.exception'")
    expect(JSON.parse(reported[0]?.body ?? "").exception).toMatchObject({
      ...{ kind: "underpaid", resolution: "refunded", amount: "500" },
      refunds: [{ amount: "500", txHash: hash("a") }]
    })
  })

  test("no longer counts where one provider reports its transaction in another block, too", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 500n)
    const again = transfer(110, 500n, { blockHash: "0xfalse" })
    yield* tick({ head: 113, transfers: [again], corroborated: false })
    yield* stands(payment.id, "pending", "refunded underpaid 500")
    // Other money of one provider's shows.
    yield* tick({ head: 114, transfers: [transfer(111, 300n)], corroborated: false })
    yield* stands(payment.id, "detecting 300 0xt111", "refunded underpaid 500")
  })

  test("leaves no reason for the payment to fail", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 500n)
    yield* scanTo(end)
    yield* stands(payment.id, "expired", "refunded underpaid 500")
    expect((yield* look(payment.id)).events).toEqual(["payment.detecting", "payment.expired"])
  })

  test("in parts makes the payment miss more, with its event, and what is left is underpaid in the end", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 200n, hash("a"))
    yield* stands(payment.id, "detecting 300 0xt110", "refunded underpaid 200")
    expect((yield* look(payment.id)).events).toEqual(["payment.detecting", "payment.updated"])
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
    yield* stands(payment.id, "failed: insufficient_amount 200 0xt110", "open underpaid 200")
    yield* refunded(payment.id)
    expect(yield* exceptionsOf(payment)).toMatchObject([{ id: noted?.id, status: "refunded", amount: 500n }])
  })

  test("without its transaction gets none from another refund of a different amount", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 200n)
    yield* back(payment, 100n, hash("a"))
    yield* stands(payment.id, "detecting 200 0xt110", "refunded underpaid 300")
    const refunds = [
      { amount: 200n, txHash: undefined },
      { amount: 100n, txHash: hash("a") }
    ]
    expect(yield* exceptionsOf(payment)).toMatchObject([{ sentBack: 300n, refunds }])
  })

  test("is taken from the transactions that came first", function* () {
    const payment = yield* openWith(transfer(110, 300n), transfer(109, 400n))
    const { closed } = (yield* back(payment, 500n)) ?? {}
    expect(closed?.map(({ amount, txHash }) => `${txHash} ${amount}`)).toEqual(["0xt109 400", "0xt110 100"])
    yield* stands(payment.id, "detecting 200 0xt110", "refunded underpaid 400", "refunded underpaid 100")
  })

  test("stays so when a reorg mines its transaction again, and takes nothing from another one", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 500n)
    yield* tick({ head: 113, ancestor: 109 })
    yield* stands(payment.id, "pending", "refunded underpaid 500")
    yield* tick({ head: 114, transfers: [transfer(114, 500n, { txHash: "0xt110" })] })
    yield* stands(payment.id, "pending", "refunded underpaid 500")
    yield* scanTo(130, transfer(115, 1000n))
    yield* stands(payment.id, "confirmed 1000 0xt115", "refunded underpaid 500")
  })

  test("may be coins without a transaction, which no longer count at once", function* () {
    const { id } = yield* openWith(transfer(110, 300n, unattributed), transfer(111, 100n))
    yield* stands(id, "detecting 400 0xt111", "open unattributed 300")
    yield* refundException((yield* exceptionOf(id)).id, undefined, 300n, {})
    yield* stands(id, "detecting 100 0xt111", "refunded unattributed 300")
    expect((yield* look(id)).events).toEqual(["payment.detecting", "payment.updated"])
  })
})

describe("a refund of an open payment's money", () => {
  test("counts once, however often it is recorded with its transaction", function* () {
    const payment = yield* openWith(transfer(109, 400n), transfer(110, 400n))
    const partsOf = (made: Refunded | undefined) => made?.closed.map(({ amount, id }) => `${amount} ${id}`).toSorted()
    const first = yield* back(payment, 500n, hash("a"))
    const before = yield* look(payment.id)
    expect(partsOf(yield* back(payment, 500n, hash("a")))).toEqual(partsOf(first))
    expect(yield* Effect.flip(back(payment, 100n, hash("a")))).toMatchObject({
      _tag: "AlreadyDecided",
      message: expect.stringContaining("is noted already, as a refund of pay_")
    })
    expect(yield* look(payment.id)).toEqual(before)
  })

  test("that was recorded without its transaction gets that later", function* () {
    const payment = yield* openWith(transfer(109, 400n), transfer(110, 400n))
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

  test("says how much it is, since more may come, and is no more than what counts", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    const before = yield* look(payment.id)
    expect(yield* Effect.flip(refunded(payment.id))).toMatchObject({
      _tag: "RefundUnclear",
      message: expect.stringContaining("--amount")
    })
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
    expect(yield* Effect.flip(back(payment, 100n))).toMatchObject({
      _tag: "MoneyNotConfirmed",
      message: expect.stringMatching(/^No second provider of base\.test has what counts for .*--uncorroborated$/)
    })
    expect(yield* look(payment.id)).toEqual(before)
    yield* refunded(payment.id, { amount: 100n, detail: { uncorroborated: true } })
    expect((yield* look(payment.id)).payment).toMatchObject({ status: "pending", amountReceived: undefined })
  })

  test("does not stand for an exception that is open, nor the other way round", function* () {
    const payment = yield* openWith(transfer(109, 500n), usdcElsewhere(110, 7n))
    expect(yield* Effect.flip(back(payment, 7n))).toMatchObject({
      _tag: "RefundUnclear",
      message: expect.stringMatching(/500 base units of ETH count .*wrong_token, 7 .*--counted.*--exception/)
    })
    const before = (yield* exceptionsOf(payment)).map(({ id }) => id)
    expect(yield* Effect.flip(back(payment, 7n, undefined, { counted: true, exceptions: before }))).toMatchObject({
      _tag: "RefundUnclear"
    })
    yield* back(payment, 500n, undefined, { counted: true })
    yield* stands(payment.id, "pending", "open wrong_token 7", "refunded underpaid 500")
    // With nothing that counts, the only open exception is meant again.
    yield* refunded(payment.id)
    expect((yield* look(payment.id)).exceptions).toContain("refunded wrong_token 7")
  })

  test("is not recorded for an ended payment, whose money is in its exceptions, nor for a confirmed one", function* () {
    const payment = yield* openWith(transfer(110, 1000n))
    yield* scanTo(130)
    expect(yield* Effect.flip(back(payment, 1n, undefined, { counted: true }))).toMatchObject({
      _tag: "NothingToDecide",
      message: expect.stringContaining("your own shop")
    })
  })
})
