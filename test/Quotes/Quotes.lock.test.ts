import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { CreateQuote } from "../../src/Domain/Quote.ts"
import { testChain } from "../lib/settings.ts"
import { create, lock, other, owner, type Priced, quotesWith, usedBy } from "./quoting.ts"

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

it.effect("any other payment is a mismatch that names the accepted amounts", () =>
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

it.effect("a quote of another account or mode gets the same response as an unknown one", () =>
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
