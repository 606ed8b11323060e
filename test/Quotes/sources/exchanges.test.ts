import { createServer, type ServerResponse } from "node:http"
import { describe, expect, it } from "@effect/vitest"
import { BigDecimal, Clock, DateTime, Effect } from "effect"
import type { QuoteCurrency } from "../../../src/Domain/Quote.ts"
import { makeCoinbase, makeGet, makeKraken } from "../../../src/Quotes/sources/exchanges.ts"
import type { PriceReading } from "../../../src/Quotes/sources/PriceSource.ts"
import { listenHere } from "../../lib/loopback.ts"
import { liveTest } from "../../lib/scopedTest.ts"

type Respond = (response: ServerResponse, url: string) => void

const json =
  (body: unknown, headers: Readonly<Record<string, string>> = {}): Respond =>
  (response) =>
    response
      .writeHead(200, { "content-type": "application/json", ...headers })
      .end(typeof body === "string" ? body : JSON.stringify(body))

/** A server on this machine that responds by `respond`. */
const serverThat = Effect.fnUntraced(function* (respond: Respond) {
  const asked: Array<string> = []
  const agents: Array<string | undefined> = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? "")
    agents.push(request.headers["user-agent"])
    respond(response, request.url ?? "")
  })
  return { url: (yield* listenHere(server)).url, asked, agents }
})

/** Some are on, and AUD is not. */
const wanted = ["EUR", "GBP", "MXN", "CHF", "CZK", "JPY", "ETH", "USDC", "USDT", "DAI", "WBTC", "MATIC"] as const
const lacking = { symbol: "CZK", reason: "has no CZK" }

const read = (make: typeof makeKraken, respond: Respond) =>
  Effect.gen(function* () {
    const { agents, asked, url } = yield* serverThat(respond)
    const get = yield* makeGet
    return { reading: yield* Effect.either(make(get, url, wanted).read), asked, agents }
  })

/** Prices by symbol, or why there are none. */
const readPrices = (make: typeof makeKraken, respond: Respond) =>
  Effect.map(read(make, respond), ({ reading }) =>
    reading._tag === "Left" ? reading.left.reason : pricesOf(reading.right)
  )

const pricesOf = ({ points, refused }: PriceReading) => ({
  ...Object.fromEntries(points.map(({ price, symbol }): [QuoteCurrency, string] => [symbol, BigDecimal.format(price)])),
  refused: refused.map(({ symbol }) => symbol)
})

const rates = (over: Readonly<Record<string, string>> = {}) => ({
  data: {
    currency: "USD",
    rates: {
      ETH: "0.0004",
      USDC: "1.0",
      USDT: "1.001",
      DAI: "1",
      WBTC: "0.00001",
      POL: "4",
      MATIC: "9",
      EUR: "0.8",
      GBP: "0.75",
      MXN: "18.5",
      CHF: "0.8",
      JPY: "160",
      ...over
    }
  }
})

const market = (ask: unknown, bid: unknown) => ({ a: [ask, "1", "1.000"], b: [bid, "1", "1.000"], c: ["7", "0.1"] })
const tickers = (over: Readonly<Record<string, unknown>> = {}) => ({
  error: [],
  result: {
    XETHZUSD: market("2500.10", "2500.00"),
    USDCUSD: market("1.0001", "0.9999"),
    USDTZUSD: market("0.9995", "0.9993"),
    DAIUSD: market("1", "1"),
    WBTCUSD: market("100000", "99000"),
    POLUSD: market("0.25", "0.25"),
    ZEURZUSD: market("1.25", "1.25"),
    ZGBPZUSD: market("1.30", "1.28"),
    USDCHF: market("0.804", "0.796"),
    ZUSDZJPY: market("160", "160"),
    ...over
  }
})

describe("Coinbase", () => {
  liveTest("gives all prices in one request, as the inverse of what a dollar buys", function* () {
    const { agents, asked, reading } = yield* read(makeCoinbase, json(rates()))
    expect(reading._tag === "Right" && pricesOf(reading.right)).toEqual({
      ETH: "2500",
      USDC: "1",
      USDT: "0.999000999001",
      DAI: "1",
      WBTC: "100000",
      MATIC: "0.25",
      EUR: "1.25",
      GBP: "1.33333333333",
      MXN: "0.0540540540541",
      CHF: "1.25",
      JPY: "0.00625",
      refused: ["CZK"]
    })
    expect(reading._tag === "Right" && reading.right.refused).toEqual([lacking])
    expect(asked).toEqual(["/v2/exchange-rates?currency=USD"])
    expect(agents).toEqual([expect.stringMatching(/^tilld\//)])
  })

  liveTest("knows MATIC by its old name, and takes numbers digit for digit", function* () {
    const body = '{"data":{"currency":"USD","rates":{"MATIC":4.0,"ETH":0.000333333333333333333333,"DAI":1e-1}}}'
    const prices = yield* readPrices(makeCoinbase, json(body))
    expect(prices).toMatchObject({ MATIC: "0.25", ETH: "3000", DAI: "10" })
  })

  liveTest("refuses what is not above zero, and gives the others", function* () {
    const bad = { ETH: "0", DAI: "-1", WBTC: "NaN", EUR: "0x1", GBP: "", MXN: "1e400", CHF: "x" }
    expect(yield* readPrices(makeCoinbase, json(rates(bad)))).toEqual({
      USDC: "1",
      USDT: "0.999000999001",
      MATIC: "0.25",
      JPY: "0.00625",
      refused: ["EUR", "GBP", "MXN", "CHF", "CZK", "ETH", "DAI", "WBTC"]
    })
  })

  liveTest("has no prices if its rates are not in dollars", function* () {
    const euros = { data: { ...rates().data, currency: "EUR" } }
    expect(yield* readPrices(makeCoinbase, json(euros))).toBe("its answer has no rates")
    expect(yield* readPrices(makeCoinbase, json("[]"))).toBe("its answer has no rates")
  })
})

describe("Kraken", () => {
  liveTest("gives the middle of bid and ask, under its own names", function* () {
    const { asked, reading } = yield* read(makeKraken, json(tickers()))
    expect(reading._tag === "Right" && pricesOf(reading.right)).toEqual({
      ETH: "2500.05",
      USDC: "1",
      USDT: "0.9994",
      DAI: "1",
      WBTC: "99500",
      MATIC: "0.25",
      EUR: "1.25",
      GBP: "1.29",
      CHF: "1.25",
      JPY: "0.00625",
      refused: ["MXN", "CZK"]
    })
    expect(reading._tag === "Right" && reading.right.refused).toContainEqual(lacking)
    const pairs = "EURUSD,GBPUSD,USDCHF,USDJPY,ETHUSD,USDCUSD,USDTUSD,DAIUSD,WBTCUSD,POLUSD"
    expect(asked).toEqual([`/0/public/Ticker?pair=${pairs}`])
  })

  liveTest("refuses single markets that are absent, empty, or too wide", function* () {
    const bad = {
      XETHZUSD: undefined,
      USDCUSD: market("0", "0"),
      USDTZUSD: market("-1", "1"),
      DAIUSD: { a: [], b: ["1"] },
      WBTCUSD: market("102.01", "100"),
      POLUSD: market("1", "1.01"),
      ZUSDZJPY: market("164", "160")
    }
    expect(yield* readPrices(makeKraken, json(tickers(bad)))).toEqual({
      EUR: "1.25",
      GBP: "1.29",
      CHF: "1.25",
      refused: ["MXN", "CZK", "JPY", "ETH", "USDC", "USDT", "DAI", "WBTC", "MATIC"]
    })
  })

  liveTest("is not believed when it reports an error", function* () {
    const bad = { ...tickers(), error: ["EQuery:Unknown asset pair"] }
    expect(yield* readPrices(makeKraken, json(bad))).toBe("it answers with an error")
    expect(yield* readPrices(makeKraken, json({ error: [] }))).toBe("it answers with an error")
    expect(yield* readPrices(makeKraken, json({ result: {} }))).toBe("its answer is not a ticker")
  })
})

describe("a server that fails", () => {
  const half: Respond = (response) => void response.writeHead(200).write('{"data":', () => response.destroy())
  const failures: ReadonlyArray<readonly [what: string, respond: Respond, reason: RegExp]> = [
    ["HTML", json("<html>Just a moment…</html>"), /^its answer is not JSON$/],
    ["a status", (response) => response.writeHead(503).end("{}"), /^HTTP 503$/],
    ["a redirect", (response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(), /^HTTP 302$/],
    ["half an answer", half, /^no answer \(/],
    ["2 MB", json(`{"data":"${"x".repeat(2_000_000)}"}`), /^more than 1048576 bytes$/],
    ["deep nesting", json("[".repeat(250_000) + "]".repeat(250_000)), /^its answer (is not JSON|has no rates)$/],
    ["silence", () => undefined, /^no answer within 5s$/],
    // Headers come, and then a byte now and then.
    ["dripping", (response) => void response.writeHead(200).write("{"), /^no answer within 5s$/]
  ]
  it.scopedLive.each(failures)("%s", ([, respond, reason]) =>
    Effect.gen(function* () {
      expect(yield* readPrices(makeCoinbase, respond)).toMatch(reason)
    })
  )

  liveTest("does not listen", function* () {
    const get = yield* makeGet
    const failure = yield* Effect.flip(makeCoinbase(get, "http://127.0.0.1:1", wanted).read)
    expect(failure.message).toMatch(/^coinbase: no answer \((ECONNREFUSED|UND_ERR)/)
  })

  const observed = (headers: Readonly<Record<string, string>>) =>
    Effect.gen(function* () {
      const before = yield* Clock.currentTimeMillis
      const { reading } = yield* read(makeCoinbase, json(rates(), headers))
      const [point] = reading._tag === "Right" ? reading.right.points : []
      return { secondsOld: Math.round((before - (point?.observedAt ?? 0)) / 1000), maxAge: point?.maxAge }
    })

  liveTest("gives responses as old as an intermediate cache says", function* () {
    expect((yield* observed({})).secondsOld).toBeLessThanOrEqual(1)
    expect(yield* observed({ age: "600" })).toEqual({ secondsOld: 600, maxAge: 120_000 })
    const date = DateTime.toDateUtc(DateTime.subtract(yield* DateTime.now, { hours: 1 })).toUTCString()
    expect((yield* observed({ date })).secondsOld).toBeGreaterThanOrEqual(3_598)
  })
})
