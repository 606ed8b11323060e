import { BigDecimal, Context, Effect, Layer, Option } from "effect"
import type { QuoteCurrency } from "../Domain/Quote.ts"
import { Settings } from "../Settings.ts"

/** What one unit of a currency is worth in USD. */
export class Prices extends Context.Tag("tilld/Quotes/Prices")<
  Prices,
  {
    /** Undefined while no fresh price is known. Above zero. */
    readonly usd: (symbol: QuoteCurrency) => BigDecimal.BigDecimal | undefined
  }
>() {
  /** The prices of the configuration (`fixed`): the one source that this version reads. */
  static readonly layer = Layer.effect(
    Prices,
    Effect.gen(function* () {
      const { fixed, sources } = (yield* Settings).rates
      const others = sources.filter((source) => source !== "fixed")
      if (others.length > 0) {
        yield* Effect.logWarning(
          'this version reads no price source but "fixed": quotes that need another answer RATE_UNAVAILABLE'
        ).pipe(Effect.annotateLogs({ sources: others.join(", ") }))
      }
      const prices = new Map<string, BigDecimal.BigDecimal>([["USD", BigDecimal.make(1n, 0)]])
      if (sources.includes("fixed")) {
        for (const [symbol, price] of Object.entries(fixed)) {
          prices.set(symbol, Option.getOrThrow(BigDecimal.fromString(price)))
        }
      }
      return { usd: (symbol) => prices.get(symbol) }
    })
  )
}
