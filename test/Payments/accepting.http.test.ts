// A chain and a token that the configuration has closed for new payments, at every place that offers what can be paid.
import { expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { plugin, wooPermissions } from "../Greenfield/shopSystem.ts"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { signIn } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { liveXpub, testChain, testRates, testXpub } from "../lib/settings.ts"

const usdc = { symbol: "USDC", address: `0x${"a".repeat(40)}`, decimals: 6 } as const
const usdt = { symbol: "USDT", address: `0x${"b".repeat(40)}`, decimals: 6 } as const

const app = testApp({
  chains: [
    testChain({ chain: "base", tokens: [usdc], accepting: false }),
    testChain({ chain: "polygon", chainId: 80002, tokens: [{ ...usdc, accepting: false }, usdt] }),
    testChain({ chain: "base", mode: "live", chainId: 8453, tokens: [usdc], accepting: false })
  ],
  wallets: { live: Redacted.make(liveXpub), test: Redacted.make(testXpub) },
  rates: testRates({ USDC: "1", USDT: "1", ETH: "2500", EUR: "1.10", MATIC: "0.5" })
})

liveSuite(app, "what takes nothing new", (test) => {
  test("is refused with what is open, and the operator's remedy where nothing is", function* () {
    const { call, newKey } = yield* TestApi
    const [key, live] = [yield* newKey(), yield* newKey("live")]
    const pay = (json: object, as = key) =>
      Effect.map(
        call("POST", "/v1/payments", {
          key: as,
          json: { merchantRef: "1", amount: "1000000", currency: "USDC", ...json }
        }),
        problemsIn
      )
    expect(yield* pay({ chain: "base" })).toEqual({ chain: "base is not available to this key: choose polygon" })
    expect(yield* pay({ chain: "polygon" })).toEqual({ currency: "USDC is not available on polygon: choose USDT" })
    expect(yield* pay({ chain: "base" }, live)).toEqual({
      chain: "no chain is open for live keys: the operator adds [chains.base.live], or sets accepting = true in it"
    })
    const invoice = (json: object) =>
      Effect.map(
        call("POST", "/v1/invoices", { key, json: { price: { amount: "5", currency: "EUR" }, ...json } }),
        problemsIn
      )
    expect(yield* invoice({ currencies: ["USDC-base", "USDC-polygon"] })).toEqual({
      "currencies[0]": "is not available: choose of USDT-polygon",
      "currencies[1]": "is not available: choose of USDT-polygon"
    })
    const quote = (json: object) => Effect.map(call("POST", "/v1/quotes", { key, json }), problemsIn)
    const wanted = { fromCurrency: "EUR", toCurrency: "USDC", amount: "5" }
    expect(yield* quote({ ...wanted, chain: "base" })).toEqual({
      chain: "base is not available to this key: no chain is"
    })
    expect(yield* quote({ ...wanted, toCurrency: "USDT", chain: "ethereum" })).toEqual({
      chain: "ethereum is not available to this key: choose polygon"
    })
  })

  test("is offered by no list, form or shop plugin", function* () {
    const api = yield* TestApi
    const { body } = yield* api.call("GET", "/v1/currencies", { key: yield* api.newKey() })
    expect(body.data.map((one: { currency: string; chain: string }) => `${one.currency}-${one.chain}`)).toEqual([
      "USDT-polygon"
    ])
    const ada = yield* signIn(api, { role: "admin", account: "default" })
    const form = (yield* ada.get("/portal/a/default/test/payments/new")).text
    expect(Array.from(form.matchAll(/<option value="(\w+-\w+)"/g), ([, value]) => value)).toEqual(["USDT-polygon"])
    const { ofStore } = yield* plugin(wooPermissions)
    expect((yield* ofStore("GET", "payment-methods")).body).toEqual([
      { paymentMethodId: "USDT-POLYGON", enabled: true, config: null }
    ])
  })
})
