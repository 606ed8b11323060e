/** A shop with its portal: the whole daemon but its workers, and people who look at the shop's pages. */
import { Effect, Redacted } from "effect"
import { defaultAccount } from "../../src/Auth.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import type { AccountId } from "../../src/Domain/Ids.ts"
import type { CreatePayment } from "../../src/Domain/Payment.ts"
import { Payments } from "../../src/Payments.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { signIn, type Who } from "../lib/portal.ts"
import { liveXpub, testChain, testXpub } from "../lib/settings.ts"

export const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 } as const

/** Base Sepolia, of which there is an explorer; its node is not there. */
export const shop = testApp({
  chains: [
    testChain({ chainId: 84532, tokens: [usdc], rpcUrls: [Redacted.make("https://127.0.0.1:1")] }),
    testChain({ mode: "live", chainId: 8453, tokens: [usdc], rpcUrls: [Redacted.make("https://127.0.0.1:1")] })
  ],
  wallets: { live: Redacted.make(liveXpub), test: Redacted.make(testXpub) }
})

export const home = "/portal/a/default/test"

/** Someone who is signed in; an operator unless a role and an account are given. */
export const somebody = (who: Who = {}) => Effect.flatMap(TestApi, (api) => signIn(api, who))
export const viewer = somebody({ role: "viewer", account: "default", name: "Vera" })
export const admin = somebody({ role: "admin", account: "default", name: "Ada" })

let references = 0

export const makePayment = (
  over: Partial<CreatePayment> = {},
  owner: { readonly account: AccountId; readonly mode: Mode } = { account: defaultAccount, mode: "test" }
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

/** So many payments at once, an hour apart, the newest now. `status` is that of all. */
export const crowdSql = (status: "confirmed" | "expired") =>
  `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
   INSERT INTO payments (id, account_id, mode, merchant_ref, amount, currency, chain, address, checkout_token,
     wallet, wallet_index, status, created_at, expires_at, metadata, confirmed_at, ended_at, usd_value)
   SELECT 'pay_crowd' || n, 'default', 'test', 'crowd ' || n, '1500000', 'USDC', 'base', 'crowd ' || n, 'crowd ' || n,
     (SELECT fingerprint FROM wallets LIMIT 1), 1000000 + n, '${status}', ? - n * ?, ? - n * ? + 3600000, '{}',
     ${status === "confirmed" ? "? - n * ? + 30000" : "NULL"}, ?, '1.5' FROM numbers`
