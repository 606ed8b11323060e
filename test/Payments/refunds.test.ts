import { describe, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as BooksRepo from "../../src/Books/BooksRepo.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { addUp } from "../../src/Domain/LedgerRow.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { accept } from "../../src/Payments/decisions/accept.ts"
import { beginPaying, dropRefund, nameRefund, noteRefund } from "../../src/Payments/decisions/refund.ts"
import { owedRefunds } from "../../src/Payments/decisions/sweepRefunds.ts"
import * as ExceptionLists from "../../src/Payments/ExceptionsRepo.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Refunds from "../../src/Payments/RefundsRepo.ts"
import { Reader } from "../../src/Sql.ts"
import { inTransaction } from "../lib/store.ts"
import {
  attributedBy,
  end,
  exceptionOf,
  expiredWith,
  hash,
  look,
  owner,
  paidBy,
  receiver,
  refunded,
  refusal,
  stands,
  start,
  test,
  testOfPair,
  unattributed,
  undone
} from "./deciding.ts"
import {
  block,
  corroborate,
  losePayment,
  lost,
  network,
  scanTo,
  startWith,
  tick,
  transfer,
  usdcElsewhere
} from "./settling.ts"

/** An expired payment with 7 and 8 that came late, and the ids of their exceptions. */
const withTwo = Effect.gen(function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 7n), transfer(end + 6, 8n))
  const [seven, eight] = [yield* exceptionOf(id, { amount: 7n }), yield* exceptionOf(id, { amount: 8n })]
  return { id, seven: seven.id, eight: eight.id }
})

test("refunded: of a payment, what is open goes back, the oldest first; one exception alone by its id", function* () {
  const { eight, id, seven } = yield* withTwo
  const before = yield* look(id)
  expect(yield* refusal(refunded(id))).toContain("given, and be at most 0.000000000000000015 ETH (15 ")
  expect(yield* refusal(refunded(seven, { amount: 8n }))).toContain("ETH (7 in base units)")
  expect(yield* look(id)).toEqual(before)
  const result = yield* refunded(id, { amount: 9n })
  expect(result?.refund.parts).toMatchObject([
    { exception: seven, amount: 7n },
    { exception: eight, amount: 2n }
  ])
  yield* stands(id, "expired", "refunded late 7", "open late 6")
  // Money that has come since is not what was named.
  yield* scanTo(end + 19, transfer(end + 15, 9n))
  yield* refunded(eight)
  yield* stands(id, "expired", "refunded late 7", "refunded late 8", "open late 9")
  yield* refunded(id)
  expect(yield* Effect.flip(refunded(id))).toMatchObject({ _tag: "NothingToDecide" })
  expect(yield* refunded("pay_none")).toBeUndefined()
})

test("refunded: beyond the given amount the rest stays open, and refunded money no longer counts", function* () {
  const { id } = yield* paidBy(130, transfer(120, 1000n, unattributed))
  const exception = (yield* exceptionOf(id)).id
  expect((yield* refunded(exception, { amount: 400n }))?.refund).toMatchObject({
    amount: 400n,
    parts: [{ block: 120 }]
  })
  yield* scanTo(131, transfer(125, 1n))
  yield* stands(id, "detecting 601 0xt125", "open unattributed 600")
  yield* refunded(exception, { amount: 600n })
  yield* scanTo(132, transfer(126, 1n))
  yield* stands(id, "detecting 2 0xt125", "refunded unattributed 1000")
})

test("accept: a payment cannot be accepted for refunded money, but for what came since", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 1000n))
  yield* refunded(id)
  const before = yield* look(id)
  for (const txHash of [undefined, `0xt${end + 5}`]) {
    expect(yield* Effect.flip(accept(id, undefined, { txHash }))).toMatchObject({
      _tag: "NothingToDecide",
      message: `What came for ${id} was sent back: there is nothing to accept`
    })
  }
  expect(yield* look(id)).toEqual(before)
  yield* scanTo(end + 19, transfer(end + 15, 1000n))
  expect(yield* refusal(accept(id, undefined, { txHash: `0xt${end + 5}` }))).toBe(
    `What 0xt${end + 5} brought was sent back: ${id} cannot be accepted for it`
  )
  expect((yield* accept(id, undefined, {}))?.payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 15}` })
})

test("accept: what was found late and sent back keeps no payment confirmed that was accepted for other money", function* () {
  const { id } = yield* expiredWith(transfer(200, 1000n))
  yield* refunded(id)
  yield* scanTo(end + 19, transfer(end + 15, 1000n))
  expect((yield* accept(id, undefined, {}))?.payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 15}` })
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
  expect((yield* look(id)).events).toEqual(["payment.detecting", "payment.updated"])
  yield* scanTo(end)
  yield* stands(id, "expired", "refunded unattributed 1000")
})

test("refunded: other money than what was sent back counts", function* () {
  const { id } = yield* paidBy(130, transfer(110, 400n), transfer(120, 1000n, unattributed))
  yield* refunded((yield* exceptionOf(id)).id)
  yield* attributedBy(131, transfer(120, 1100n, { position: "call:0xa" }))
  yield* stands(id, "detecting 500 0xt110", "refunded unattributed 1000")
  yield* scanTo(140, transfer(131, 500n))
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt131" })
})

test("refunded: refunded money that was paid again does not replace orphaned money", function* () {
  const { id } = yield* paidBy(130, transfer(110, 1000n), transfer(120, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["open overpaid 1000"])
  yield* refunded(id, { amount: 1000n })
  // A branch on which the second one came first opens nothing again.
  const again = [transfer(120, 1000n), { ...transfer(125, 1000n), txHash: "0xt110" }]
  yield* tick({ head: 131, ancestor: 105, finalized: 104, transfers: again })
  expect((yield* look(id)).exceptions).toEqual(["refunded overpaid 1000"])
  yield* tick({ head: 132, ancestor: 121, finalized: 104 })
  expect((yield* look(id)).payment?.status).toBe("confirmed")
  yield* tick({ head: 137, finalized: 125 })
  yield* stands(id, "failed: reorged 0xt110", "open reorged 1000", "refunded overpaid 1000")
  const after = yield* look(id)
  expect(yield* Effect.flip(accept(id, undefined, {}))).toMatchObject({ _tag: "TransactionNotProven" })
  // Nor is it what the payment can be accepted for.
  expect(yield* refusal(accept(id, undefined, { txHash: "0xt120" }))).toContain("was sent back")
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
  ["refunded", (id: string) => Effect.asVoid(refunded(id))],
  ["accepted", (id: string) => Effect.asVoid(accept(id, undefined, {}))]
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

test("a plan owes no refund of what a reorg took", function* () {
  const { id } = yield* undone
  const of = (yield* exceptionOf(id, { kind: "reorged" })).id
  const operator = { actor: { via: "socket", who: "bob" }, isOperator: true } as const
  const owed = yield* owedRefunds.run({ of: [of], all: false }, operator, () => undefined)
  expect(owed).toMatchObject([{ of, problem: expect.stringContaining("is not an open exception") }])
})

/** A payment of 1,000 with these transfers: those up to block 110 have the confirmations. */
const openWith = (...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.tap(start, Effect.zipRight(TestClock.setTime(112_000), tick({ head: 112, transfers })))

/** `amount` of what counts for it was sent back. */
const back = ({ id }: Payment, amount: bigint, txHash?: string) => refunded(id, { amount, txHash })

const refundsOf = ({ id }: Payment) => Effect.flatMap(Reader, (reader) => Refunds.ofPayment(reader, id))

/** What the ledger has as a payment's income, base units. */
const incomeOf = ({ account, id, mode }: Payment) =>
  Effect.flatMap(Reader, (reader) =>
    Effect.map(BooksRepo.page(reader, [], { account, mode, payment: id }, undefined, 100), ({ rows }) =>
      addUp(rows).sums.reduce((sum, { income }) => sum + income, 0n)
    )
  )

describe("what was sent back of an open payment's money", () => {
  test("no longer counts: the other half confirms nothing", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 500n, hash("a"))
    yield* stands(payment.id, "pending")
    yield* scanTo(130, transfer(120, 500n))
    yield* stands(payment.id, "detecting 500 0xt120")
    expect((yield* look(payment.id)).events).toEqual(["payment.detecting", "payment.updated", "payment.detecting"])
    yield* scanTo(end)
    yield* stands(payment.id, "failed: insufficient_amount 500 0xt120", "open underpaid 500")
    expect(yield* refundsOf(payment)).toMatchObject([
      { status: "noted", amount: 500n, txHash: hash("a"), parts: [{ txHash: "0xt110", amount: 500n }] }
    ])
  })

  test("no longer counts where one provider reports its transaction in another block, too", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 500n)
    const again = transfer(110, 500n, { blockHash: "0xfalse" })
    yield* tick({ head: 113, transfers: [again], corroborated: false })
    yield* stands(payment.id, "pending")
    // Other money of one provider's shows.
    yield* tick({ head: 114, transfers: [transfer(111, 300n)], corroborated: false })
    yield* stands(payment.id, "detecting 300 0xt111")
  })

  test("is missing from then on, and may be completed by what is too small otherwise", function* () {
    const payment = yield* startWith({ floor: 10n })
    yield* scanTo(113, transfer(110, 800n))
    const [second, last] = [transfer(114, 200n), transfer(115, 5n)]
    yield* tick({ head: 114, transfers: [second], corroborated: false })
    yield* back(payment, 5n)
    yield* stands(payment.id, "detecting 995 0xt110")
    yield* tick({ head: 115, transfers: [last], corroborated: false })
    yield* stands(payment.id, "detecting 1000 0xt110")
    yield* tick({ head: 120 })
    yield* corroborate(120, [second, last])
    yield* stands(payment.id, "confirmed 1000 0xt115")
    expect(yield* incomeOf(payment)).toBe(1000n)
  })

  test("leaves no reason for the payment to fail", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 500n)
    yield* scanTo(end)
    yield* stands(payment.id, "expired")
    expect((yield* look(payment.id)).events).toEqual(["payment.detecting", "payment.updated", "payment.expired"])
  })

  test("in parts makes the payment miss more, with its event, and what is left is underpaid in the end", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 200n, hash("a"))
    yield* stands(payment.id, "detecting 300 0xt110")
    expect((yield* look(payment.id)).events).toEqual(["payment.detecting", "payment.updated"])
    yield* TestClock.setTime(113_000)
    yield* back(payment, 100n, hash("b"))
    expect(yield* refundsOf(payment)).toMatchObject([
      { amount: 200n, txHash: hash("a"), createdAt: 112_000 },
      { amount: 100n, txHash: hash("b"), createdAt: 113_000 }
    ])
    expect(yield* incomeOf(payment)).toBe(200n)
    yield* scanTo(end)
    yield* stands(payment.id, "failed: insufficient_amount 200 0xt110", "open underpaid 200")
    // What came is no income any more, and what was sent back of it takes nothing from any other.
    expect(yield* incomeOf(payment)).toBe(0n)
    yield* refunded(payment.id)
    yield* stands(payment.id, "failed: insufficient_amount 200 0xt110", "refunded underpaid 200")
    expect(yield* incomeOf(payment)).toBe(0n)
  })

  test("is taken from the income once, also where the rest is accepted or more comes", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 200n)
    yield* scanTo(end)
    yield* accept(payment.id, undefined, { txHash: undefined })
    expect(yield* incomeOf(payment)).toBe(300n)
    yield* back(payment, 100n)
    expect(yield* incomeOf(payment)).toBe(200n)
  })

  test("is taken from the transactions that came first", function* () {
    const payment = yield* openWith(transfer(110, 300n), transfer(109, 400n))
    const { refund } = (yield* back(payment, 500n)) ?? {}
    expect(refund?.parts.map(({ amount, txHash }) => `${txHash} ${amount}`)).toEqual(["0xt109 400", "0xt110 100"])
    yield* stands(payment.id, "detecting 200 0xt110")
  })

  test("stays so when a reorg mines its transaction again, and takes nothing from another one", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    yield* back(payment, 500n)
    yield* tick({ head: 113, ancestor: 109 })
    yield* stands(payment.id, "pending")
    yield* tick({ head: 114, transfers: [transfer(114, 500n, { txHash: "0xt110" })] })
    yield* stands(payment.id, "pending")
    yield* scanTo(130, transfer(115, 1000n))
    yield* stands(payment.id, "confirmed 1000 0xt115")
  })

  test("may be coins without a transaction, which no longer count at once", function* () {
    const { id } = yield* openWith(transfer(110, 300n, unattributed), transfer(111, 100n))
    yield* stands(id, "detecting 400 0xt111", "open unattributed 300")
    yield* noteRefund((yield* exceptionOf(id)).id, undefined, { amount: 300n })
    yield* stands(id, "detecting 100 0xt111", "refunded unattributed 300")
    expect((yield* look(id)).events).toEqual(["payment.detecting", "payment.updated"])
  })
})

describe("a refund of a payment's money", () => {
  test("counts once, however often it is recorded with its transaction", function* () {
    const payment = yield* openWith(transfer(109, 400n), transfer(110, 400n))
    const first = yield* back(payment, 500n, hash("a"))
    const before = yield* look(payment.id)
    expect((yield* back(payment, 500n, hash("a")))?.refund).toEqual(first?.refund)
    expect(yield* Effect.flip(back(payment, 100n, hash("a")))).toMatchObject({
      _tag: "AlreadyDecided",
      message: expect.stringMatching(/is noted already, as ref_.* of pay_/)
    })
    expect(yield* look(payment.id)).toEqual(before)
  })

  test("without its transaction gets that by its id, and never from another refund of as much", function* () {
    const payment = yield* openWith(transfer(109, 400n), transfer(110, 400n))
    const { refund } = (yield* back(payment, 200n)) ?? expect.unreachable()
    yield* back(payment, 200n, hash("a"))
    expect(yield* refundsOf(payment)).toMatchObject([{ txHash: undefined }, { txHash: hash("a") }])
    yield* nameRefund(refund.id, owner, hash("b"))
    yield* nameRefund(refund.id, owner, hash("b"))
    expect((yield* refundsOf(payment))[0]).toMatchObject({ status: "noted", txHash: hash("b") })
    yield* stands(payment.id, "detecting 400 0xt110")
    expect(yield* nameRefund(refund.id, { ...owner, mode: "live" }, hash("c"))).toBeUndefined()
  })

  test("is begun by no plan that sends another amount", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    const { refund } = (yield* back(payment, 200n)) ?? expect.unreachable()
    const plan = { digest: hash("d"), place: 0, way: "native", exception: undefined, to: receiver } as const
    const begun = beginPaying([{ ...plan, refund: refund.id, amount: 100n }], false)
    expect(yield* refusal(begun)).toBe(`${refund.id} is of 200, and the plan sends 100`)
  })

  test("says how much it is, since more may come, and is no more than what counts", function* () {
    const payment = yield* openWith(transfer(110, 500n))
    const before = yield* look(payment.id)
    for (const [amount, message] of [
      [undefined, "must be given, and be at most 0.0000000000000005 ETH (500"],
      [501n, "must be at most 0.0000000000000005 ETH (500"]
    ] as const) {
      expect(yield* Effect.flip(refunded(payment.id, { amount }))).toMatchObject({
        ...{ _tag: "DecisionInvalid", field: "amount" },
        message: expect.stringContaining(message)
      })
    }
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
    yield* refunded(payment.id, { amount: 100n, uncorroborated: true })
    expect((yield* look(payment.id)).payment).toMatchObject({ status: "pending", amountReceived: undefined })
  })

  test("is of the currency and chain that it names: the payment's own, unless only another one can be meant", function* () {
    const payment = yield* openWith(transfer(109, 500n), usdcElsewhere(110, 7n))
    yield* back(payment, 500n)
    yield* stands(payment.id, "pending", "open wrong_token 7")
    yield* refunded(payment.id, { currency: "USDC", amount: 3n })
    yield* refunded(payment.id)
    yield* stands(payment.id, "pending", "refunded wrong_token 7")
    expect(yield* Effect.flip(refunded(payment.id, { currency: "USDC", amount: 1n }))).toMatchObject({
      _tag: "NothingToDecide"
    })
  })

  test("leaves a confirmed payment paid: what is open goes back first, then what counts, and no more than came", function* () {
    const payment = yield* openWith(transfer(109, 600n), transfer(110, 700n))
    yield* scanTo(130)
    yield* stands(payment.id, "confirmed 1300 0xt110", "open overpaid 300")
    const { refund } = (yield* back(payment, 500n)) ?? {}
    expect(refund?.parts.map(({ amount, ofConfirmed, txHash }) => `${txHash} ${amount} ${ofConfirmed}`)).toEqual([
      "0xt110 300 false",
      "0xt109 200 true"
    ])
    yield* stands(payment.id, "confirmed 1300 0xt110", "refunded overpaid 300")
    expect(yield* refusal(back(payment, 801n))).toContain("ETH (800 in base units)")
    yield* back(payment, 800n)
    expect(yield* Effect.flip(back(payment, 1n))).toMatchObject({ _tag: "NothingToDecide" })
    // A reorg that takes other money leaves it paid, too.
    yield* scanTo(140, transfer(135, 5n))
    yield* tick({ head: 141, ancestor: 134, finalized: 133 })
    yield* tick({ head: 150, finalized: 149 })
    expect((yield* look(payment.id)).payment?.status).toBe("confirmed")
  })

  test("that was not made is dropped: its money counts again, and its exception is open again", function* () {
    const payment = yield* openWith(transfer(110, 500n), usdcElsewhere(110, 7n))
    const { refund } = (yield* back(payment, 500n)) ?? expect.unreachable()
    const other = (yield* refunded((yield* exceptionOf(payment.id)).id)) ?? expect.unreachable()
    yield* stands(payment.id, "pending", "refunded wrong_token 7")
    yield* dropRefund(refund.id, owner)
    yield* dropRefund(other.refund.id, owner)
    yield* dropRefund(other.refund.id, owner)
    yield* stands(payment.id, "detecting 500 0xt110", "open wrong_token 7")
    expect((yield* refundsOf(payment)).map(({ status }) => status)).toEqual(["failed", "failed"])
    expect(yield* dropRefund(refund.id, { ...owner, mode: "live" })).toBeUndefined()
  })
})
