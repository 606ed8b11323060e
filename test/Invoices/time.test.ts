import { expect } from "@effect/vitest"
import { BigDecimal, Effect, FastCheck, Layer, TestClock } from "effect"
import { appLayer } from "../../src/App.ts"
import { defaultAccount } from "../../src/Auth.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { type Invoice, invoiceStatusOf } from "../../src/Domain/Invoice.ts"
import { Invoices } from "../../src/Invoices.ts"
import { accept } from "../../src/Payments/decisions/accept.ts"
import { grossOf, Quotes } from "../../src/Quotes.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testChain, testRates, testSettings } from "../lib/settings.ts"
import { rows, temporaryDatabase } from "../lib/store.ts"
import { startScans, tick, untilExpired } from "../Payments/settling.ts"

const usdc = { symbol: "USDC", address: `0x${"a".repeat(40)}`, decimals: 6 } as const

const app = Layer.unwrapScoped(
  Effect.map(temporaryDatabase, (path) =>
    appLayer(
      testSettings(path, {
        log: { level: "error", format: "json" },
        chains: [testChain({ tokens: [usdc] })],
        rates: testRates({ USDC: "1", ETH: "2500", EUR: "1.10" })
      }),
      { TILLD_MASTER_KEY: Buffer.alloc(32, 7).toString("base64") }
    )
  )
)
const test = scopedTest(app)

const owner = { account: defaultAccount, mode: "test" } as const
const base = { chain: "base", mode: "test" } as const
const price = { amount: "25", currency: "EUR" } as const
const start = 100_000

/** An invoice of so many seconds, and both workers beside the test. */
const made = (expiresIn = 3600, choice?: "ETH" | "USDC") =>
  Effect.gen(function* () {
    yield* TestClock.setTime(start)
    yield* startScans(100, base)
    const invoices = yield* Invoices
    const settlement = yield* Settlement
    yield* Effect.forkScoped(settlement.expire)
    yield* Effect.forkScoped(invoices.run)
    const { invoice } = yield* invoices.create(owner, { price, expiresIn })
    const chosen = choice && (yield* invoices.choose(owner, invoice.id, { currency: choice, chain: "base" }))
    return { invoices, id: invoice.id, payment: chosen?.payments[0] ?? expect.anything() }
  })

const statusOf = (id: string) =>
  Effect.map(rows<{ status: string }>("SELECT status FROM invoices WHERE id = ?", [id]), ([row]) => row?.status)
const kindsOf = (id: string) =>
  Effect.map(rows<{ kind: string }>("SELECT kind FROM events WHERE payment_id = ? ORDER BY sequence", [id]), (all) =>
    all.map(({ kind }) => kind)
  )

/** The chain is read up to a block of this second, and this machine's clock is there. */
const readTo = (second: number, transfers: ReadonlyArray<DatedTransfer> = []) =>
  Effect.zipRight(TestClock.setTime(second * 1000), tick({ head: second, transfers }))

const half = (address: string, block: number): DatedTransfer => ({
  ...{ address: address.toLowerCase(), amount: 5_000_000_000_000_000n, blockHash: `0x${block}`, blockNumber: block },
  ...{ blockTime: block, currency: "ETH", position: "tx:0", txHash: `0x${"7".repeat(64)}` }
})

test("an invoice that nobody chose for expires at its time, and not before", function* () {
  const { id } = yield* made(600)
  yield* TestClock.setTime(start + 599_999)
  yield* untilExpired
  expect(yield* statusOf(id)).toBe("open")
  yield* TestClock.setTime(start + 600_000)
  yield* untilExpired
  expect([yield* statusOf(id), yield* kindsOf(id)]).toEqual(["expired", ["invoice.created", "invoice.expired"]])
})

test("one with an open payment waits until the chain has been read past its deadline", function* () {
  const { id } = yield* made(600, "USDC")
  yield* TestClock.setTime(start + 900_000)
  yield* untilExpired
  expect(yield* statusOf(id)).toBe("open")
  yield* readTo(1000)
  expect([yield* statusOf(id), yield* kindsOf(id)]).toEqual(["expired", ["invoice.created", "invoice.expired"]])
})

test("the rate holds for an hour: then the customer chooses again at the rate of that time", function* () {
  const { id, invoices, payment } = yield* made(10_800, "ETH")
  expect(payment).toMatchObject({ expiresAt: start + 3_600_000, amount: 11_000_000_000_000_000n })
  const choose = invoices.choose(owner, id, { currency: "ETH", chain: "base" })
  // Also where the chain has not been read up to there.
  yield* TestClock.setTime(start + 3_600_000)
  yield* choose
  yield* readTo(7400)
  expect(yield* statusOf(id)).toBe("open")
  expect((yield* choose)?.payments.map(({ expiresAt, status }) => [status, expiresAt])).toEqual([
    ...[
      ["expired", start + 3_600_000],
      ["expired", start + 7_200_000],
      ["pending", start + 10_800_000]
    ]
  ])
  yield* readTo(11_000)
  expect(yield* statusOf(id)).toBe("expired")
})

test("a reorg before confirmation opens it again, without an event, and it can be paid in something else", function* () {
  const { id, invoices, payment } = yield* made(600, "ETH")
  for (const block of [120, 123]) {
    yield* readTo(block + 1, [half(payment.address, block)])
    expect(yield* statusOf(id)).toBe("processing")
    yield* tick({ head: block + 2, ancestor: block - 1 })
    expect(yield* statusOf(id)).toBe("open")
  }
  expect(yield* kindsOf(id)).toEqual(["invoice.created", "invoice.processing", "invoice.processing"])
  const again = yield* invoices.choose(owner, id, { currency: "USDC", chain: "base" })
  expect(again?.payments.map(({ currency, status }) => [currency, status])).toEqual([
    ["ETH", "expired"],
    ["USDC", "pending"]
  ])
  // The shop takes what came for the former choice all the same: nothing else is to be paid then.
  yield* readTo(130, [half(payment.address, 127)])
  yield* accept(payment.id, undefined, {})
  const paid = yield* invoices.get(owner, id)
  expect([paid?.invoice.status, paid?.payments.map(({ status }) => status)]).toEqual(["paid", ["confirmed", "expired"]])
})

test("the payer never pays less than price × rate by one unit of the token, at 2 to 18 decimals", function* () {
  const digits = FastCheck.bigInt({ min: 1n, max: 10n ** 12n })
  const given = FastCheck.record({
    price: FastCheck.record({ value: digits, scale: FastCheck.integer({ min: 0, max: 4 }) }),
    rate: FastCheck.record({ value: digits, scale: FastCheck.integer({ min: -2, max: 20 }) }),
    decimals: FastCheck.integer({ min: 2, max: 18 })
  })
  void FastCheck.assert(
    FastCheck.property(given, ({ decimals, price: costs, rate }) => {
      const [amount, each] = [costs, rate].map(({ scale, value }) => BigDecimal.make(value, scale))
      const units = grossOf(amount ?? expect.unreachable(), each ?? expect.unreachable(), decimals)
      // In units of 10^-30, so that nothing is rounded here.
      const exact = costs.value * rate.value * 10n ** BigInt(30 - costs.scale - rate.scale)
      const missing = exact - units * 10n ** BigInt(30 - decimals)
      expect(missing >= 0n && missing < 10n ** BigInt(30 - decimals)).toBe(true)
    })
  )
  // And the quote of a choice is that.
  const { quote, units } = yield* (yield* Quotes).priceIn("test", price, { currency: "ETH", chain: "base" })
  expect([units, quote.rate, quote.chargeAmount]).toEqual([11_000_000_000_000_000n, "0.00044", "0.011"])
})

const invoice = { expiresAt: 1000, payment: "pay_2", status: "open" } as unknown as Invoice
const of = (id: string, status: string, failureReason?: string) => ({ id, status, failureReason }) as never

test("the status is decided by money first, then by its own end, then by the last choice", function* () {
  const cases: ReadonlyArray<readonly [string, Parameters<typeof invoiceStatusOf>]> = [
    ["open", [invoice, [], 999]],
    ["expired", [invoice, [], 1000]],
    ["open", [invoice, [of("pay_1", "expired", "cancelled"), of("pay_2", "pending")], 5000]],
    ["processing", [{ ...invoice, status: "cancelled" }, [of("pay_2", "detecting")], 5000]],
    ["paid", [{ ...invoice, status: "cancelled" }, [of("pay_1", "confirmed"), of("pay_2", "pending")], 5000]],
    ["open", [invoice, [of("pay_2", "expired")], 999]],
    ["expired", [invoice, [of("pay_2", "expired")], 1000]],
    ["cancelled", [invoice, [of("pay_2", "failed", "cancelled")], 999]],
    ["failed", [invoice, [of("pay_2", "failed", "wrong_token")], 999]],
    ["failed", [{ ...invoice, status: "paid" }, [of("pay_2", "failed", "reorged")], 5000]],
    ["cancelled", [{ ...invoice, status: "cancelled" }, [], 999]]
  ]
  for (const [expected, given] of cases) expect([given, invoiceStatusOf(...given)]).toEqual([given, expected])
  yield* Effect.void
})
