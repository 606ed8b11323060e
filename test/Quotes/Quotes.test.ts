import { expect } from "@effect/vitest"
import { BigDecimal, Effect, Either, Layer, TestClock } from "effect"
import fc from "fast-check"
import { standardFiat } from "../../src/Domain/Currency.ts"
import type { CreateQuote } from "../../src/Domain/Quote.ts"
import { Prices } from "../../src/Quotes/Prices.ts"
import { grossOf, Quotes, quoteRefusalOf } from "../../src/Quotes.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { create, fixed, lock, other, owner, type Priced, quotesWith, usedBy } from "./quoting.ts"

const test = scopedTest(quotesWith())

test("a fiat amount buys tokens: rate, fees and validity as published", function* () {
  const quote = yield* create({ fromCurrency: "EUR", toCurrency: "USDC", amount: "100.50" })
  // 65,000 gas at 10 gwei are 0.00065 ETH, 1.625 USD.
  expect(quote).toEqual({
    id: expect.stringMatching(/^quote_[A-Za-z0-9_-]{22}$/),
    fromCurrency: "EUR",
    toCurrency: "USDC",
    fromAmount: "100.50",
    toAmount: "108.37225",
    chargeAmount: "110.55",
    rate: "1.1",
    chain: "ethereum",
    validUntil: "1970-01-01T00:00:30.000Z",
    fees: { network: "1.625", service: "0.55275" }
  })
})

scopedTest(quotesWith({ quotes: { serviceFeeBps: 120 } }))(
  "the service fee is what the operator set; what to charge does not depend on it",
  function* () {
    expect(yield* create({ fromCurrency: "USD", toCurrency: "USDC", amount: "100" })).toMatchObject({
      toAmount: "97.175",
      chargeAmount: "100",
      fees: { network: "1.625", service: "1.2" }
    })
  }
)

const priced: ReadonlyArray<readonly [request: CreateQuote, expected: Record<string, unknown>]> = [
  // A native transfer takes 21,000 gas.
  [
    { fromCurrency: "USD", toCurrency: "ETH", amount: "2500", chain: "base" },
    { rate: "0.0004", toAmount: "0.99479", chain: "base", fees: { network: "0.00021", service: "0.005" } }
  ],
  // What is sold is what is transferred when fiat is bought.
  [
    { fromCurrency: "ETH", toCurrency: "USD", amount: "1" },
    { rate: "2500", toAmount: "2486.97", fees: { network: "0.53", service: "12.5" } }
  ],
  [
    { fromCurrency: "USDC", toCurrency: "EUR", amount: "50" },
    { rate: "0.909090909091", toAmount: "43.74", fees: { network: "1.48", service: "0.23" } }
  ],
  // Between tokens it is the one that is bought.
  [
    { fromCurrency: "ETH", toCurrency: "USDC", amount: "1", chain: "base" },
    { toAmount: "2485.875", fees: { network: "1.625", service: "12.5" } }
  ],
  // Between fiats nothing is.
  [
    { fromCurrency: "USD", toCurrency: "MXN", amount: "0.99" },
    { rate: "20", toAmount: "19.7", chain: "ethereum", fees: { network: "0", service: "0.1" } }
  ],
  [{ fromCurrency: "USD", toCurrency: "MXN", amount: "0.99", chain: "polygon" }, { chain: "polygon" }]
]

for (const [request, expected] of priced) {
  test(JSON.stringify(request), function* () {
    expect(yield* create(request)).toMatchObject(expected)
  })
}

scopedTest(quotesWith({ chains: [testChain({ chain: "optimism" })] }))(
  "the data fee of an OP-stack chain comes on top",
  function* () {
    const quote = yield* create({ fromCurrency: "USD", toCurrency: "ETH", amount: "2500", chain: "optimism" })
    // 21,000 gas at 10 gwei, and 0.0001 ETH
    expect(quote).toMatchObject({ toAmount: "0.99469", fees: { network: "0.00031", service: "0.005" } })
  }
)

const yen = { ...testRates({ ...fixed, JPY: "0.0065" }), currencies: [...standardFiat, "JPY"] as const }

scopedTest(quotesWith({ rates: yen }))("yen have no decimals: the amount is rounded down, the fee up", function* () {
  for (const cents of fc.sample(fc.integer({ min: 100, max: 1e9 }), 200)) {
    const amount = (cents / 100).toFixed(2)
    const { chargeAmount, fees, rate, toAmount } = yield* create({ fromCurrency: "EUR", toCurrency: "JPY", amount })
    const gross = grossOf(BigDecimal.make(BigInt(cents), 2), BigDecimal.unsafeFromString(rate), 0)
    const fee = (gross * 50n + 9_999n) / 10_000n
    expect([chargeAmount, toAmount, fees]).toEqual([`${gross}`, `${gross - fee}`, { network: "0", service: `${fee}` }])
  }
  expect(yield* Effect.flip(create({ fromCurrency: "JPY", toCurrency: "USD", amount: "1.5" }))).toMatchObject({
    problems: [{ path: "amount", message: "must have at most 0 decimals, which is what JPY has" }]
  })
})

const impossible: ReadonlyArray<
  readonly [request: CreateQuote, problems: ReadonlyArray<Record<"path" | "message", string>>]
> = [
  [
    { fromCurrency: "USD", toCurrency: "USD", amount: "1.001" },
    [
      { path: "toCurrency", message: "must differ from fromCurrency" },
      { path: "amount", message: "must have at most 2 decimals, which is what USD has" }
    ]
  ],
  [
    { fromCurrency: "ETH", toCurrency: "MATIC", amount: "1" },
    [{ path: "toCurrency", message: "is on no chain together with ETH" }]
  ],
  [
    { fromCurrency: "WBTC", toCurrency: "USD", amount: "1", chain: "base" },
    [{ path: "chain", message: "has no WBTC: choose ethereum, polygon or arbitrum" }]
  ],
  [
    { fromCurrency: "USD", toCurrency: "USDC", amount: "1", chain: "optimism" },
    [{ path: "chain", message: "optimism is not available to this key: choose ethereum, polygon, arbitrum or base" }]
  ]
]

for (const [request, problems] of impossible) {
  test(`${JSON.stringify(request)} is impossible`, function* () {
    expect(yield* Effect.flip(create(request))).toMatchObject({ _tag: "QuoteImpossible", problems })
  })
}

scopedTest(quotesWith({ chains: [testChain({ chain: "polygon" }), testChain({ chain: "ethereum", mode: "live" })] }))(
  "the chain is ethereum, or the only one that has the token, and must be watched in the key's mode",
  function* () {
    const result = yield* Effect.either(create({ fromCurrency: "USD", toCurrency: "USDC", amount: "5" }))
    expect(result).toMatchObject(
      Either.left({ problems: [{ path: "chain", message: "ethereum is not available to this key: choose polygon" }] })
    )
    const matic = yield* Effect.either(create({ fromCurrency: "USD", toCurrency: "MATIC", amount: "5" }))
    expect(matic).toMatchObject(Either.left({ _tag: "RateUnavailable" }))
  }
)

test("no price and no gas price known are refusals, never a guess", function* () {
  const message = (request: CreateQuote) =>
    Effect.map(Effect.flip(create(request)), (error) => String(Reflect.get(error, "message")))
  expect(yield* message({ fromCurrency: "GBP", toCurrency: "USDC", amount: "5" })).toBe(
    "No price of GBP can be given (no source has one): ask again later."
  )
  expect(yield* message({ fromCurrency: "USD", toCurrency: "USDC", amount: "5", chain: "polygon" })).toBe(
    "No recent gas price of polygon is known: ask again later."
  )
  // Of 50 USD a false gas price would leave cents.
  expect(yield* message({ fromCurrency: "USD", toCurrency: "USDC", amount: "50", chain: "arbitrum" })).toBe(
    "By the gas price of arbitrum a transfer costs 0.00104 ETH, more than it can: ask again later."
  )
})

const testOfCoinbase = scopedTest(quotesWith({ rates: { ...testRates(fixed), sources: ["coinbase"] } }))
testOfCoinbase("a source that has not been read yet has no price, and fixed prices do not replace it", function* () {
  const result = yield* Effect.either(create({ fromCurrency: "USD", toCurrency: "EUR", amount: "5" }))
  expect(result).toMatchObject(Either.left({ _tag: "RateUnavailable" }))
})

const apart = Layer.succeed(Prices, { of: () => ({ price: undefined, fresh: ["kraken", "coinbase"] }) } as never)
scopedTest(quotesWith({}, apart))("a stablecoin is no dollar while its sources contradict each other", function* () {
  const priced = (yield* Quotes).priceIn("test", { amount: "5", currency: "USD" }, { currency: "USDC", chain: "base" })
  expect(yield* Effect.flip(priced)).toMatchObject({ _tag: "RateUnavailable" })
})

test("an amount that the fees eat up is too small", function* () {
  expect(yield* Effect.flip(create({ fromCurrency: "USD", toCurrency: "USDC", amount: "1.63" }))).toMatchObject({
    _tag: "AmountTooSmall",
    gross: "1.63",
    fees: { network: "1.625", service: "0.00815" }
  })
  expect(yield* create({ fromCurrency: "USD", toCurrency: "USDC", amount: "1.64" })).toMatchObject({
    toAmount: "0.0068"
  })
})

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
