import { expect } from "@effect/vitest"
import { Accounts, defaultAccount } from "../../src/Auth.ts"
import { permissions } from "../../src/Domain/ApiKey.ts"
import { apiWithKey, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testRates } from "../lib/settings.ts"

liveSuite(
  testApp({
    accounts: { quotaBytes: 1_000, perMinute: undefined, perHour: undefined },
    rates: testRates({ EUR: "1.10" })
  }),
  "an account at its quota",
  (test) => {
    test("can create nothing, gets a remedy, and can still read", function* () {
      const api = yield* TestApi
      const key = yield* api.newKey("test", permissions, yield* api.newAccount("Other"))
      const quote = { fromCurrency: "EUR", toCurrency: "USD", amount: "49.90" }
      const order = { merchantRef: "order", amount: "1", currency: "ETH", chain: "base" }
      const url = `https://8.8.8.8/${"h".repeat(1_500)}`
      const asked = [
        ["/v1/webhooks", { url, events: ["payment.confirmed"], secret: "whsec_0123456789abcdef" }],
        ["/v1/payments", { ...order, metadata: { n: "x".repeat(500) } }]
      ] as const
      let refused = yield* api.call("POST", "/v1/quotes", { key, json: quote })
      while (refused.status === 201) refused = yield* api.call("POST", "/v1/quotes", { key, json: quote })
      expect([refused.status, refused.body.error.code]).toEqual([507, "QUOTA_EXCEEDED"])
      for (const [path, json] of asked) {
        const answer = yield* api.call("POST", path, { key, json })
        expect([answer.status, answer.body.error.code]).toEqual([507, "QUOTA_EXCEEDED"])
        expect(answer.body.error.message).toContain("tilld accounts change --quota")
      }
      expect((yield* api.call("GET", "/v1/payments", { key })).body).toEqual({ data: [], cursor: null })
      expect((yield* api.call("GET", "/v1/webhooks", { key })).body).toEqual({ data: [] })
    })

    test("is never the account default, unless the operator gives that a quota", function* () {
      const { api, key } = yield* apiWithKey
      const create = (merchantRef: string) => {
        const order = { merchantRef, amount: "1", currency: "ETH", chain: "base" }
        return api.call("POST", "/v1/payments", { key, json: { ...order, metadata: { n: "x".repeat(500) } } })
      }
      for (const ref of ["a", "b", "c"]) expect(yield* create(ref)).toMatchObject({ status: 201 })
      const accounts = yield* Accounts
      yield* accounts.change(defaultAccount, { quotaBytes: 1_000 })
      expect(yield* create("d")).toMatchObject({ status: 507, body: { error: { code: "QUOTA_EXCEEDED" } } })
      // A repeated request gets its existing payment.
      expect(yield* create("a")).toMatchObject({ status: 409 })
      yield* accounts.change(defaultAccount, { quotaBytes: 0 })
      expect(yield* create("d")).toMatchObject({ status: 201 })
      yield* accounts.change(defaultAccount, { quotaBytes: 1_000 })
      yield* accounts.change(defaultAccount, { quotaBytes: undefined })
      expect(yield* create("e")).toMatchObject({ status: 201 })
    })
  }
)
