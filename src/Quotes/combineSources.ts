/**
 * One price from the prices of all sources: pure. Only fresh prices count, and none is given where fresh ones differ by more
 * than the tolerance. A Chainlink or fixed price is preferred; otherwise it is the median of the HTTP sources. `Prices.ts`
 * calls it; `tilld doctor` and the API show the reasons.
 */
import { BigDecimal, Order } from "effect"
import type { QuoteCurrency } from "../Domain/Quote.ts"
import { ageText, type PricePoint, type PriceSource } from "./sources/PriceSource.ts"
import { rateOf, showDecimal } from "./sources/rate.ts"

/** The last price of a currency that a source reported. */
export interface SourcePrice extends PricePoint {
  readonly source: string
  readonly kind: PriceSource["kind"]
}

/** Why a source has no price of a currency. */
export interface MissingPrice {
  readonly source: string
  readonly reason: string
}

/** The price of a currency at a moment, or the reason why there is none. */
export interface PriceStatus {
  readonly symbol: QuoteCurrency
  /** USD for one unit; undefined where there is none, for the `reason`. */
  readonly price: BigDecimal.BigDecimal | undefined
  /** The source of that price. */
  readonly source: string | undefined
  /** Milliseconds since that price was observed; for a median, since the oldest of its prices was. */
  readonly age: number | undefined
  /** (highest − lowest) / lowest of the fresh prices. Undefined with fewer than two. */
  readonly spread: BigDecimal.BigDecimal | undefined
  /** The sources with a fresh price. */
  readonly fresh: ReadonlyArray<string>
  /** Why there is no price, or why some sources have none. */
  readonly reason: string | undefined
}

/** Tokens that stand for one USD. */
export const stablecoins: ReadonlySet<QuoteCurrency> = new Set(["USDC", "USDT", "DAI"])

/** Sources may differ by this part of the lowest price: 0.01 for stablecoins, 0.02 otherwise. */
export const toleranceOf = (symbol: QuoteCurrency): BigDecimal.BigDecimal =>
  BigDecimal.make(stablecoins.has(symbol) ? 1n : 2n, 2)

const isFresh = ({ maxAge, observedAt, price }: PricePoint, now: number): boolean =>
  // A time in the future means that the clock was set back: the age is unknown.
  price.value > 0n && now >= observedAt && now - observedAt <= maxAge

const byPrice = Order.mapInput(BigDecimal.Order, ({ price }: SourcePrice) => price)
const half = BigDecimal.make(5n, 1)
const percent = BigDecimal.make(100n, 0)
const zero = BigDecimal.make(0n, 0)

/** Of prices in ascending order, at least one. */
const medianOf = (sorted: readonly [SourcePrice, ...ReadonlyArray<SourcePrice>]): BigDecimal.BigDecimal => {
  const at = (index: number) => (sorted[index] ?? sorted[0]).price
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? at(middle) : BigDecimal.multiply(BigDecimal.sum(at(middle - 1), at(middle)), half)
}

/** The price that counts: the newest of Chainlink's, or the operator's fixed one, else the median of the others. */
const chosen = (
  sorted: readonly [SourcePrice, ...ReadonlyArray<SourcePrice>]
): Pick<SourcePrice, "price" | "source" | "observedAt"> => {
  const preferred = sorted.filter(({ kind }) => kind !== "http").sort((a, b) => b.observedAt - a.observedAt)[0]
  if (preferred !== undefined) return preferred
  const names = sorted.map(({ source }) => source).sort()
  return {
    price: medianOf(sorted),
    source: names.length === 1 ? sorted[0].source : `median of ${names.join(", ")}`,
    observedAt: Math.min(...sorted.map(({ observedAt }) => observedAt))
  }
}

const whyStale = ({ observedAt, source }: SourcePrice, now: number): MissingPrice => ({
  source,
  reason: now >= observedAt ? `its last price is ${ageText(now - observedAt)} old` : "its last price is of unknown age"
})

/** The price of a currency at `now`, Unix milliseconds, from what all sources have reported. */
export const combine = (
  symbol: QuoteCurrency,
  reported: ReadonlyArray<SourcePrice>,
  missing: ReadonlyArray<MissingPrice>,
  now: number
): PriceStatus => {
  const [lowest, ...others] = reported.filter((one) => isFresh(one, now)).sort(byPrice)
  const none = { symbol, price: undefined, source: undefined, age: undefined }
  const stale = reported.filter((one) => !isFresh(one, now)).map((one) => whyStale(one, now))
  const named = new Map([...stale, ...missing].map(({ reason, source }) => [source, reason]))
  const lacking = Array.from(named, ([source, why]) => `${source}: ${why}`).join("; ")
  if (lowest === undefined) return { ...none, spread: undefined, fresh: [], reason: lacking || "no source has one" }
  const fresh = [lowest, ...others].map(({ source }) => source)
  const highest = others.at(-1)
  const difference = highest === undefined ? zero : BigDecimal.subtract(highest.price, lowest.price)
  const spread = highest && (difference.value === 0n ? zero : rateOf(difference, lowest.price))
  const tolerance = toleranceOf(symbol)
  if (highest !== undefined && BigDecimal.greaterThan(difference, BigDecimal.multiply(lowest.price, tolerance))) {
    const limit = showDecimal(BigDecimal.multiply(tolerance, percent))
    const [low, high] = [lowest, highest].map(({ price, source }) => `${source} says ${showDecimal(price)}`)
    return { ...none, spread, fresh, reason: `${low} and ${high}, which differ by more than ${limit} %` }
  }
  const { observedAt, price, source } = chosen([lowest, ...others])
  // A fixed price has no time and is always current.
  const age = Number.isFinite(observedAt) ? now - observedAt : 0
  return { symbol, price, source, age, spread, fresh, reason: lacking || undefined }
}
