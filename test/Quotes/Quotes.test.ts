import { expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import type { CreateQuote } from "../../src/Domain/Quote.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { create, fixed, quotesWith } from "./quoting.ts"

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

it.effect.each(priced)("%j", ([request, expected]) =>
  Effect.gen(function* () {
    expect(yield* create(request)).toMatchObject(expected)
  }).pipe(Effect.provide(quotesWith()))
)

scopedTest(quotesWith({ chains: [testChain({ chain: "optimism" })] }))(
  "the data fee of an OP-stack chain comes on top",
  function* () {
    const quote = yield* create({ fromCurrency: "USD", toCurrency: "ETH", amount: "2500", chain: "optimism" })
    // 21,000 gas at 10 gwei, and 0.0001 ETH
    expect(quote).toMatchObject({ toAmount: "0.99469", fees: { network: "0.00031", service: "0.005" } })
  }
)

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

it.effect.each(impossible)("%j is impossible", ([request, problems]) =>
  Effect.gen(function* () {
    const result = yield* Effect.either(create(request))
    expect(result).toMatchObject(Either.left({ _tag: "QuoteImpossible", problems }))
  }).pipe(Effect.provide(quotesWith()))
)

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

scopedTest(quotesWith({ rates: { ...testRates(fixed), sources: ["coinbase"] } }))(
  "a source that has not been read yet has no price, and fixed prices do not replace it",
  function* () {
    const result = yield* Effect.either(create({ fromCurrency: "USD", toCurrency: "EUR", amount: "5" }))
    expect(result).toMatchObject(Either.left({ _tag: "RateUnavailable" }))
  }
)

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
