import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { RequestLog } from "../../src/Http/RequestLog.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { rows } from "../lib/store.ts"
import { openShop, portalApp } from "./shop.ts"

/** Waits until the worker has stored so many requests of an account. */
const logged = (account: string, count: number) =>
  Effect.gen(function* () {
    const { run } = yield* RequestLog
    const found = rows("SELECT 1 FROM requests WHERE account_id = ?", [account])
    const stored = Effect.repeat(Effect.delay(found, "20 millis"), { until: ({ length }) => length >= count })
    yield* Effect.raceFirst(stored, run)
  })

liveSuite(portalApp, "requests in the portal", (test) => {
  test("each request with a key is listed, the refused ones with their reason", function* () {
    const { account, admin, api, base, key, pay, viewer } = yield* openShop
    yield* pay("1")
    yield* pay("tiny")
    const refused = yield* api.call("POST", "/v1/payments", { key, json: { merchantRef: "2", amount: "-1" } })
    const missed = yield* api.call("GET", "/v1/payments/pay_none", { key })
    yield* logged(account, 4)
    const { text } = yield* viewer.get(`${base}/requests`)
    const shown = [...text.matchAll(/\/requests\/req_[\w-]+">([^<]*)</g)].map(([, what]) => what)
    expect(shown).toEqual(["GET /v1/payments/:id", "POST /v1/payments", "POST /v1/payments", "POST /v1/payments"])
    expect(text).toContain("<code>NOT_FOUND</code>")
    const only = yield* admin.get(`${base}/requests?only=refused`)
    expect(only.text).not.toContain(">201<")
    expect(only.text).toContain("<code>VALIDATION_ERROR</code>")

    const id = refused.headers["x-request-id"] as string
    const one = yield* admin.get(`${base}/requests/${id}`)
    expect(one.text).toContain("The request is not valid")
    expect(one.text).toContain("merchantRef")
    const found = yield* admin.get(`${base}/requests?id=${missed.headers["x-request-id"]}`)
    expect(found.text.split("/requests/req_")).toHaveLength(2)
  })

  test("of mistaken bodies a viewer reads no secret, neither as a value nor as a name", function* () {
    const { account, api, base, key, viewer } = yield* openShop
    const secret = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
    const bodies = [
      { merchantRef: "1", private_key: secret, signing_key: secret, Authorization: `Bearer ${secret}` },
      { currency: secret, chain: `0x${secret}`, amount: [secret], quoteId: secret, metadata: { a: secret } },
      { webhookUrl: `https://${secret.slice(0, 40)}.example/${secret}`, [secret]: 1, events: secret },
      [secret],
      secret
    ]
    const ids: Array<string> = []
    for (const json of bodies) {
      const { headers, status } = yield* api.call("POST", "/v1/payments", { key, json })
      expect(status).toBe(400)
      ids.push(headers["x-request-id"] as string)
    }
    yield* api.call("GET", `/v1/payments/${secret}?${secret}=${secret}`, { key })
    yield* logged(account, 6)
    for (const id of ids) {
      const { text } = yield* viewer.get(`${base}/requests/${id}`)
      expect(text).toContain("[redacted]")
      expect(text).not.toContain(secret.slice(0, 8))
    }
    expect(JSON.stringify(yield* rows("SELECT * FROM requests WHERE account_id = ?", [account]))).not.toContain(
      secret.slice(0, 8)
    )
    expect((yield* viewer.get(`${base}/requests/${ids[0]}`)).text).toContain("signing_key")
  })
})
