/**
 * What money is worth in its account's currency, frozen in the transaction that first stores it: the rate of then, from the
 * prices in memory. No later rate changes it. Settlement freezes receipts, `tilld sweep broadcast` what it moved and paid.
 */
import { BigDecimal, Effect, Option } from "effect"
import { type Fiat, isToken } from "../Domain/Currency.ts"
import type { UnknownRate } from "../Domain/LedgerRow.ts"
import type { QuoteObject } from "../Domain/Quote.ts"
import { Prices } from "./Prices.ts"
import { rateOf, showDecimal } from "./sources/rate.ts"

/** The columns `rate`, `rate_currency` and `rate_source`. Without a rate, the source is the reason. */
export type FrozenRate = readonly [rate: string | null, currency: Fiat, source: string]

const unknown = (currency: Fiat, reason: UnknownRate): FrozenRate => [null, currency, reason]

/** Milliseconds after its block from which money's worth is not the one of now. */
const longestAgo = 86_400_000

/** Where no prices are read, as without a daemon, no rate is known. Asked outside of transactions, which have no services. */
export const pricesOf = Effect.map(Effect.serviceOption(Prices), Option.getOrUndefined)

/** The rate at which a token is worth so much of the currency now. `at`: of its block, Unix seconds; `now` in milliseconds. */
export const rateNow = (
  prices: Prices["Type"] | undefined,
  symbol: string,
  currency: Fiat,
  at: number,
  now: number
): FrozenRate => {
  if (!isToken(symbol)) return unknown(currency, "unknown_token")
  if (now - at * 1000 > longestAgo) return unknown(currency, "seen_late")
  const [token, fiat] = [prices?.of(symbol), prices?.of(currency)]
  if (token?.price === undefined || fiat?.price === undefined) return unknown(currency, "no_fresh_price")
  const sources = new Set([token.source ?? "", ...(currency === "USD" ? [] : [fiat.source ?? ""])])
  const rate = currency === "USD" ? token.price : rateOf(token.price, fiat.price)
  return [showDecimal(rate), currency, [...sources].join(", ")]
}

/** The rate of a quote between the token and the currency: what costs the one amount is charged at the other. */
export const rateOfQuote = (
  { chargeAmount, fromAmount, fromCurrency, toCurrency }: QuoteObject,
  symbol: string,
  currency: Fiat
): FrozenRate | undefined => {
  const [from, to] = [BigDecimal.unsafeFromString(fromAmount), BigDecimal.unsafeFromString(chargeAmount)]
  const rate = (...pair: Parameters<typeof rateOf>): FrozenRate => [showDecimal(rateOf(...pair)), currency, "quote"]
  if (fromCurrency === currency && toCurrency === symbol) return rate(from, to)
  return fromCurrency === symbol && toCurrency === currency ? rate(to, from) : undefined
}

/** A moment, Unix milliseconds, and the prices of it. */
export interface PricedMoment {
  readonly now: number
  readonly prices: Prices["Type"] | undefined
}
