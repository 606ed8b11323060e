import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { indexMetadata } from "../../src/Payments/metadata.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain } from "../lib/settings.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"

const app = testApp({ chains: [testChain({ chain: "base" })] })

liveSuite(app, "a payment's metadata is changed", (test) => {
  const make = Effect.fnUntraced(function* (metadata: object) {
    const { call, newAccount, newKey } = yield* TestApi
    const account = yield* newAccount("Shop")
    const key = yield* newKey("test", undefined, account)
    const json = { merchantRef: "order", amount: "1", currency: "ETH", chain: "base", metadata }
    const { body } = yield* call("POST", "/v1/payments", { key, json })
    const path = `/v1/payments/${body.id}`
    const change = (metadata: unknown, headers = {}) => call("PATCH", path, { key, json: { metadata }, headers })
    const find = (query: string) =>
      Effect.map(call("GET", `/v1/payments?${query}`, { key }), ({ body }) => body.data.length)
    return { account, change, find, key, path, payment: body }
  })

  test("key by key, in every status, with its row in the audit log; its events are as they were", function* () {
    const { change, key, path, payment } = yield* make({ cart: 7, email: "ada@example.org", kept: { a: [1] } })
    const { call } = yield* TestApi
    const stored = yield* rows("SELECT * FROM events WHERE payment_id = ?", [payment.id])
    const { body, status } = yield* change({ email: "eve@example.org", cart: null, gone: null })
    const after = { kept: { a: [1] }, email: "eve@example.org" }
    expect([status, body]).toEqual([200, { ...payment, metadata: after }])
    expect((yield* call("GET", path, { key })).body).toEqual(body)
    expect(yield* rows("SELECT * FROM events WHERE payment_id = ?", [payment.id])).toEqual(stored)
    const [act] = yield* rows<{ detail: string }>("SELECT via, act, detail FROM audit ORDER BY sequence DESC LIMIT 1")
    expect(act).toMatchObject({ via: "api", act: "payments metadata" })
    expect(JSON.parse(act?.detail ?? "")).toEqual({ id: payment.id, keys: ["email", "cart", "gone"] })
    for (const state of ["confirmed", "expired", "failed"]) {
      const confirmed = state === "confirmed" ? 1 : null
      yield* execute(
        "UPDATE payments SET status = ?, ended_at = 1, confirmed_at = ?, failure_reason = ? WHERE id = ?",
        [state, confirmed, state === "failed" ? "wrong_token" : null, payment.id]
      )
      expect((yield* change({ state })).body).toMatchObject({ status: state, metadata: { ...after, state } })
    }
  })

  test("and is found by the new value alone, whether it was indexed before or not", function* () {
    const { change, find } = yield* make({ n: 0 })
    const found = (n: number) => find(`metadata[n]=${n}`)
    yield* change({ n: 1 })
    expect([yield* found(0), yield* found(1)]).toEqual([0, 1])
    expect(yield* inTransaction(indexMetadata(1_000))).toBe(false)
    expect([yield* found(0), yield* found(1)]).toEqual([0, 1])
    yield* change({ n: 2 })
    expect([yield* found(1), yield* found(2)]).toEqual([0, 1])
    expect(yield* rows("SELECT value FROM metadata_terms WHERE key = 'n'")).toEqual([{ value: "2" }])
  })

  test("by the rules of a new payment, with what it has already; and of an own payment only", function* () {
    const many = (from: number, to: number) =>
      Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`k${from + i}`, i]))
    const { account, change, key, path } = yield* make(many(0, 40))
    const { call, newKey } = yield* TestApi
    const large = { text: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`${i}`, "x".repeat(395)])) }
    const refused: ReadonlyArray<readonly [unknown, string, string]> = [
      [many(40, 51), "metadata", "must have at most 50 keys, with those that it has already"],
      [large, "metadata", "must have at most 16 KiB as JSON, with what it has already"],
      [{ a: "x".repeat(501) }, "metadata.a", "must have at most 500 characters"],
      ["text", "metadata", "must be an object"]
    ]
    for (const [metadata, at, message] of refused) {
      const { body, status } = yield* change(metadata)
      expect([status, body.error.details]).toEqual([400, [{ path: at, message }]])
    }
    const acts = Effect.map(rows("SELECT 1 FROM audit"), ({ length }) => length)
    const before = yield* acts
    expect((yield* change({ ...many(40, 51), k0: null })).status).toBe(200)
    const others = yield* newKey("live", undefined, account)
    expect((yield* call("PATCH", path, { key: others, json: { metadata: {} } })).status).toBe(404)
    const reader = yield* newKey("test", ["payments:read"], account)
    expect((yield* call("PATCH", path, { key: reader, json: { metadata: {} } })).status).toBe(403)
    expect((yield* call("PATCH", path, { key, json: { amount: "1" } })).body.error.details).toHaveLength(2)
    // Of all these, the one that was carried out.
    expect(yield* acts).toBe(before + 1)
  })
})
