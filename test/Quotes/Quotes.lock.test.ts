import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { CreateQuote } from "../../src/Domain/Quote.ts"
import { quoteRefusalOf } from "../../src/Quotes.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testChain } from "../lib/settings.ts"
import { create, lock, other, owner, type Priced, quotesWith, usedBy } from "./quoting.ts"

const test = scopedTest(quotesWith())

const eurToEth: CreateQuote = { fromCurrency: "EUR", toCurrency: "ETH", amount: "2500", chain: "base" }

// gross 1.1 ETH, less 0.0055 and 0.00021
const net = 1_094_290_000_000_000_000n

const gross = 1_100_000_000_000_000_000n
const ethOnBase = { currency: "ETH", chain: "base" } as const

test("a payment may charge what is bought with or without the fees", function* () {
  const { id } = yield* create(eurToEth)
  expect(yield* lock(id, { ...ethOnBase, amount: net })).toBe(id)
  expect(yield* lock(id, { ...ethOnBase, amount: gross })).toBe(id)
})

test("a payment may charge what is sold, on either side of a pair of tokens", function* () {
  const toFiat = yield* create({ fromCurrency: "USDC", toCurrency: "USD", amount: "50", chain: "base" })
  expect(yield* lock(toFiat.id, { currency: "USDC", chain: "base", amount: 50_000_000n })).toBe(toFiat.id)
  const pair = yield* create({ fromCurrency: "USDC", toCurrency: "ETH", amount: "2500", chain: "base" })
  expect(yield* lock(pair.id, { currency: "USDC", chain: "base", amount: 2_500_000_000n })).toBe(pair.id)
  expect(yield* lock(pair.id, { ...ethOnBase, amount: 10n ** 18n })).toBe(pair.id)
})

const usdcOf = (decimals: number) => [{ symbol: "USDC", address: "0x", decimals }] as const

scopedTest(
  quotesWith({
    chains: [
      testChain({ chain: "base", mode: "live", tokens: usdcOf(6) }),
      testChain({ chain: "base", tokens: usdcOf(18) })
    ]
  })
)("base units are those of the chain's own token, in the quote's mode", function* () {
  const { id } = yield* create({ fromCurrency: "USDC", toCurrency: "USD", amount: "50", chain: "base" })
  expect(yield* lock(id, { currency: "USDC", chain: "base", amount: 50n * 10n ** 18n })).toBe(id)
})

test("any other payment is a mismatch that names the accepted amounts", function* () {
  const { id } = yield* create(eurToEth)
  const payments: ReadonlyArray<Priced> = [
    { ...ethOnBase, amount: net + 1n },
    { ...ethOnBase, amount: gross - 1n },
    { currency: "ETH", chain: "arbitrum", amount: net },
    { currency: "USDC", chain: "base", amount: net }
  ]
  for (const payment of payments) {
    expect(yield* Effect.flip(lock(id, payment))).toMatchObject({
      _tag: "QuoteRefused",
      code: "QUOTE_MISMATCH",
      details: { chain: "base", accepted: [{ currency: "ETH", amounts: [String(net), String(gross)] }] }
    })
  }
  const fiats = yield* create({ fromCurrency: "USD", toCurrency: "EUR", amount: "50" })
  expect(yield* Effect.flip(lock(fiats.id, { ...ethOnBase, amount: net }))).toMatchObject({
    code: "QUOTE_MISMATCH",
    message: expect.stringContaining("must be ETH, USDC, USDT, DAI or WBTC"),
    details: { accepted: [] }
  })
  const matic = { quote: { ...fiats, toCurrency: "MATIC" as const }, used: false, validUntil: 1 }
  expect(quoteRefusalOf(matic, { ...ethOnBase, amount: net }, () => 18, 0)?.message).toBe(
    "The quote prices nothing that a payment can be made in: MATIC can be quoted, but not paid in."
  )
})

test("a quote of another account or mode gets the same response as an unknown one", function* () {
  const { id } = yield* create(eurToEth)
  const payment = { ...ethOnBase, amount: net }
  const refusals = yield* Effect.all(
    [lock(id, payment, other), lock(id, payment, { ...owner, mode: "live" }), lock("quote_", payment)].map(Effect.flip),
    { concurrency: 1 }
  )
  for (const refusal of refusals) {
    expect(refusal).toMatchObject({
      code: "QUOTE_NOT_FOUND",
      message:
        "There is no such quote in this account and mode: request one with POST /v1/quotes, and use its id at once."
    })
  }
})

test("a quote ends after 30 seconds", function* () {
  const { id } = yield* create(eurToEth)
  yield* TestClock.adjust("30 seconds")
  expect(yield* lock(id, { ...ethOnBase, amount: net })).toBe(id)
  yield* TestClock.adjust("1 millis")
  expect(yield* Effect.flip(lock(id, { ...ethOnBase, amount: net }))).toMatchObject({
    code: "QUOTE_EXPIRED",
    message: "The quote was valid until 1970-01-01T00:00:30.000Z: create a new quote."
  })
})

test("a quote from before the clock was set back an hour cannot be used; a step of seconds changes nothing", function* () {
  yield* TestClock.setTime(3_600_000)
  const { id } = yield* create(eurToEth)
  yield* TestClock.setTime(3_600_000 - 5_000)
  expect(yield* lock(id, { ...ethOnBase, amount: net })).toBe(id)
  for (const now of [3_600_000 - 5_001, 0]) {
    yield* TestClock.setTime(now)
    expect(yield* Effect.flip(lock(id, { ...ethOnBase, amount: net }))).toMatchObject({ code: "QUOTE_EXPIRED" })
  }
})

test("a quote serves one payment, and says so even when it has ended", function* () {
  const { id } = yield* create(eurToEth)
  yield* usedBy(id)
  yield* TestClock.adjust("31 seconds")
  expect(yield* Effect.flip(lock(id, { ...ethOnBase, amount: net }))).toMatchObject({ code: "QUOTE_ALREADY_USED" })
})
