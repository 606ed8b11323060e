import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { newAccountId } from "../../src/Domain/Ids.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { signIn } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { liveXpub, testChain, testRates, testXpub } from "../lib/settings.ts"
import { rows } from "../lib/store.ts"
import { openShop, valueOf } from "./shop.ts"

const app = testApp({ chains: [testChain()], rates: testRates({ ETH: "2500.5", USDC: "1" }) })

liveSuite(app, "prices, health and accounts in the portal", (test, it) => {
  const operator = Effect.flatMap(TestApi, (api) => signIn(api))

  test("prices show what a quote uses, and why there is none", function* () {
    const { base, viewer } = yield* openShop
    const { status, text } = yield* viewer.get(`${base}/quotes`)
    expect(status).toBe(200)
    const rowOf = (symbol: string) => new RegExp(`<th scope="row">${symbol}</th>(.*?)</tr>`, "s").exec(text)?.[1] ?? ""
    expect(rowOf("ETH")).toMatch(/2,500\.5.*used.*fixed/s)
    expect(rowOf("EUR")).toMatch(/–.*refused.*no source has one/s)
  })

  test("health is for operators, and names each chain, provider and condition", function* () {
    const { admin, base } = yield* openShop
    expect((yield* admin.get(`${base}/health`)).status).toBe(403)
    const { status, text } = yield* (yield* operator).get(`${base}/health`)
    expect(status).toBe(200)
    for (const said of ["Base</span> (test)", "127.0.0.1", "base.test is not read", "Database file", "tilld 0."]) {
      expect(text).toContain(said)
    }
  })

  test("an account is made once by its form, with its own wallets, and can be switched to", function* () {
    const { admin, base } = yield* openShop
    expect((yield* admin.get(`${base}/accounts`)).status).toBe(403)
    expect((yield* admin.post(`${base}/accounts`, { id: newAccountId(), name: "Mine" })).status).toBe(403)
    const ada = yield* operator
    const id = valueOf((yield* ada.get(`${base}/accounts/new`)).text, "id")
    // Another account's wallet than the configuration's, which is of the test mode.
    const fields = { id, name: "Café <i>", testXpub: "", liveXpub }
    for (const _ of [1, 2]) {
      const made = yield* ada.post(`${base}/accounts`, fields)
      expect(made).toMatchObject({ status: 303, headers: { location: `/portal/a/${id}/test?done=account` } })
    }
    const { text } = yield* ada.get(`${base}/accounts`)
    expect(text.split(`<code>${id}</code>`)).toHaveLength(2)
    expect(text).toContain("Café &lt;i>")
    expect(text).toContain("its own: live")
    expect((yield* ada.get(`/portal/a/${id}/live/keys`)).status).toBe(200)
    const acts = yield* rows<{ detail: string }>("SELECT detail FROM audit WHERE act = 'accounts create'")
    expect(acts.map(({ detail }) => JSON.parse(detail))).toEqual([
      { account: id, name: "Café <i>", ownWallets: ["live"] }
    ])
  })

  it.scoped.each([
    [{ liveXpub: "xpub661" }, "must be the extended public key"],
    [{ liveXpub: testXpub }, "used in the other mode"],
    [{ name: "" }, "is required"],
    [{ id: "../x" }, "must be the id of a new account"],
    [{ liveXpub: "ab".repeat(32) }, "Treat it as exposed"]
  ] as const)("an account with %j is refused", ([over, reason]) =>
    Effect.gen(function* () {
      const { base } = yield* openShop
      const ada = yield* operator
      const before = (yield* rows("SELECT 1 FROM accounts")).length
      const refused = yield* ada.post(`${base}/accounts`, { id: newAccountId(), name: "Shop", ...over })
      expect(refused).toMatchObject({ status: 422, text: expect.stringContaining(reason) })
      // A private key is not shown again.
      expect(refused.text).not.toContain("ab".repeat(32))
      expect((yield* rows("SELECT 1 FROM accounts")).length).toBe(before)
    })
  )

  test("an operator changes what an account may do, and its admin may not", function* () {
    const { account, admin, api, base, key } = yield* openShop
    const ada = yield* operator
    const path = `${base}/accounts/${account}`
    for (const refused of [yield* admin.get(path), yield* admin.post(path, { perMinute: "9" })]) {
      expect(refused.status).toBe(403)
    }
    const limit = Effect.map(api.call("GET", "/v1/payments", { key }), ({ headers }) => headers["x-ratelimit-limit"])
    const form = { quota: "2 GB", perMinute: "9", perHour: "" }
    expect((yield* ada.post(path, form)).status).toBe(303)
    expect(yield* limit).toBe("9")
    const page = (yield* ada.get(path)).text
    expect(page).toContain(" of 2.00 GB")
    expect([valueOf(page, "quota"), valueOf(page, "perMinute"), valueOf(page, "perHour")]).toEqual([
      "2000000000",
      "9",
      ""
    ])
    const refused = yield* ada.post(path, { ...form, quota: "much" })
    expect([refused.status, refused.text.includes("must be a size such as 500MB")]).toEqual([422, true])
    expect((yield* ada.post(path, { quota: "none", perMinute: "", perHour: "" })).status).toBe(303)
    expect((yield* ada.get(path)).text).toContain(", no quota")
    expect(yield* limit).toBe("1000000")
    const acts = yield* rows<{ detail: string }>(
      "SELECT detail FROM audit WHERE act = 'accounts change' ORDER BY sequence"
    )
    expect(acts.map(({ detail }) => JSON.parse(detail))).toEqual([
      { account, quotaBytes: 2_000_000_000, perMinute: 9, perHour: "default" },
      { account, quotaBytes: "none", perMinute: "default", perHour: "default" }
    ])
    expect((yield* ada.get(`${base}/accounts/acct_0123456789012345678901`)).status).toBe(404)
  })
})
