import { Array as Arr, type BigDecimal, Data, Duration, type Effect, Either } from "effect"
import type { QuoteCurrency } from "../../Domain/Quote.ts"

/** The price of a currency by one source. */
export interface PricePoint {
  readonly symbol: QuoteCurrency
  /** USD for one unit, above zero. */
  readonly price: BigDecimal.BigDecimal
  /** When the source determined it, Unix milliseconds. */
  readonly observedAt: number
  /** Milliseconds after `observedAt` for which it may be used. */
  readonly maxAge: number
}

/** The result of reading a source once. */
export interface PriceReading {
  readonly points: ReadonlyArray<PricePoint>
  /** Currencies of the source whose price cannot be used now. */
  readonly refused: ReadonlyArray<{ readonly symbol: QuoteCurrency; readonly reason: string }>
}

/** The source could not be read: none of its prices is updated. */
export class PriceSourceError extends Data.TaggedError("PriceSourceError")<{
  readonly source: string
  /** May be shown to merchants: it has no URL path and no text of the source's own. */
  readonly reason: string
}> {
  override get message() {
    return `${this.source}: ${this.reason}`
  }
}

/** A source of prices. `Prices.ts` reads it. */
export interface PriceSource {
  readonly name: string
  /** A Chainlink price is preferred to prices over HTTP; a fixed one is configured by the operator. */
  readonly kind: "chainlink" | "http" | "fixed"
  /** Each call has its own deadline. A rate limited provider may delay it. */
  readonly read: Effect.Effect<PriceReading, PriceSourceError>
}

/** Milliseconds for which a reading may be used: beyond that, the source may have another price by now. */
export const readingLife = 120_000

/** What a source gave at one moment, Unix milliseconds: of each currency its price, USD, or why it has none. */
export const readingOf = (
  wanted: ReadonlyArray<QuoteCurrency>,
  observedAt: number,
  priceOf: (symbol: QuoteCurrency) => Either.Either<BigDecimal.BigDecimal, string>
): PriceReading => {
  const [refused, points] = Arr.partitionMap(wanted, (symbol) =>
    Either.mapBoth(priceOf(symbol), {
      onLeft: (reason) => ({ symbol, reason }),
      onRight: (price) => ({ symbol, price, observedAt, maxAge: readingLife })
    })
  )
  return { points, refused }
}

/** Milliseconds in whole seconds: `2m 5s`. */
export const ageText = (millis: number): string => Duration.format(Duration.seconds(Math.floor(millis / 1000)))
