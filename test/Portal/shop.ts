/** A daemon without workers, accounts with shops on it, and the people who look at their pages. */
import { Effect, Redacted } from "effect"
import { defaultAccount } from "../../src/Auth.ts"
import type { Owner } from "../../src/Domain/Account.ts"
import type { Fiat } from "../../src/Domain/Currency.ts"
import type { CreatePayment } from "../../src/Domain/Payment.ts"
import { Invoices } from "../../src/Invoices.ts"
import { Payments } from "../../src/Payments.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { storeLateMoney } from "../lib/exceptions.ts"
import { signIn, type Who } from "../lib/portal.ts"
import { liveXpub, testChain, testWebhooks, testXpub } from "../lib/settings.ts"
import { execute, rows } from "../lib/store.ts"

export const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 } as const

/** Base Sepolia, of which there is an explorer; its node is not there. No one is called at 192.0.2.0/24 either. */
const portalSettings = {
  chains: [
    testChain({ chainId: 84532, tokens: [usdc], rpcUrls: [Redacted.make("https://127.0.0.1:1")] }),
    testChain({ mode: "live", chainId: 8453, tokens: [usdc], rpcUrls: [Redacted.make("https://127.0.0.1:1")] })
  ],
  wallets: { live: Redacted.make(liveXpub), test: Redacted.make(testXpub) },
  webhooks: testWebhooks({ allowTargets: ["192.0.2.0/24"] })
}
export const portalApp = testApp(portalSettings)

export const home = "/portal/a/default/test"

/** Someone who is signed in; an operator unless a role and an account are given. */
export const somebody = (who: Who = {}) => Effect.flatMap(TestApi, (api) => signIn(api, who))
export const viewer = somebody({ role: "viewer", account: "default", name: "Vera" })
export const admin = somebody({ role: "admin", account: "default", name: "Ada" })

/** The worth and the base units of what a page says next to a title. */
export const shownIn = (text: string, title: string) => {
  const [, worth = "", tokens = ""] =
    new RegExp(`${title}.*?<p class="big">(.*?)</p>.*?<ul>(.*?)</ul>`, "s").exec(text) ?? []
  return [worth, ...[...tokens.matchAll(/class="money">(.*?)</g)].map(([, money = ""]) => money)]
}

let references = 0

export const makePayment = (
  over: Partial<CreatePayment> = {},
  owner: Owner = { account: defaultAccount, mode: "test" }
) =>
  Effect.flatMap(Payments, (payments) =>
    Effect.map(
      payments.create(owner, {
        merchantRef: `order ${++references}`,
        amount: 54_615_517n,
        currency: "USDC",
        chain: "base",
        ...over
      }),
      ({ payment }) => payment
    )
  )

let receipts = 0

interface IncomeRow {
  readonly amount: string
  /** Unix milliseconds. */
  readonly at: number
  readonly rate?: string | null
  readonly currency?: Fiat
}

/** A row of the ledger that is income, as settlement stores it. */
export const storeIncome = (payment: string, { amount, at, currency = "USD", rate = "1" }: IncomeRow) =>
  execute(
    `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       payment_id, account_id, canonical, corroborated, seen_at, kind, credited, rate, rate_currency, rate_source)
     SELECT chain, mode, ?, lower(address), 'log:0', 1, ?, ?, currency, ?, id, account_id, 1, 1, 1, 'credited', ?,
       ?, ?, ? FROM payments WHERE id = ?`,
    [
      `0xincome${++receipts}`,
      Math.floor(at / 1000),
      `0xincome${receipts}`,
      amount,
      amount,
      rate,
      currency,
      rate === null ? "no_fresh_price" : "fixed",
      payment
    ]
  )

/** So many payments at once, an hour apart, the newest now. `status` is that of all. */
export const crowdSql = (status: "confirmed" | "expired") =>
  `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
   INSERT INTO payments (id, account_id, mode, merchant_ref, amount, currency, chain, address, checkout_token,
     wallet, wallet_index, status, created_at, expires_at, metadata, confirmed_at, ended_at, usd_value)
   SELECT 'pay_crowd' || n, 'default', 'test', 'crowd ' || n, '1500000', 'USDC', 'base', 'crowd ' || n, 'crowd ' || n,
     (SELECT fingerprint FROM wallets LIMIT 1), 1000000 + n, '${status}', ? - n * ?, ? - n * ? + 3600000, '{}',
     ${status === "confirmed" ? "? - n * ? + 30000" : "NULL"}, ?, '1.5' FROM numbers`

let shops = 0

/** A shop of its own, with an admin and a viewer. */
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

/** A shop with one of each kind of object. `path` names one by its section: `/keys/:id` is that of the key. */
export const furnishedShop = Effect.gen(function* () {
  const shop = yield* openShop
  const webhooks = yield* shop.endpoint()
  const payments = yield* shop.pay("1")
  yield* failOnce(payments)
  const exceptions = yield* storeLateMoney(payments, 1_000_000 + shops)
  const refunds = `ref_${shops}`
  yield* execute(
    `INSERT INTO refunds (id, payment_id, account_id, mode, address, chain, currency, amount, status, created_at, changed_at, block_time)
     SELECT ?, id, account_id, mode, lower(address), chain, currency, '1', 'noted', 1, 1, 1 FROM payments WHERE id = ?`,
    [refunds, payments]
  )
  const price = { amount: "25.00", currency: "USD" } as const
  const { invoice } = yield* (yield* Invoices).create({ account: shop.account, mode: "test" }, { price })
  const requests = `req_${shops}`
  yield* execute(
    `INSERT INTO requests (id, at, account_id, mode, key_id, method, path, status, duration_us)
     SELECT ?, 1, account_id, mode, id, 'GET', '/v1/payments', 200, 5 FROM api_keys WHERE account_id = ?`,
    [requests, shop.account]
  )
  const [found = { keys: "", deliveries: "" }] = yield* rows<{ keys: string; deliveries: string }>(
    `SELECT api_keys.id AS keys, deliveries.id AS deliveries
     FROM api_keys JOIN deliveries USING (account_id) WHERE account_id = ?`,
    [shop.account]
  )
  const ids: Readonly<Record<string, string>> = {
    ...{ ...found, exceptions, invoices: invoice.id, payments, refunds, requests, webhooks }
  }
  const path = (of: string, base = shop.base) =>
    base + of.replace(/^\/(\w+)\/:id/, (_, name) => `/${name}/${ids[name]}`)
  return { ...shop, ids, path }
})

/** The value of a field in a page. */
export const valueOf = (text: string, name: string): string => {
  const tag = new RegExp(`<input[^>]* name="${name}"[^>]*>`).exec(text)?.[0] ?? ""
  return / value="([^"]*)"/.exec(tag)?.[1] ?? ""
}
