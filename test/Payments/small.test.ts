import { describe, expect, it } from "@effect/vitest"
import { BigDecimal, Effect, FastCheck } from "effect"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { floorOf } from "../../src/Domain/Amount.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import * as Receipts from "../../src/Payments/ReceiptsRepo.ts"
import { counted, total } from "../../src/Payments/statusMachine.ts"
import { Reader } from "../../src/Sql.ts"
import { somePayment } from "../lib/payments.ts"
import { execute, rows } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"
import { receipt } from "./machine.ts"
import {
  corroborate,
  elsewhere,
  exceptions,
  kindsOf,
  lastOnTime,
  look,
  losePayment,
  lost,
  scanTo,
  shows,
  startScans,
  startWith,
  test,
  testOfTwo,
  tick,
  transfer
} from "./settling.ts"

it.each([
  ["a hundredth of a payment whose worth is not known", 5_000n, undefined, "0.10", 50n],
  ["a hundredth, rounded up", 101n, undefined, "0.10", 2n],
  ["a hundredth of a payment of less than 10 USD", 5_000n, "5.00", "0.10", 50n],
  ["0.10 USD of a larger one", 250_000_000n, "250.0", "0.10", 100_000n],
  ["0.10 USD, rounded up", 250_000_000n, "249.9", "0.10", 100_041n],
  ["what the operator says", 250_000_000n, "250", "0.5", 500_000n],
  ["nothing where the operator wants all credited", 250_000_000n, "250", "0", 0n]
] as const)("the floor is %s", (_, amount, usdValue, floorUsd, floor) => {
  expect(floorOf(amount, usdValue, BigDecimal.unsafeFromString(floorUsd))).toBe(floor)
})

describe("of on-time receipts", () => {
  const asked = somePayment({ currency: "USDC", amount: 1_000n, toleranceBps: 100, floor: 10n })
  const amounts = FastCheck.array(
    FastCheck.oneof(FastCheck.integer({ min: 1, max: 12 }), FastCheck.integer({ min: 1, max: 1_100 })),
    {
      maxLength: 30
    }
  )
  const all = amounts.map((units) =>
    units.map((each, i): Receipt => {
      const amount = BigInt(each)
      return receipt(asked, { position: `log:${i}`, txHash: `0x${i}`, amount, small: amount < asked.floor })
    })
  )

  const shuffled = all.chain((one) =>
    FastCheck.tuple(FastCheck.constant(one), FastCheck.shuffledSubarray(one, { minLength: one.length }))
  )

  it("all are credited but the small, and of these the first that reaches what is required, in any order of arrival", () =>
    FastCheck.assert(
      FastCheck.property(shuffled, ([inOrder, inAnyOrder]) => {
        const credited = counted(asked, inOrder)
        for (const one of inOrder) {
          const before = total(credited.filter(({ place }) => place < one.place))
          const completes = before < 990n && before + one.amount >= 990n
          expect(credited.includes(one)).toBe(!one.small || completes)
        }
        expect(credited.filter(({ small }) => small).length).toBeLessThan(2)
        expect(counted(asked, inAnyOrder)).toEqual(credited)
      })
    ))
})

/** A payment in tokens of which less than 10,000 units are too small. */
const begin = startWith({ currency: "USDC", amount: 1_000_000n, floor: 10_000n })
const token = (number: number, units: bigint, over: Partial<DatedTransfer> = {}): DatedTransfer => ({
  ...transfer(number, units),
  currency: "USDC",
  position: "log:0",
  ...over
})
/** So many transfers of a block, each with a transaction of its own. */
const many = (number: number, count: number, units: bigint, over: Partial<DatedTransfer> = {}) =>
  Array.from({ length: count }, (_, i) =>
    token(number, units, { position: `log:${i + 1}`, place: i + 1, txHash: `0xd${number}:${i}`, ...over })
  )
const totals = (payment: Payment) => Effect.flatMap(Reader, (reader) => Receipts.unreadOf(reader, payment.id))
const received = (payment: Payment) =>
  Effect.map(look(payment), (found) => `${found.payment?.status} ${found.payment?.amountReceived ?? 0n}`)

test("what is too small decides nothing, on time, late and after the end, and is one total", function* () {
  const payment = yield* begin
  yield* scanTo(110, ...many(110, 150, 9_999n))
  expect([yield* received(payment), yield* kindsOf(payment)]).toEqual(["pending 0", []])
  const late = lastOnTime + 1
  yield* scanTo(late + 5, ...many(late, 3, 9_999n))
  yield* shows(payment, "expired")
  yield* scanTo(late + 6, ...many(111, 5, 1n))
  yield* shows(payment, "expired")
  expect(yield* totals(payment)).toEqual([
    { chain: "base", currency: "USDC", transfers: 158, amount: 153n * 9_999n + 5n }
  ])
})

test("the small one that completes the amount is credited, once two providers have it, and its surplus is an exception", function* () {
  const payment = yield* begin
  yield* tick({ head: 110, transfers: [token(110, 995_000n)] })
  const [small, completing, after] = [token(111, 4_999n), token(112, 5_007n), token(113, 9_000n)]
  yield* tick({ head: 120, transfers: [small, completing, after], corroborated: false })
  expect(yield* received(payment)).toBe("detecting 1000007")
  // It waits for a second provider like any other, and no other small one does.
  expect(yield* rows("SELECT block_number AS at FROM receipts WHERE listed = 'own' ORDER BY 1")).toEqual([
    { at: 110 },
    { at: 112 }
  ])
  yield* corroborate(120, [completing])
  yield* shows(payment, "confirmed", "open overpaid 7 0xt112")
  expect((yield* look(payment)).payment).toMatchObject({ txHash: "0xt112", amountReceived: 1_000_007n })
  // Money beyond that makes it no less credited.
  yield* tick({ head: 130, transfers: [token(125, 20_000n)] })
  yield* shows(payment, "confirmed", "open overpaid 7 0xt112", "open overpaid 20000 0xt125")
})

test("a small one completes what two providers have, whatever one alone reports", function* () {
  const payment = yield* begin
  yield* tick({ head: 109, transfers: [token(109, 20_000n)], corroborated: false })
  yield* tick({ head: 120, transfers: [token(110, 995_000n), token(111, 5_000n)] })
  yield* shows(payment, "confirmed")
})

test("an earlier one that is found later, or a reorg, moves what completes the amount", function* () {
  const payment = yield* begin
  yield* tick({ head: 112, transfers: [token(110, 995_000n), token(112, 5_000n)] })
  expect(yield* received(payment)).toBe("detecting 1000000")
  yield* tick({ head: 112, transfers: [token(111, 6_000n)] })
  expect(yield* received(payment)).toBe("detecting 1001000")
  yield* tick({ head: 111, ancestor: 110 })
  expect(yield* received(payment)).toBe("detecting 995000")
  yield* tick({ head: 112, transfers: [token(112, 5_000n, { blockHash: "0xagain" })] })
  expect(yield* received(payment)).toBe("detecting 1000000")
  yield* tick({ head: 120 })
  yield* shows(payment, "confirmed")
})

testOfTwo(
  "of stray money a hundred transfers are exceptions, and of the payment's own a thousand are credited",
  function* () {
    const payment = yield* begin
    yield* losePayment()
    yield* startScans(100, elsewhere)
    yield* tick({ on: elsewhere, head: 110, transfers: many(110, 120, 5n), corroborated: false })
    // One provider alone crowds out nothing that two report.
    yield* corroborate(112, many(110, 120, 5n).slice(-1), elsewhere)
    const there = { address: lost.toLowerCase() }
    yield* tick({ head: 110, transfers: many(110, 130, 5n, there) })
    expect(yield* exceptions(payment)).toEqual(["open wrong_chain 5 0xd110:119"])
    expect(yield* rows("SELECT count(*) AS count FROM exceptions WHERE payment_id IS NULL")).toEqual([{ count: 100 }])
    yield* tick({ head: 120, transfers: many(115, 1_003, 10_000n) })
    expect(yield* received(payment)).toBe("confirmed 10000000")
    expect(yield* totals(payment)).toEqual([
      { chain: "base", currency: "USDC", transfers: 3, amount: 30_000n },
      { chain: "optimism", currency: "USDC", transfers: 20, amount: 100n }
    ])
  }
)

test("a flood of 100,000 is not read, whatever is missing", function* () {
  const payment = yield* begin
  yield* tick({ head: 111, transfers: [token(110, 995_000n), token(111, 1n)] })
  yield* execute(
    `WITH RECURSIVE flood (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM flood WHERE n < 100000)
     INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       payment_id, canonical, corroborated, seen_at, listed)
     SELECT chain, mode, block_hash, address, 'log:' || n, block_number, block_time, '0x' || n, currency, '1', payment_id, 1,
       1, 0, NULL FROM receipts, flood WHERE block_number = 111`
  )
  const reader = yield* Reader
  const steps: Array<string> = []
  const db = explained(reader, reader, steps)
  expect(yield* Receipts.ofPayment(db, payment)).toHaveLength(1)
  expect(yield* Receipts.unlisted(db, payment, 5_000n)).toEqual([])
  expect(yield* Receipts.newest(db, payment.id, 10)).toHaveLength(1)
  const reads = steps.filter((step) => /receipts/.test(step))
  expect(new Set(reads)).toEqual(
    new Set([
      "SEARCH receipts USING INDEX receipts_payment (payment_id=? AND listed=?)",
      "SEARCH receipts USING INDEX receipts_small (payment_id=? AND corroborated=? AND <expr>>?)"
    ])
  )
  // The index has the order of what is read: only what its limit has left is sorted, and those that could complete it.
  const isSorted = (step: string, i: number) =>
    /TEMP B-TREE/.test(step) && !/^SCAN \(subquery|receipts_small/.test(`${steps[i - 1]}`)
  expect(steps.filter(isSorted)).toEqual([])
  yield* tick({ head: 112, transfers: [token(112, 2n)] })
  expect(yield* received(payment)).toBe("detecting 995000")
  expect(yield* totals(payment)).toMatchObject([{ transfers: 100_002, amount: 100_003n }])
})
