import { expect, it } from "@effect/vitest"
import { Clock, Effect, Either, Layer, TestClock } from "effect"
import { Networks } from "../../src/Chains/Networks.ts"
import { Chains } from "../../src/Chains.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import type { CreateQuote } from "../../src/Domain/Quote.ts"
import { Prices } from "../../src/Quotes/Prices.ts"
import { Quotes } from "../../src/Quotes.ts"
import type { SettingsShape } from "../../src/Settings.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { testChain, testRates, testSettingsLayer } from "../lib/settings.ts"
import { tempStore } from "../lib/store.ts"

const owner = { account: AccountId.make("shop"), mode: "test" } as const
const other = { account: AccountId.make("other"), mode: "test" } as const

const gwei = 10n ** 9n

/** Gas costs 10 gwei on every chain but polygon, where nobody knows. */
const chains = Layer.mock(Chains, {
  wake: () => {},
  exclusively: () => () => Effect.die("not asked for"),
  gas: ({ chain }) =>
    Effect.succeed(
      chain === "polygon" ? undefined : { price: 10n * gwei, l1Fee: chain === "optimism" ? 10n ** 14n : 0n }
    )
})

const networks = Layer.succeed(Networks, {
  connected: () => {
    throw new Error("fixed prices are on no chain")
  }
})

const accounts = Layer.effectDiscard(
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        for (const { account } of [owner, other]) {
          yield* tx.run("INSERT INTO accounts (id, name, created_at) VALUES (?, 'Shop', 0)", [account])
        }
      })
    )
  )
)

const fixed = { ETH: "2500", MATIC: "0.5", USDC: "1", USDT: "0.999", WBTC: "65000", EUR: "1.10", MXN: "0.05" }

const quotesWith = (over: Partial<SettingsShape> = {}) =>
  Quotes.layer.pipe(
    Layer.provide(Layer.provide(Prices.layer, networks)),
    Layer.provide(chains),
    Layer.provideMerge(
      testSettingsLayer("", {
        rates: testRates(fixed),
        chains: (["ethereum", "base", "polygon", "arbitrum"] as const).map((chain) => testChain({ chain })),
        ...over
      })
    ),
    Layer.provideMerge(accounts),
    Layer.provideMerge(tempStore)
  )

const create = (request: CreateQuote) => Effect.flatMap(Quotes, (quotes) => quotes.create(owner, request))

/** The quote's own row marks nothing: a payment's does. */
const usedBy = (quoteId: string) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 1)")
        yield* tx.run(
          `INSERT INTO payments (id, account_id, mode, merchant_ref, amount, currency, chain, address, wallet, wallet_index,
             status, created_at, expires_at, metadata, quote_id)
           VALUES ('pay_1', 'shop', 'test', 'a', '1', 'ETH', 'base', '0x1', 'w', 0, 'pending', 0, 1, '{}', ?)`,
          [quoteId]
        )
      })
    )
  )

type Priced = Parameters<Quotes["Type"]["lock"]>[2]

const lock = (quoteId: string, payment: Priced, by: { account: AccountId; mode: Mode } = owner) =>
  Effect.gen(function* () {
    const quotes = yield* Quotes
    const writer = yield* Writer
    return yield* writer.write(Effect.flatMap(Clock.currentTimeMillis, (now) => quotes.lock(by, quoteId, payment, now)))
  })

it.effect("a fiat amount buys tokens: rate, fees and validity as published", () =>
  Effect.gen(function* () {
    const quote = yield* create({ fromCurrency: "EUR", toCurrency: "USDC", amount: "100.50" })
    // 65,000 gas at 10 gwei are 0.00065 ETH, 1.625 USD.
    expect(quote).toEqual({
      id: expect.stringMatching(/^quote_[A-Za-z0-9_-]{22}$/),
      fromCurrency: "EUR",
      toCurrency: "USDC",
      fromAmount: "100.50",
      toAmount: "108.37225",
      rate: "1.1",
      chain: "ethereum",
      validUntil: "1970-01-01T00:00:30.000Z",
      fees: { network: "1.625", service: "0.55275" }
    })
  }).pipe(Effect.provide(quotesWith()))
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

it.effect("the data fee of an OP-stack chain comes on top", () =>
  Effect.gen(function* () {
    const quote = yield* create({ fromCurrency: "USD", toCurrency: "ETH", amount: "2500", chain: "optimism" })
    // 21,000 gas at 10 gwei, and 0.0001 ETH
    expect(quote).toMatchObject({ toAmount: "0.99469", fees: { network: "0.00031", service: "0.005" } })
  }).pipe(Effect.provide(quotesWith({ chains: [testChain({ chain: "optimism" })] })))
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

it.effect("the chain is ethereum, or the only one that has the token, and must be watched in the key's mode", () =>
  Effect.gen(function* () {
    const result = yield* Effect.either(create({ fromCurrency: "USD", toCurrency: "USDC", amount: "5" }))
    expect(result).toMatchObject(
      Either.left({ problems: [{ path: "chain", message: "ethereum is not available to this key: choose polygon" }] })
    )
    const matic = yield* Effect.either(create({ fromCurrency: "USD", toCurrency: "MATIC", amount: "5" }))
    expect(matic).toMatchObject(Either.left({ _tag: "RateUnavailable" }))
  }).pipe(
    Effect.provide(
      quotesWith({ chains: [testChain({ chain: "polygon" }), testChain({ chain: "ethereum", mode: "live" })] })
    )
  )
)

it.effect("no price and no gas price known are refusals, never a guess", () =>
  Effect.gen(function* () {
    const message = (request: CreateQuote) =>
      Effect.map(Effect.flip(create(request)), (error) => String(Reflect.get(error, "message")))
    expect(yield* message({ fromCurrency: "GBP", toCurrency: "USDC", amount: "5" })).toBe(
      "No price of GBP can be given (no source has one): ask again later."
    )
    expect(yield* message({ fromCurrency: "USD", toCurrency: "USDC", amount: "5", chain: "polygon" })).toBe(
      "No recent gas price of polygon is known: ask again later."
    )
  }).pipe(Effect.provide(quotesWith()))
)

it.effect("what has not been read yet gives no price, and fixed prices do not stand in for it", () =>
  Effect.gen(function* () {
    const result = yield* Effect.either(create({ fromCurrency: "USD", toCurrency: "EUR", amount: "5" }))
    expect(result).toMatchObject(Either.left({ _tag: "RateUnavailable" }))
  }).pipe(Effect.provide(quotesWith({ rates: { ...testRates(fixed), sources: ["coinbase"] } })))
)

it.effect("an amount that the fees eat up is too small", () =>
  Effect.gen(function* () {
    expect(yield* Effect.flip(create({ fromCurrency: "USD", toCurrency: "USDC", amount: "1.63" }))).toMatchObject({
      _tag: "AmountTooSmall",
      gross: "1.63",
      fees: { network: "1.625", service: "0.00815" }
    })
    expect(yield* create({ fromCurrency: "USD", toCurrency: "USDC", amount: "1.64" })).toMatchObject({
      toAmount: "0.0068"
    })
  }).pipe(Effect.provide(quotesWith()))
)

const eurToEth: CreateQuote = { fromCurrency: "EUR", toCurrency: "ETH", amount: "2500", chain: "base" }
// gross 1.1 ETH, less 0.0055 and 0.00021
const net = 1_094_290_000_000_000_000n
const gross = 1_100_000_000_000_000_000n
const ethOnBase = { currency: "ETH", chain: "base" } as const

it.effect("a payment may charge what is bought with or without the fees", () =>
  Effect.gen(function* () {
    const { id } = yield* create(eurToEth)
    expect(yield* lock(id, { ...ethOnBase, amount: net })).toBe(id)
    expect(yield* lock(id, { ...ethOnBase, amount: gross })).toBe(id)
  }).pipe(Effect.provide(quotesWith()))
)

it.effect("a payment may charge what is sold, on either side of a pair of tokens", () =>
  Effect.gen(function* () {
    const toFiat = yield* create({ fromCurrency: "USDC", toCurrency: "USD", amount: "50", chain: "base" })
    expect(yield* lock(toFiat.id, { currency: "USDC", chain: "base", amount: 50_000_000n })).toBe(toFiat.id)
    const pair = yield* create({ fromCurrency: "USDC", toCurrency: "ETH", amount: "2500", chain: "base" })
    expect(yield* lock(pair.id, { currency: "USDC", chain: "base", amount: 2_500_000_000n })).toBe(pair.id)
    expect(yield* lock(pair.id, { ...ethOnBase, amount: 10n ** 18n })).toBe(pair.id)
  }).pipe(Effect.provide(quotesWith()))
)

it.effect("base units are those of the chain's own token", () =>
  Effect.gen(function* () {
    const { id } = yield* create({ fromCurrency: "USDC", toCurrency: "USD", amount: "50", chain: "base" })
    expect(yield* lock(id, { currency: "USDC", chain: "base", amount: 50n * 10n ** 18n })).toBe(id)
  }).pipe(
    Effect.provide(
      quotesWith({ chains: [testChain({ chain: "base", tokens: [{ symbol: "USDC", address: "0x", decimals: 18 }] })] })
    )
  )
)

it.effect("any other payment is a mismatch that names what would do", () =>
  Effect.gen(function* () {
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
      details: { accepted: [] }
    })
  }).pipe(Effect.provide(quotesWith()))
)

it.effect("another account's quote, another mode's and none are the same answer", () =>
  Effect.gen(function* () {
    const { id } = yield* create(eurToEth)
    const payment = { ...ethOnBase, amount: net }
    const refusals = yield* Effect.all(
      [lock(id, payment, other), lock(id, payment, { ...owner, mode: "live" }), lock("quote_", payment)].map(
        Effect.flip
      ),
      { concurrency: 1 }
    )
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({ code: "QUOTE_NOT_FOUND", message: "There is no such quote." })
    }
  }).pipe(Effect.provide(quotesWith()))
)

it.effect("a quote ends after 30 seconds", () =>
  Effect.gen(function* () {
    const { id } = yield* create(eurToEth)
    yield* TestClock.adjust("30 seconds")
    expect(yield* lock(id, { ...ethOnBase, amount: net })).toBe(id)
    yield* TestClock.adjust("1 millis")
    expect(yield* Effect.flip(lock(id, { ...ethOnBase, amount: net }))).toMatchObject({
      code: "QUOTE_EXPIRED",
      message: "The quote was valid until 1970-01-01T00:00:30.000Z: create a new quote."
    })
  }).pipe(Effect.provide(quotesWith()))
)

it.effect("a quote serves one payment, and says so even when it has ended", () =>
  Effect.gen(function* () {
    const { id } = yield* create(eurToEth)
    yield* usedBy(id)
    yield* TestClock.adjust("31 seconds")
    expect(yield* Effect.flip(lock(id, { ...ethOnBase, amount: net }))).toMatchObject({ code: "QUOTE_ALREADY_USED" })
  }).pipe(Effect.provide(quotesWith()))
)
