/** A shop of its own on a daemon without workers, and the people who look at its pages. */
import { Effect } from "effect"
import { TestApi, testApp } from "../lib/api.ts"
import { signIn } from "../lib/portal.ts"
import { testChain, testWebhooks } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"

const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 } as const

// 192.0.2.0/24 is for documentation: no one is called, and no dispatcher runs.
export const portalApp = testApp({
  chains: [testChain({ chain: "base", tokens: [usdc] })],
  webhooks: testWebhooks({ allowTargets: ["192.0.2.0/24"] })
})

let shops = 0

export const openShop = Effect.gen(function* () {
  const api = yield* TestApi
  const name = `shop-${++shops}`
  const account = yield* api.newAccount(name)
  const key = yield* api.newKey("test", undefined, account)
  const admin = yield* signIn(api, { account, name: `admin of ${name}` })
  const viewer = yield* signIn(api, { account, role: "viewer", name: `viewer of ${name}` })
  const base = `/portal/a/${account}/test`
  const endpoint = (path = "a") =>
    Effect.map(
      api.call("POST", "/v1/webhooks", {
        key,
        json: { url: `https://192.0.2.1/${path}`, events: ["payment.created"], secret: "whsec_0123456789abcdef" }
      }),
      ({ body }): string => body.id
    )
  const pay = (merchantRef: string) =>
    Effect.map(
      api.call("POST", "/v1/payments", {
        key,
        json: { merchantRef, amount: "1", currency: "USDC", chain: "base" }
      }),
      ({ body }): string => body.id
    )
  return { account, admin, api, base, endpoint, key, name, pay, viewer }
})

/** The payment's delivery has failed once, with an attempt at an inside address. */
export const failOnce = (payment: string, bodyStart = "no") =>
  Effect.gen(function* () {
    yield* execute("UPDATE deliveries SET attempts = 1, next_attempt_at = 9e12 WHERE payment_id = ?", [payment])
    yield* execute(
      `INSERT INTO attempts (delivery, number, started_at, ended_at, address, status, body_start)
       SELECT sequence, 1, 1000, 1031, '10.0.0.7', 500, ? FROM deliveries WHERE payment_id = ?`,
      [bodyStart, payment]
    )
  })

/** The value of a field in a page. */
export const valueOf = (text: string, name: string): string => {
  const tag = new RegExp(`<input[^>]* name="${name}"[^>]*>`).exec(text)?.[0] ?? ""
  return / value="([^"]*)"/.exec(tag)?.[1] ?? ""
}
