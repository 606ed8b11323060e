import { expect } from "@effect/vitest"
import { BigDecimal, Clock, Effect, Layer, TestClock } from "effect"
import type { QuoteCurrency } from "../../src/Domain/Quote.ts"
import { makePrices } from "../../src/Quotes/Prices.ts"
import { type PriceSource, PriceSourceError } from "../../src/Quotes/sources/PriceSource.ts"
import { scopedTest } from "../lib/scopedTest.ts"

const test = scopedTest(Layer.empty)

/** A source controlled by the test, which counts its reads. */
const model = (name: string, kind: PriceSource["kind"] = "http", maxAge = 120_000) => {
  const state = {
    reads: 0,
    prices: { ETH: "3000" } as Readonly<Partial<Record<QuoteCurrency, string>>>,
    failure: undefined as string | undefined
  }
  const source: PriceSource = {
    name,
    kind,
    read: Effect.gen(function* () {
      state.reads++
      if (state.failure !== undefined) return yield* new PriceSourceError({ source: name, reason: state.failure })
      const observedAt = yield* Clock.currentTimeMillis
      const prices = Object.entries(state.prices) as ReadonlyArray<[QuoteCurrency, string]>
      const points = prices.map(([symbol, price]) => {
        return { symbol, price: BigDecimal.unsafeFromString(price), observedAt, maxAge }
      })
      return { points, refused: [{ symbol: "GBP" as const, reason: "the market is closed" }] }
    })
  }
  return { state, source }
}

const text = (price: BigDecimal.BigDecimal | undefined) => price && BigDecimal.format(price)
const seconds = (count: number) => TestClock.adjust(`${count} seconds`)

test("prices are available after the first read, follow the source every 30 seconds, and need no read on demand", function* () {
  const { source, state } = model("kraken")
  const prices = yield* makePrices([source], ["ETH", "GBP"])
  expect(prices.usd("ETH")).toBeUndefined()
  expect(text(prices.usd("USD"))).toBe("1")
  yield* Effect.forkScoped(prices.run)
  yield* seconds(0)
  expect(text(prices.usd("ETH"))).toBe("3000")
  state.prices = { ETH: "3100" }
  yield* seconds(29)
  expect(text(prices.usd("ETH"))).toBe("3000")
  yield* seconds(1)
  expect(text(prices.usd("ETH"))).toBe("3100")
  expect(prices.of("ETH")).toMatchObject({ source: "kraken", age: 0 })
  expect(prices.of("GBP")).toMatchObject({ price: undefined, reason: "kraken: the market is closed" })
  expect(prices.status().map(({ symbol }) => symbol)).toEqual(["ETH", "GBP"])
  yield* seconds(300)
  expect(state.reads).toBe(12)
})

test("a failing source is read less and less often, and its last price expires with its age", function* () {
  const { source, state } = model("kraken")
  const other = model("coinbase")
  const prices = yield* makePrices([source, other.source])
  yield* Effect.forkScoped(prices.run)
  yield* seconds(0)
  state.failure = "HTTP 503"
  other.state.prices = {}
  yield* seconds(120)
  expect(text(prices.usd("ETH"))).toBe("3000")
  expect(prices.of("ETH")).toMatchObject({ age: 120_000, fresh: ["kraken"] })
  yield* TestClock.adjust("100 millis")
  expect(prices.of("ETH")).toMatchObject({ price: undefined, reason: "kraken: HTTP 503" })
  // Refreshed every 30 seconds, it would have been asked 121 times in this hour.
  const before = state.reads
  yield* seconds(3_600)
  expect(state.reads - before).toBeGreaterThan(9)
  expect(state.reads - before).toBeLessThan(25)
  state.failure = undefined
  yield* seconds(360)
  expect(text(prices.usd("ETH"))).toBe("3000")
  expect(prices.of("ETH").reason).toBeUndefined()
  const recovered = state.reads
  yield* seconds(60)
  expect(state.reads - recovered).toBe(2)
  // What it failed with then is not why it has no price now.
  state.prices = {}
  yield* seconds(121)
  expect(prices.of("ETH")).toMatchObject({ price: undefined, reason: "no source has one" })
})

test("a source that never responds delays no other", function* () {
  const { source } = model("kraken")
  const prices = yield* makePrices([{ name: "stuck", kind: "http", read: Effect.never }, source])
  yield* Effect.forkScoped(prices.run)
  yield* seconds(0)
  expect(text(prices.usd("ETH"))).toBe("3000")
})

test("sources that contradict each other give no price until they agree again", function* () {
  const contract = model("chainlink on ethereum", "chainlink")
  const exchange = model("coinbase")
  const prices = yield* makePrices([contract.source, exchange.source])
  yield* Effect.forkScoped(prices.run)
  yield* seconds(0)
  expect(prices.of("ETH")).toMatchObject({ source: "chainlink on ethereum" })
  exchange.state.prices = { ETH: "3061" }
  yield* seconds(30)
  expect(prices.usd("ETH")).toBeUndefined()
  expect(prices.of("ETH").reason).toBe(
    "chainlink on ethereum says 3000 and coinbase says 3061, which differ by more than 2 %"
  )
  contract.state.prices = { ETH: "3050" }
  yield* seconds(30)
  expect(text(prices.usd("ETH"))).toBe("3050")
})
