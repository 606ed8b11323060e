/** Prices of exchanges by HTTP: Coinbase and Kraken. */
import { BigDecimal, Clock, Duration, Effect, Either, Option, Predicate, Schema, type Scope } from "effect"
import type { QuoteCurrency } from "../../Domain/Quote.ts"
import { bodyText, makeHttpClient, type RequestFailed, readBody, tooLong } from "../../lib/httpClient.ts"
import { parseWithTexts } from "../../lib/Json.ts"
import { type PriceSource, PriceSourceError, readingOf } from "./PriceSource.ts"
import { inverseOf, positiveDecimal } from "./rate.ts"

/** For one request: connecting, sending, and reading the response to its end. */
const deadline = Duration.seconds(5)
/** Coinbase sends 20 KB for all its currencies. */
const maxAnswerBytes = 1024 * 1024

/** A JSON response, its numbers as strings, digit by digit as they were sent. */
export interface JsonResponse {
  readonly json: unknown
  /** When the source made it, Unix milliseconds: a cached response is older than its arrival. */
  readonly observedAt: number
}

/** Sends a GET request to a source. */
export type Get = (source: string, url: string) => Effect.Effect<JsonResponse, PriceSourceError>

const text = (header: unknown): string => (typeof header === "string" ? header : "")

/** RFC 9111, 4.2.3: the age of a response that was requested at `asked` and arrived at `came`. All in milliseconds. */
export const answerAgeOf = (headers: Readonly<Record<string, unknown>>, asked: number, came: number): number => {
  const date = Date.parse(text(headers.date))
  const apparent = Number.isNaN(date) ? 0 : Math.max(0, came - date)
  const said = /^\d{1,9}$/.test(text(headers.age)) ? Number(headers.age) * 1000 : 0
  return Math.max(apparent, said + came - asked)
}

const reasonOf = ({ code }: RequestFailed): string =>
  code === tooLong ? `more than ${maxAnswerBytes} bytes` : `no answer (${code || "no connection"})`

/** A client for price sources, until the scope closes. Redirects are not followed. */
export const makeGet: Effect.Effect<Get, never, Scope.Scope> = Effect.map(makeHttpClient("30 seconds"), (client) =>
  Effect.fn("PriceSource.get")(function* (source, url) {
    const failed = (reason: string) => new PriceSourceError({ source, reason })
    const asked = yield* Clock.currentTimeMillis
    const sent = client.send({
      url: new URL(url),
      method: "GET",
      headers: { accept: "application/json" },
      maxBytes: 2 * maxAnswerBytes
    })
    const { body, headers, status } = yield* sent.pipe(
      Effect.flatMap((response) =>
        readBody(response, async (body) => ({
          status: response.statusCode,
          headers: response.headers,
          body: await bodyText(body, maxAnswerBytes)
        }))
      ),
      Effect.mapError((cause) => failed(reasonOf(cause))),
      Effect.timeoutFail({
        duration: deadline,
        onTimeout: () => failed(`no answer within ${Duration.format(deadline)}`)
      })
    )
    if (status !== 200) return yield* failed(`HTTP ${status}`)
    const came = yield* Clock.currentTimeMillis
    const json = yield* Option.match(Either.getRight(parseWithTexts(body)), {
      onNone: () => failed("its answer is not JSON"),
      onSome: Effect.succeed
    })
    return { json, observedAt: came - answerAgeOf(headers, asked, came) }
  })
)

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

const krakenName = "kraken"

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
  name: krakenName,
  kind: "http",
  read: Effect.gen(function* () {
    const failed = (reason: string) => new PriceSourceError({ source: krakenName, reason })
    // A pair that Kraken does not have would make it refuse the whole request.
    const asked = wanted.flatMap((symbol) => pairs[symbol]?.[0] ?? [])
    const { json, observedAt } = yield* get(krakenName, `${url}/0/public/Ticker?pair=${asked.join(",")}`)
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
