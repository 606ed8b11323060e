import { Effect, Either, Option, Predicate } from "effect"
import type { QuoteCurrency } from "../../Domain/Quote.ts"
import type { Get } from "./fetchJson.ts"
import { type PriceSource, PriceSourceError, readingOf } from "./PriceSource.ts"
import { inverseOf, positiveDecimal } from "./rate.ts"

const name = "coinbase"

/** Coinbase's names of a currency; the first one that it has counts. MATIC became POL, one for one. */
const namesOf = (symbol: QuoteCurrency): ReadonlyArray<string> => (symbol === "MATIC" ? ["POL", symbol] : [symbol])

const ratesIn = (json: unknown): Readonly<Record<string, unknown>> | undefined => {
  const data = Predicate.isRecord(json) ? json.data : undefined
  return Predicate.isRecord(data) && data.currency === "USD" && Predicate.isRecord(data.rates) ? data.rates : undefined
}

/** Coinbase's rates for a dollar, in one response: `{ data: { currency, rates } }`, docs.cdp.coinbase.com. */
export const makeCoinbase = (get: Get, url: string, wanted: ReadonlyArray<QuoteCurrency>): PriceSource => ({
  name,
  kind: "http",
  read: Effect.gen(function* () {
    const { json, observedAt } = yield* get(name, `${url}/v2/exchange-rates?currency=USD`)
    const rates = ratesIn(json)
    if (rates === undefined) return yield* new PriceSourceError({ source: name, reason: "its answer has no rates" })
    return readingOf(wanted, observedAt, (symbol) => {
      const their = namesOf(symbol).find((candidate) => candidate in rates)
      if (their === undefined) return Either.left(`has no ${symbol}`)
      // The answer is units for one dollar.
      return Either.fromOption(Option.map(positiveDecimal(rates[their]), inverseOf), () => "its rate is not above zero")
    })
  })
})
