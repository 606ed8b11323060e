import { BigDecimal, Effect, Option, Predicate } from "effect"
import type { QuoteCurrency } from "../../Domain/Quote.ts"
import type { Get } from "./fetchJson.ts"
import { type PriceReading, type PriceSource, PriceSourceError, readingLife } from "./PriceSource.ts"
import { positiveDecimal, rateOf } from "./rate.ts"

const name = "coinbase"

/** Coinbase's names of each currency; the first one that it has counts. MATIC became POL, one for one. */
const names: Readonly<Record<Exclude<QuoteCurrency, "USD">, ReadonlyArray<string>>> = {
  ETH: ["ETH"],
  USDC: ["USDC"],
  USDT: ["USDT"],
  DAI: ["DAI"],
  WBTC: ["WBTC"],
  MATIC: ["POL", "MATIC"],
  EUR: ["EUR"],
  GBP: ["GBP"],
  MXN: ["MXN"]
}

const ratesIn = (json: unknown): Readonly<Record<string, unknown>> | undefined => {
  const data = Predicate.isRecord(json) ? json.data : undefined
  return Predicate.isRecord(data) && data.currency === "USD" && Predicate.isRecord(data.rates) ? data.rates : undefined
}

const one = BigDecimal.make(1n, 0)

/** Coinbase's rates for a dollar, in one response: `{ data: { currency, rates } }`, docs.cdp.coinbase.com. */
export const makeCoinbase = (get: Get, url: string): PriceSource => ({
  name,
  kind: "http",
  read: Effect.gen(function* () {
    const { json, observedAt } = yield* get(name, `${url}/v2/exchange-rates?currency=USD`)
    const rates = ratesIn(json)
    if (rates === undefined) return yield* new PriceSourceError({ source: name, reason: "its answer has no rates" })
    const found = (Object.entries(names) as ReadonlyArray<[QuoteCurrency, ReadonlyArray<string>]>).map(
      ([symbol, theirs]) => {
        const their = theirs.find((candidate) => candidate in rates)
        return { symbol, rate: positiveDecimal(their && rates[their]) }
      }
    )
    const reading: PriceReading = {
      // The answer is units for one dollar.
      points: found.flatMap(({ rate, symbol }) =>
        Option.toArray(rate).map((perDollar) => ({
          symbol,
          price: rateOf(one, perDollar),
          observedAt,
          maxAge: readingLife
        }))
      ),
      refused: found
        .filter(({ rate }) => Option.isNone(rate))
        .map(({ symbol }) => ({ symbol, reason: "its answer has no rate above zero" }))
    }
    return reading
  })
})
