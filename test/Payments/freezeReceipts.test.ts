import { expect } from "@effect/vitest"
import { BigDecimal, Clock, Effect, Layer, TestClock } from "effect"
import { AccountId, QuoteId } from "../../src/Domain/Ids.ts"
import type { QuoteCurrency } from "../../src/Domain/Quote.ts"
import * as Collected from "../../src/Payments/addresses/CollectedRepo.ts"
import * as Receipts from "../../src/Payments/ReceiptsRepo.ts"
import { makePrices, Prices } from "../../src/Quotes/Prices.ts"
import { Tx } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"
import { address, layer, network, payAgain, scanTo, start, startWith, tick, transfer } from "./settling.ts"

/** What the one source says, which each test begins with. */
const first: Readonly<Partial<Record<QuoteCurrency, string>>> = { ETH: "2500", USDC: "1", EUR: "1.25" }
let says = first

const prices = Layer.effect(
  Prices,
  makePrices([
    {
      name: "fixed",
      kind: "fixed",
      read: Effect.map(Clock.currentTimeMillis, (observedAt) => ({
        points: Object.entries(says).map(([symbol, price]) => ({
          ...{ symbol: symbol as QuoteCurrency, price: BigDecimal.unsafeFromString(price) },
          ...{ observedAt, maxAge: Number.POSITIVE_INFINITY }
        })),
        refused: []
      }))
    }
  ])
)
const test = scopedTest(Layer.provideMerge(layer, prices))

const priced = (next: typeof says) =>
  Effect.flatMap(Prices, ({ refresh }) => {
    says = next
    return refresh
  })

const frozen = (table: string) =>
  Effect.map(
    rows<{ rate: string | null; rate_currency: string; rate_source: string }>(
      `SELECT rate, rate_currency, rate_source FROM ${table} ORDER BY block_time, tx_hash`
    ),
    (all) => all.map(({ rate, rate_currency, rate_source }) => [rate, rate_currency, rate_source])
  )

test("a receipt has the rate of the moment it was first stored, which no later price and no reorg changes", function* () {
  yield* priced(first)
  yield* start
  yield* scanTo(130, transfer(120, 400n))
  yield* priced({ ETH: "3000", EUR: "1.5" })
  // The account counts in EUR from now on.
  yield* execute("INSERT INTO shops (account_id, currency, frame_origins) VALUES ('default', 'EUR', '')")
  yield* scanTo(140, transfer(132, 500n))
  const usd = ["2500", "USD", "fixed"]
  const eur = ["2000", "EUR", "fixed"]
  expect(yield* frozen("receipts")).toEqual([usd, eur])
  // The first transfer is mined again, and another one comes for the first time.
  const again = { ...transfer(121, 400n), txHash: "0xt120" }
  yield* tick({ head: 150, ancestor: 110, transfers: [again, transfer(133, 7n)] })
  expect(yield* frozen("receipts WHERE canonical = 1")).toEqual([usd, ["2000", "EUR", "fixed"]])
})

test("where no rate is known, the row says why, and keeps that", function* () {
  yield* priced({ ETH: "2500" })
  yield* start
  const other = { txHash: "0xt1", position: "log:0" }
  yield* scanTo(130, { ...transfer(120, 5n), ...other, currency: "USDC" }, transfer(121, 400n))
  yield* scanTo(140, { ...transfer(122, 5n), ...other, currency: "0x00000000000000000000000000000000000000aa" })
  yield* TestClock.setTime(86_400_000 + 124_000)
  yield* tick({ head: 150, transfers: [transfer(123, 400n), transfer(124, 400n)] })
  const known = [
    [null, "USD", "no_fresh_price"],
    ["2500", "USD", "fixed"],
    [null, "USD", "unknown_token"],
    [null, "USD", "seen_late"],
    ["2500", "USD", "fixed"]
  ]
  expect(yield* frozen("receipts")).toEqual(known)
  yield* priced({ ETH: "1", USDC: "1" })
  yield* tick({ head: 160 })
  expect(yield* frozen("receipts")).toEqual(known)
})

test("what is too small gets a rate once it completes the payment, and none before", function* () {
  yield* priced({ USDC: "1" })
  yield* startWith({ currency: "USDC", amount: 1_000_000n, floor: 10_000n })
  const token = (number: number, amount: bigint) => ({
    ...transfer(number, amount),
    ...{ currency: "USDC", position: `log:${number}` }
  })
  yield* scanTo(130, token(120, 995_000n), token(121, 4_000n))
  const one = ["1", "USD", "fixed"]
  expect(yield* frozen("receipts")).toEqual([one, [null, null, null]])
  yield* scanTo(140, token(131, 5_000n))
  expect(yield* frozen("receipts")).toEqual([one, [null, null, null], one])
})

for (const [way, quote] of [
  ["in", { chargeAmount: "0.05", fromAmount: "110.00", fromCurrency: "EUR", toCurrency: "ETH" }],
  ["into", { chargeAmount: "110.00", fromAmount: "0.05", fromCurrency: "ETH", toCurrency: "EUR" }]
] as const) {
  test(`what pays for a quote ${way} the account's currency has the quote's rate, other money the one of now`, function* () {
    yield* priced(first)
    yield* start
    yield* execute("INSERT INTO shops (account_id, currency, frame_origins) VALUES ('default', 'EUR', '')")
    const quoteId = QuoteId.make(`quote_${"q".repeat(22)}`)
    yield* execute(
      "INSERT INTO quotes (id, account_id, mode, body, created_at, valid_until) VALUES (?, 'default', 'test', ?, 0, 0)",
      [quoteId, JSON.stringify(quote)]
    )
    const to = "0x0000000000000000000000000000000000000002"
    yield* payAgain(1, { quoteId, address: to })
    const usdc = { ...transfer(121, 5n), address: to, currency: "USDC", position: "log:0" }
    yield* scanTo(130, { ...transfer(120, 400n), address: to }, usdc)
    expect(yield* frozen("receipts")).toEqual([
      ["2200", "EUR", "quote"],
      ["0.8", "EUR", "fixed"]
    ])
  })
}

test("what a broadcast has moved, and its gas, have the rate of the moment it was noted", function* () {
  yield* priced(first)
  yield* start
  const moved = { hash: "0xm1", place: 0, address, to: address, currency: "USDC", amount: "5", at: 90 }
  const paid = { hash: "0xm1", payer: address, to: address, wei: "21000", at: 90 }
  const moment = { now: 100_000, prices: yield* Prices }
  const noted = inTransaction(
    Effect.gen(function* () {
      const tx = yield* Tx
      yield* Collected.add(tx, network, [moved], moment)
      yield* Collected.addGas(tx, network, [paid], moment)
    })
  )
  yield* noted
  yield* priced({ ETH: "1", USDC: "2" })
  yield* noted
  expect(yield* frozen("collected")).toEqual([["1", "USD", "fixed"]])
  expect(yield* frozen("gas")).toEqual([["2500", "USD", "fixed"]])
  const account = AccountId.make("default")
  expect(yield* rows("SELECT account_id FROM collected UNION ALL SELECT account_id FROM gas")).toEqual([
    { account_id: account },
    { account_id: account }
  ])
})

test("the kind of a receipt and what it credits are written where they change", function* () {
  yield* start
  yield* scanTo(130, transfer(120, 400n), transfer(121, 500n))
  const key = (n: number) => ({ ...network, blockHash: `0x${n}`, address: address.toLowerCase(), position: "tx:0" })
  const set = (n: number, kind: string, credited: bigint) =>
    inTransaction(
      Effect.gen(function* () {
        const { changes } = yield* Tx
        const before = yield* changes
        yield* Receipts.setKinds([{ ...key(n), kind, credited }])
        return (yield* changes) - before
      })
    )
  expect([yield* set(120, "late", 400n), yield* set(120, "late", 400n)]).toEqual([1, 0])
  expect(yield* set(120, "late", 300n)).toBe(1)
  expect(yield* rows("SELECT kind, credited, account_id FROM receipts ORDER BY block_number")).toEqual([
    { kind: "late", credited: "300", account_id: "default" },
    { kind: "credited", credited: "500", account_id: "default" }
  ])
})
