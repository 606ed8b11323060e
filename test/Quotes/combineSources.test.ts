import { describe, expect, it } from "@effect/vitest"
import { BigDecimal } from "effect"
import fc from "fast-check"
import type { QuoteCurrency } from "../../src/Domain/Quote.ts"
import { combine, type SourcePrice, toleranceOf } from "../../src/Quotes/Prices.ts"

const now = 1_000_000_000
const decimal = BigDecimal.unsafeFromString

const priceFrom = (source: string, price: string, over: Partial<SourcePrice> = {}): SourcePrice => ({
  symbol: "ETH",
  source,
  kind: source.startsWith("chainlink") ? "chainlink" : "http",
  price: decimal(price),
  observedAt: now - 1_000,
  maxAge: 60_000,
  ...over
})

const eth = (...all: ReadonlyArray<SourcePrice>) => combine("ETH", all, [], now)
const priceOf = (...all: ReadonlyArray<SourcePrice>) => {
  const { price } = eth(...all)
  return price === undefined ? undefined : BigDecimal.format(price)
}

const anyPrice = fc
  .record({
    source: fc.constantFrom("chainlink on ethereum", "chainlink on base", "coinbase", "kraken"),
    cents: fc.oneof(fc.integer({ min: 9_900, max: 10_400 }), fc.integer({ min: -1, max: 1_000_000 })),
    ago: fc.integer({ min: -5_000, max: 100_000 }),
    maxAge: fc.integer({ min: 0, max: 90_000 })
  })
  .map(
    ({ ago, cents, maxAge, source }): SourcePrice => ({
      ...priceFrom(source, "1"),
      price: BigDecimal.make(BigInt(cents), 2),
      observedAt: now - ago,
      maxAge
    })
  )
const sources = fc.uniqueArray(anyPrice, { selector: ({ source }) => source, maxLength: 4 })
const symbols = fc.constantFrom<QuoteCurrency>("ETH", "USDC", "USDT", "DAI", "MXN")

const usable = (one: SourcePrice) => one.price.value > 0n && one.observedAt <= now && now - one.observedAt <= one.maxAge
const inCents = ({ price }: SourcePrice) => BigDecimal.scale(price, 2).value

describe("a combined price", () => {
  it("exists exactly when a source is fresh and no two fresh ones contradict each other", () => {
    return fc.assert(
      fc.property(symbols, sources, (symbol, all) => {
        const cents = all.filter(usable).map(inCents)
        const sorted = cents.toSorted((a, b) => (a < b ? -1 : 1))
        const [lowest, highest] = [sorted[0], sorted.at(-1)]
        const percent = symbol === "ETH" || symbol === "MXN" ? 102n : 101n
        const corroborated = lowest !== undefined && highest !== undefined && highest * 100n <= lowest * percent
        const { price, reason } = combine(symbol, all, [], now)
        expect(price !== undefined).toBe(corroborated)
        expect(reason === undefined).toBe(corroborated && all.every(usable))
      }),
      { numRuns: 2_000 }
    )
  })

  it("lies between the fresh ones, and is a contract's where one is fresh", () => {
    return fc.assert(
      fc.property(sources, (all) => {
        const { age, price } = combine("ETH", all, [], now)
        if (price === undefined || age === undefined) return
        const fresh = all.filter(usable)
        expect(fresh.some((one) => BigDecimal.lessThanOrEqualTo(one.price, price))).toBe(true)
        expect(fresh.some((one) => BigDecimal.greaterThanOrEqualTo(one.price, price))).toBe(true)
        expect(age).toBeLessThanOrEqual(90_000)
        const contracts = fresh.filter(({ kind }) => kind === "chainlink")
        if (contracts.length > 0) expect(contracts.some((one) => BigDecimal.equals(one.price, price))).toBe(true)
      }),
      { numRuns: 2_000 }
    )
  })

  it("prefers the newest contract to the others, and names it", () => {
    const all = [
      priceFrom("coinbase", "3010"),
      priceFrom("chainlink on ethereum", "3000", { observedAt: now - 50_000 }),
      priceFrom("chainlink on base", "3001", { observedAt: now - 20_000 }),
      priceFrom("kraken", "3020")
    ]
    expect(eth(...all)).toMatchObject({ source: "chainlink on base", age: 20_000, reason: undefined })
    expect(priceOf(...all)).toBe("3001")
    const { spread } = eth(...all)
    expect(spread && BigDecimal.format(spread)).toBe("0.00666666666667")
  })

  it("is the exact median where there is no contract", () => {
    expect(priceOf(priceFrom("coinbase", "3000.01"), priceFrom("kraken", "3000.02"))).toBe("3000.015")
    expect(priceOf(priceFrom("coinbase", "3000"), priceFrom("kraken", "3010"), priceFrom("third", "3001"))).toBe("3001")
    expect(eth(priceFrom("kraken", "2"), priceFrom("coinbase", "2", { observedAt: now - 7_000 }))).toMatchObject({
      source: "median of coinbase, kraken",
      age: 7_000
    })
    expect(eth(priceFrom("kraken", "2"))).toMatchObject({ source: "kraken", spread: undefined })
  })

  it("is refused from the first digit over the limit on", () => {
    expect(priceOf(priceFrom("coinbase", "100"), priceFrom("kraken", "102"))).toBe("101")
    expect(eth(priceFrom("coinbase", "100"), priceFrom("kraken", "102.00000001"))).toMatchObject({
      price: undefined,
      reason: "coinbase says 100 and kraken says 102.00000001, which differ by more than 2 %"
    })
    expect(BigDecimal.format(toleranceOf("DAI"))).toBe("0.01")
    const dai = [priceFrom("coinbase", "1"), priceFrom("kraken", "1.011")]
    expect(combine("DAI", dai, [], now).reason).toMatch(/more than 1 %$/)
  })

  it("is used up to its age and not a millisecond longer, and never from the future", () => {
    expect(priceOf(priceFrom("kraken", "1", { observedAt: now - 60_000 }))).toBe("1")
    expect(eth(priceFrom("kraken", "1", { observedAt: now - 60_001 })).reason).toBe("kraken: its last price is 1m old")
    expect(eth(priceFrom("kraken", "1", { observedAt: now + 1 })).reason).toBe(
      "kraken: its last price is of unknown age"
    )
  })

  it("says why each source is silent", () => {
    const silent = [
      { source: "coinbase", reason: "HTTP 503" },
      { source: "kraken", reason: "no answer within 5s" }
    ]
    const old = priceFrom("coinbase", "1", { observedAt: 0 })
    expect(combine("ETH", [old], silent, now).reason).toBe("coinbase: HTTP 503; kraken: no answer within 5s")
    expect(combine("ETH", [], [], now).reason).toBe("no source has one")
    const lacking = combine("CZK", [priceFrom("coinbase", "0.05")], [{ source: "kraken", reason: "has no CZK" }], now)
    expect(lacking).toMatchObject({ source: "coinbase", fresh: ["coinbase"], reason: "kraken: has no CZK" })
  })
})
