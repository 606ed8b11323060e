import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testRates } from "../lib/settings.ts"

const app = testApp({ rates: testRates({ EUR: "1.10", USDC: "1" }) })

const currencies = "must be USD, EUR, GBP, MXN, ETH, USDC, USDT, DAI, WBTC or MATIC"
const amountRule =
  'must be a decimal string above 0, such as "100.50", with at most 30 digits before the point and 18 after it'

liveSuite(app, "quotes over HTTP", (test) => {
  test("a quote has every field of the interface, and can be recomputed", function* () {
    const api = yield* TestApi
    const { body, status } = yield* api.call("POST", "/v1/quotes", {
      key: yield* api.newKey(),
      json: { fromCurrency: "EUR", toCurrency: "USD", amount: "100.00" }
    })
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^quote_[A-Za-z0-9_-]{22}$/),
      fromCurrency: "EUR",
      toCurrency: "USD",
      fromAmount: "100.00",
      toAmount: "109.45",
      chargeAmount: "110",
      rate: "1.1",
      chain: "ethereum",
      validUntil: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      fees: { network: "0", service: "0.55" }
    })
  })

  test("all problems are reported at once", function* () {
    const api = yield* TestApi
    const key = yield* api.newKey()
    const problems = (json: unknown) => Effect.map(api.call("POST", "/v1/quotes", { key, json }), problemsIn)
    expect(yield* problems({ fromCurrency: "BTC", toCurrency: "usd", amount: 5, chain: "x", from: "USD" })).toEqual({
      fromCurrency: currencies,
      toCurrency: currencies,
      amount: amountRule,
      chain: "must be ethereum, polygon, arbitrum, optimism or base",
      from: "is not a field of this endpoint"
    })
    const long = ["1".repeat(31), `1.${"1".repeat(19)}`]
    for (const amount of ["0", "0.00", "-1", "01", "1.", ".5", "1e3", "1,5", " 1", "", ...long]) {
      expect(yield* problems({ fromCurrency: "ETH", toCurrency: "USD", amount }), amount).toEqual({
        amount: amountRule
      })
    }
  })

  test("no price is a 503 that says when to come back, and too little a 422", function* () {
    const api = yield* TestApi
    const key = yield* api.newKey()
    const json = { fromCurrency: "USD", toCurrency: "EUR", amount: "5" }
    const ask = (fields: Partial<typeof json & { readonly chain: string }>) =>
      api.call("POST", "/v1/quotes", { key, json: { ...json, ...fields } })
    const noPrice = yield* ask({ toCurrency: "GBP" })
    const { body, headers, status } = noPrice
    expect([status, headers["retry-after"], body.error.code]).toEqual([503, "10", "RATE_UNAVAILABLE"])
    // No watcher runs here, so that no gas price is known.
    const noGas = yield* ask({ toCurrency: "USDC", chain: "base" })
    expect([noGas.status, noGas.body.error.message]).toEqual([
      503,
      "No recent gas price of base is known: ask again later."
    ])
    const little = yield* ask({ amount: "0.01" })
    expect([little.status, little.body.error.code, little.body.error.details]).toEqual([
      422,
      "AMOUNT_TOO_SMALL",
      { gross: "0", fees: { network: "0", service: "0" } }
    ])
  })
})
