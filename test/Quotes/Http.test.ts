import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { QuoteCurrency } from "../../src/Domain/Quote.ts"
import { alternatives } from "../../src/lib/annotations.ts"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testRates } from "../lib/settings.ts"

const app = testApp({ rates: testRates({ EUR: "1.10", USDC: "1" }) })

const currencies = `must be ${alternatives(QuoteCurrency.literals)}`
const amountRule =
  'must be a decimal string above 0, such as "100.50", with at most 30 digits before the point and 18 after it'

liveSuite(app, "quotes over HTTP", (test) => {
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
    expect(yield* problems({ fromCurrency: "CHF", toCurrency: "USD", amount: "5" })).toEqual({
      fromCurrency: 'CHF is off here: the operator turns it on by adding "CHF" to rates.currencies in the configuration'
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
    const little = yield* ask({ amount: "0.01" })
    expect([little.status, little.body.error.code, little.body.error.details]).toEqual([
      422,
      "AMOUNT_TOO_SMALL",
      { gross: "0", fees: { network: "0", service: "0" } }
    ])
  })
})
