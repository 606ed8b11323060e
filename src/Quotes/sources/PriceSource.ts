import { type BigDecimal, Data, type Effect } from "effect"
import type { QuoteCurrency } from "../../Domain/Quote.ts"

/** What a source says that one unit of a currency is worth. */
export interface PricePoint {
  readonly symbol: QuoteCurrency
  /** USD, above zero. */
  readonly price: BigDecimal.BigDecimal
  /** When it was true, Unix milliseconds. */
  readonly observedAt: number
  /** Milliseconds after `observedAt` for which it may be used. */
  readonly maxAge: number
}

/** What one look at a source has found. */
export interface PriceReading {
  readonly points: ReadonlyArray<PricePoint>
  /** Currencies that it has, and whose price cannot be used now. */
  readonly refused: ReadonlyArray<{ readonly symbol: QuoteCurrency; readonly reason: string }>
}

/** The source could not be read: nothing new is known of any of its prices. */
export class PriceSourceError extends Data.TaggedError("PriceSourceError")<{
  readonly source: string
  /** Fit for a merchant's eyes: no path of a URL, and no words of the other side. */
  readonly reason: string
}> {
  override get message() {
    return `${this.source}: ${this.reason}`
  }
}

/** Where prices come from. */
export interface PriceSource {
  readonly name: string
  /** A contract's price is preferred to those that come over HTTP; a fixed one is the operator's own. */
  readonly kind: "chainlink" | "http" | "fixed"
  /** Each call has its own deadline; a provider that takes few calls a second may let it wait for its turn. */
  readonly read: Effect.Effect<PriceReading, PriceSourceError>
}

/**
 * Milliseconds for which what was read may be used: a source that cannot be asked for longer might have changed its mind
 * since.
 */
export const readingLife = 120_000
