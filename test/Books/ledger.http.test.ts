import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { iso } from "../../src/lib/moment.ts"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"

const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 } as const
const app = testApp({ chains: [testChain({ chain: "base", tokens: [usdc] })] })

liveSuite(app, "the ledger by the API", (test) => {
  /** A payment of the account to which five receipts came, at the seconds 1 to 5. */
  const paidFor = Effect.fnUntraced(function* (account?: Parameters<TestApi["Type"]["newKey"]>[2]) {
    const api = yield* TestApi
    const key = yield* api.newKey("test", ["payments:read", "payments:write"], account)
    const json = { merchantRef: "order-1", amount: "5000000", currency: "USDC", chain: "base" }
    const { body } = yield* api.call("POST", "/v1/payments", { key, json })
    yield* execute(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
         payment_id, account_id, canonical, corroborated, seen_at, kind, credited, rate, rate_currency, rate_source)
       SELECT 'base', 'test', printf('0x%064x', value), lower(address), 'log:0', CAST(value AS BIGINT), CAST(value AS BIGINT), printf('0x%064x', value), 'USDC',
         '1000000', payments.id, account_id, 1, 1, 1, 'credited', '1000000', '0.9', 'EUR', 'fixed'
       FROM payments, json_each('[1,2,3,4,5]') WHERE payments.id = ?`,
      [body.id]
    )
    const ledger = (query: string, by = key) => api.call("GET", `/v1/ledger${query}`, { key: by })
    return { api, key, id: body.id as string, ledger }
  })

  test("has the rows of its account and mode, newest first, a page at a time", function* () {
    const { api, id, ledger } = yield* paidFor()
    const { body } = yield* ledger("?limit=2")
    expect(body.data.map(({ at }: { at: string }) => at)).toEqual([iso(5000), iso(4000)])
    expect(body.data[0]).toMatchObject({
      ...{ kind: "receipt", payment: id, merchantRef: "order-1", chain: "base", currency: "USDC", amount: "1000000" },
      ...{ quantity: "1.000000", worth: "0.90", income: "0.90", worthCurrency: "EUR", rate: "0.9", rateSource: "fixed" }
    })
    expect(Object.keys(body.data[0])).not.toContain("account")
    const rest = yield* ledger(`?limit=3&cursor=${body.cursor}`)
    expect(rest.body.data.map(({ at }: { at: string }) => at)).toEqual([iso(3000), iso(2000), iso(1000)])
    expect(rest.body.cursor).toBeNull()
    for (const by of [
      yield* api.newKey("live"),
      yield* api.newKey("test", undefined, yield* api.newAccount("other"))
    ]) {
      expect((yield* ledger("", by)).body).toEqual({ data: [], cursor: null })
    }
  })

  test("is narrowed by time, kind, chain, currency and payment", function* () {
    const api = yield* TestApi
    const { id, ledger } = yield* paidFor(yield* api.newAccount("narrow"))
    const count = (query: string) => Effect.map(ledger(`?${query}`), ({ body }) => body.data.length)
    expect(yield* count(`from=${iso(2000)}&until=${iso(4000)}`)).toBe(2)
    expect(yield* count("kind=gas")).toBe(0)
    expect(yield* count("kind=receipt&currency=USDC")).toBe(5)
    expect([yield* count("currency=DAI"), yield* count("chain=polygon"), yield* count("chain=base")]).toEqual([0, 0, 5])
    expect([yield* count(`payment=${id}`), yield* count("payment=pay_none")]).toEqual([5, 0])
  })

  test("refuses what it does not know, and a key that may not read payments", function* () {
    const { api, ledger } = yield* paidFor(yield* Effect.flatMap(TestApi, (api) => api.newAccount("refused")))
    const wrong = yield* ledger("?kind=money&from=soon&month=2026-11")
    expect([wrong.status, Object.keys(problemsIn(wrong)).toSorted()]).toEqual([400, ["from", "kind", "month"]])
    expect((yield* ledger("?cursor=nonsense")).body.error.code).toBe("INVALID_CURSOR")
    expect((yield* ledger("", yield* api.newKey("test", ["webhooks:read"]))).status).toBe(403)
  })
})
