import { BigDecimal, Effect, Either, Option, Schema } from "effect"
import type { QuoteCurrency } from "../../Domain/Quote.ts"
import type { Get } from "./fetchJson.ts"
import { type PriceSource, PriceSourceError, readingOf } from "./PriceSource.ts"
import { inverseOf, positiveDecimal } from "./rate.ts"

const name = "kraken"

/** Pairs as they are requested, and as the response names them: some with an X or Z before their currencies. */
const pairs: Readonly<Partial<Record<QuoteCurrency, readonly [pair: string, answered: string]>>> = {
  ETH: ["ETHUSD", "XETHZUSD"],
  USDC: ["USDCUSD", "USDCUSD"],
  USDT: ["USDTUSD", "USDTZUSD"],
  DAI: ["DAIUSD", "DAIUSD"],
  WBTC: ["WBTCUSD", "WBTCUSD"],
  MATIC: ["POLUSD", "POLUSD"],
  EUR: ["EURUSD", "ZEURZUSD"],
  GBP: ["GBPUSD", "ZGBPZUSD"],
  AUD: ["AUDUSD", "AUDUSD"],
  CAD: ["USDCAD", "ZUSDZCAD"],
  CHF: ["USDCHF", "USDCHF"],
  JPY: ["USDJPY", "ZUSDZJPY"]
}

const Ticker = Schema.Struct({
  error: Schema.Array(Schema.Unknown),
  result: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
})
const decodeTicker = Schema.decodeUnknownEither(Ticker)

/** Best ask and best bid, the price first. */
const Book = Schema.Struct({
  a: Schema.NonEmptyArray(Schema.Unknown),
  b: Schema.NonEmptyArray(Schema.Unknown)
})
const decodeBook = Schema.decodeUnknownEither(Book)

const half = BigDecimal.make(5n, 1)
/** ask / bid at most: a market with a wider spread has no usable price. */
const widest = BigDecimal.make(102n, 2)

const priceIn = (market: unknown): Either.Either<BigDecimal.BigDecimal, string> =>
  Either.flatMap(
    Either.mapLeft(decodeBook(market), () => "its answer lacks the market"),
    ({ a, b }) => {
      const sides = Option.all([positiveDecimal(a[0]), positiveDecimal(b[0])])
      if (Option.isNone(sides)) return Either.left("the market's prices are not above zero")
      const [ask, bid] = sides.value
      return BigDecimal.lessThan(ask, bid) || BigDecimal.greaterThan(ask, BigDecimal.multiply(bid, widest))
        ? Either.left("the market's bid and ask are too far apart")
        : Either.right(BigDecimal.multiply(BigDecimal.sum(ask, bid), half))
    }
  )

/** The middle between Kraken's best bid and ask, in one response: docs.kraken.com/api/docs/rest-api/get-ticker-information. */
export const makeKraken = (get: Get, url: string, wanted: ReadonlyArray<QuoteCurrency>): PriceSource => ({
  name,
  kind: "http",
  read: Effect.gen(function* () {
    const failed = (reason: string) => new PriceSourceError({ source: name, reason })
    // A pair that Kraken does not have would make it refuse the whole request.
    const asked = wanted.flatMap((symbol) => pairs[symbol]?.[0] ?? [])
    const { json, observedAt } = yield* get(name, `${url}/0/public/Ticker?pair=${asked.join(",")}`)
    const ticker = decodeTicker(json)
    if (Either.isLeft(ticker)) return yield* failed("its answer is not a ticker")
    const { error, result } = ticker.right
    if (error.length > 0 || result === undefined) return yield* failed("it answers with an error")
    return readingOf(wanted, observedAt, (symbol) => {
      const [pair, answered] = pairs[symbol] ?? []
      if (pair === undefined || answered === undefined) return Either.left(`has no ${symbol}`)
      const price = priceIn(result[answered] ?? result[pair])
      // USDCHF is francs for a dollar.
      return pair.endsWith("USD") ? price : Either.map(price, inverseOf)
    })
  })
})
