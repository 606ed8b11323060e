import { expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { OpenApiDocument } from "../../src/Documents/openApi.ts"
import { type Answered, type Sent, TestApi, testApp } from "../lib/api.ts"
import { storeLateMoney } from "../lib/exceptions.ts"
import { validateAnswer } from "../lib/openapi.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testRates, testSettings, testXpub } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"

/** Sends a request, and validates the response against the document of the same server. */
const makeAsk = Effect.gen(function* () {
  const api = yield* TestApi
  const document: OpenApiDocument = (yield* api.call("GET", "/openapi.json")).body
  return (method: string, path: string, sent: Sent = {}) =>
    Effect.map(api.call(method, path, sent), (answered) => {
      const { body, headers, status, text } = answered
      const problems = validateAnswer(document, method, path, status, headers, body ?? text)
      expect(problems, `${method} ${path}: ${status} ${text.slice(0, 300)}`).toEqual([])
      return answered
    })
})

/** The same, and a key. */
const asker = Effect.gen(function* () {
  return { ask: yield* makeAsk, key: yield* (yield* TestApi).newKey() }
})

const outcome = ({ body, status }: Answered): string => `${status} ${body.error.code}`

let references = 0
let clients = 0

const payment = (over: object = {}) => ({
  merchantRef: `order ${++references}`,
  amount: "25000000",
  currency: "USDC",
  chain: "base",
  ...over
})

const endpoint = {
  url: "https://example.com/hook",
  events: ["payment.confirmed"],
  secret: "whsec_0123456789abcdef"
}

const usdc = { symbol: "USDC", address: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", decimals: 6 } as const

const app = testApp({
  server: { ...testSettings("").server, trustedProxies: ["127.0.0.1/32"] },
  rates: testRates({ ETH: "2500", USDC: "1", EUR: "1.10" }),
  chains: [testChain({ tokens: [usdc] }), testChain({ mode: "live", tokens: [usdc], chainId: 8453 })],
  wallets: { live: undefined, test: Redacted.make(testXpub) }
})

liveSuite(app, "every response matches the document", (test) => {
  test("for payments", function* () {
    const { ask, key } = yield* asker
    const redirectUrl = "https://example.com/"
    const json = payment({ metadata: { a: [1, "b"] }, redirectUrl, expiresIn: 60 })
    const created = yield* ask("POST", "/v1/payments", { key, json, headers: { "idempotency-key": "k" } })
    expect(created.status).toBe(201)
    const again = yield* ask("POST", "/v1/payments", { key, json, headers: { "idempotency-key": "k" } })
    expect(again.headers["idempotent-replayed"]).toBe("true")
    expect((yield* ask("GET", `/v1/payments/${created.body.id}`, { key })).status).toBe(200)
    expect((yield* ask("HEAD", `/v1/payments/${created.body.id}`, { key })).status).toBe(200)
    yield* ask("POST", "/v1/payments", { key, json: payment() })
    const page = yield* ask("GET", "/v1/payments?limit=1&status=pending&chain=base", { key })
    expect(page.body.cursor).toEqual(expect.any(String))
    expect((yield* ask("GET", "/v1/payments?limit=100", { key })).body.cursor).toBe(null)
    const { address, id, merchantRef } = created.body
    const query = `merchantRef=${encodeURIComponent(merchantRef)}&address=${address}`
    const found = yield* ask("GET", `/v1/payments?${query}`, { key })
    expect(found.body.data).toEqual([{ ...created.body, redirectUrl }])
    expect((yield* ask("POST", `/v1/payments/${id}/cancel`, { key })).body.failureReason).toBe("cancelled")
    yield* execute("UPDATE payments SET failure_reason = NULL WHERE id = ?", [id])
    expect(outcome(yield* ask("POST", `/v1/payments/${id}/cancel`, { key }))).toBe("409 PAYMENT_NOT_PENDING")

    const live = yield* (yield* TestApi).newKey("live")
    const reused = { key, json: payment(), headers: { "idempotency-key": "k" } }
    const refusals = [
      ["POST", "/v1/payments", { key, json }, "409 DUPLICATE_MERCHANT_REF"],
      ["POST", "/v1/payments", reused, "422 IDEMPOTENCY_KEY_REUSED"],
      ["POST", "/v1/payments", { key, json: payment({ quoteId: "quote_x" }) }, "422 QUOTE_NOT_FOUND"],
      ["POST", "/v1/payments", { key, json: {} }, "400 VALIDATION_ERROR"],
      ["POST", "/v1/payments", { key, json: payment({ chain: "polygon" }) }, "400 VALIDATION_ERROR"],
      ["POST", "/v1/payments", { key: live, json: payment() }, "503 WALLET_NOT_CONFIGURED"],
      ["GET", "/v1/payments/pay_x", { key }, "404 NOT_FOUND"],
      ["GET", "/v1/payments/pay_x?a=1", { key }, "400 VALIDATION_ERROR"],
      ["GET", "/v1/payments?cursor=x", { key }, "400 INVALID_CURSOR"],
      ["GET", "/v1/payments?limit=0", { key }, "400 VALIDATION_ERROR"],
      ["GET", "/v1/payments?address=0x1", { key }, "400 VALIDATION_ERROR"],
      ["POST", "/v1/payments/pay_x/cancel", { key }, "404 NOT_FOUND"],
      ["POST", "/v1/payments/pay_x/cancel", { key, json: { a: 1 } }, "400 VALIDATION_ERROR"]
    ] as const
    for (const [method, path, sent, code] of refusals) expect(outcome(yield* ask(method, path, sent))).toBe(code)
  })

  test("for webhook endpoints", function* () {
    const { ask, key } = yield* asker
    const created = yield* ask("POST", "/v1/webhooks", { key, json: endpoint })
    expect(created.status).toBe(201)
    expect((yield* ask("GET", "/v1/webhooks", { key })).body.data).toEqual([created.body])
    const path = `/v1/webhooks/${created.body.id}`
    expect((yield* ask("GET", path, { key })).body).toEqual(created.body)
    const again = yield* ask("POST", "/v1/webhooks", { key, json: endpoint })
    expect([again.status, again.body]).toEqual([200, created.body])
    expect(outcome(yield* ask("GET", "/v1/webhooks/wh_x", { key }))).toBe("404 NOT_FOUND")
    const change = { secret: "whsec_fedcba9876543210", events: ["payment.created"] }
    expect((yield* ask("PATCH", path, { key, json: change })).status).toBe(200)
    const another = { ...change, secret: "whsec_another-secret-of-it" }
    expect(outcome(yield* ask("PATCH", path, { key, json: another }))).toBe("409 ROTATION_UNDER_WAY")
    expect(outcome(yield* ask("PATCH", path, { key, json: {} }))).toBe("400 VALIDATION_ERROR")
    expect(outcome(yield* ask("PATCH", "/v1/webhooks/wh_x", { key, json: change }))).toBe("404 NOT_FOUND")
    expect((yield* ask("DELETE", path, { key })).body).toEqual({ id: created.body.id, deleted: true, cancelled: 0 })
    expect(outcome(yield* ask("DELETE", path, { key }))).toBe("404 NOT_FOUND")
    const internal = { key, json: { ...endpoint, url: "https://127.0.0.1/" } }
    expect(outcome(yield* ask("POST", "/v1/webhooks", internal))).toBe("400 VALIDATION_ERROR")
    const numbered = (i: number) => ({ ...endpoint, url: `https://example.com/${i}` })
    for (let i = 0; i < 50; i++) yield* ask("POST", "/v1/webhooks", { key, json: numbered(i) })
    const beyond = yield* ask("POST", "/v1/webhooks", { key, json: endpoint })
    expect(outcome(beyond)).toBe("409 TOO_MANY_ENDPOINTS")
    expect(beyond.body.error.message).toContain("There are 50 endpoints, as many as an account may have in a mode")
  })

  test("for exceptions", function* () {
    const { ask, key } = yield* asker
    const { id } = (yield* ask("POST", "/v1/payments", { key, json: payment() })).body
    const [late, further, last] = [
      yield* storeLateMoney(id, 1),
      yield* storeLateMoney(id, 2),
      yield* storeLateMoney(id, 3)
    ]
    expect((yield* ask("GET", `/v1/payments/${id}`, { key })).body.exceptions).toHaveLength(3)
    const { data } = (yield* ask("GET", "/v1/exceptions?limit=1", { key })).body
    expect((yield* ask("GET", `/v1/exceptions/${data[0].id}`, { key })).body).toEqual(data[0])
    expect(outcome(yield* ask("GET", "/v1/exceptions/exc_x", { key }))).toBe("404 NOT_FOUND")
    const page = yield* ask("GET", "/v1/exceptions?limit=1&status=open&kind=late&chain=base", { key })
    expect(page.body.cursor).toEqual(expect.any(String))
    const resolve = (exception: string, json: unknown) =>
      ask("POST", `/v1/exceptions/${exception}/resolve`, { key, json })
    const txHash = `0x${"a".repeat(64)}`
    expect((yield* resolve(late, { action: "refund", amount: "1", txHash, note: "a part" })).status).toBe(200)
    expect((yield* resolve(late, { action: "refund" })).body.resolution).toBe("refunded")
    yield* execute("UPDATE exceptions SET kind = 'reorged' WHERE id = ?", [further])
    yield* execute("UPDATE exceptions SET tx_hash = NULL WHERE id = ?", [last])
    const refusals = [
      [late, { action: "accept" }, "409 EXCEPTION_RESOLVED"],
      [further, { action: "refund" }, "409 NOTHING_TO_REFUND"],
      [last, { action: "accept", txHash }, "422 TRANSACTION_NOT_PROVEN"],
      [last, { action: "accept" }, "400 VALIDATION_ERROR"],
      ["exc_x", { action: "accept" }, "404 NOT_FOUND"]
    ] as const
    for (const [exception, json, code] of refusals) expect(outcome(yield* resolve(exception, json))).toBe(code)
    expect(outcome(yield* ask("GET", "/v1/exceptions?cursor=x", { key }))).toBe("400 INVALID_CURSOR")
    expect(outcome(yield* ask("GET", "/v1/exceptions?kind=x", { key }))).toBe("400 VALIDATION_ERROR")
  })

  test("for deliveries", function* () {
    const { ask, key } = yield* asker
    for (const { id } of (yield* ask("GET", "/v1/webhooks", { key })).body.data) {
      yield* ask("DELETE", `/v1/webhooks/${id}`, { key })
    }
    const json = { ...endpoint, events: ["payment.created"] }
    const { body } = yield* ask("POST", "/v1/webhooks", { key, json })
    yield* ask("POST", "/v1/payments", { key, json: payment() })
    yield* ask("POST", "/v1/payments", { key, json: payment() })
    const page = yield* ask("GET", `/v1/deliveries?endpoint=${body.id}&limit=1`, { key })
    expect(page.body.cursor).toEqual(expect.any(String))
    const path = `/v1/deliveries/${page.body.data[0].id}`
    expect((yield* ask("GET", path, { key })).body.attempts).toEqual([])
    expect((yield* ask("POST", `${path}/redeliver`, { key, json: {} })).body.result).toBe("due")
    expect((yield* ask("POST", "/v1/deliveries/redeliver", { key, json: {} })).status).toBe(200)
    yield* ask("DELETE", `/v1/webhooks/${body.id}`, { key })
    expect((yield* ask("GET", `/v1/deliveries?endpoint=${body.id}`, { key })).body.data).toHaveLength(2)
    const refusals = [
      ["POST", `${path}/redeliver`, {}, "409 ENDPOINT_DELETED"],
      ["POST", `${path}/redeliver`, { to: "wh_x" }, "400 VALIDATION_ERROR"],
      ["POST", "/v1/deliveries/dlv_x/redeliver", {}, "404 NOT_FOUND"],
      ["POST", "/v1/deliveries/redeliver", { cursor: "x" }, "400 INVALID_CURSOR"],
      ["POST", "/v1/deliveries/redeliver", { status: "x" }, "400 VALIDATION_ERROR"],
      ["POST", "/v1/deliveries/redeliver", { endpoint: "wh_x" }, "404 NOT_FOUND"],
      ["GET", "/v1/deliveries/dlv_x", undefined, "404 NOT_FOUND"],
      ["GET", "/v1/deliveries?endpoint=wh_x", undefined, "404 NOT_FOUND"],
      ["GET", "/v1/deliveries?cursor=x", undefined, "400 INVALID_CURSOR"],
      ["GET", "/v1/deliveries?createdAfter=x", undefined, "400 VALIDATION_ERROR"]
    ] as const
    for (const [method, where, json, code] of refusals) {
      expect(outcome(yield* ask(method, where, { key, json })), where).toBe(code)
    }
  })

  test("for quotes, and for payments by a quote", function* () {
    const { ask, key } = yield* asker
    const fiat = yield* ask("POST", "/v1/quotes", {
      key,
      json: { fromCurrency: "EUR", toCurrency: "USD", amount: "49.90" }
    })
    expect(fiat.status).toBe(201)
    expect((yield* ask("GET", `/v1/quotes/${fiat.body.id}`, { key })).body).toEqual(fiat.body)
    const live = yield* (yield* TestApi).newKey("live")
    expect(outcome(yield* ask("GET", `/v1/quotes/${fiat.body.id}`, { key: live }))).toBe("404 NOT_FOUND")
    const unknown = { fromCurrency: "GBP", toCurrency: "USD", amount: "1" }
    expect(outcome(yield* ask("POST", "/v1/quotes", { key, json: unknown }))).toBe("503 RATE_UNAVAILABLE")
    const tiny = { fromCurrency: "EUR", toCurrency: "USD", amount: "0.01" }
    expect(outcome(yield* ask("POST", "/v1/quotes", { key, json: tiny }))).toBe("422 AMOUNT_TOO_SMALL")
    const same = { fromCurrency: "USD", toCurrency: "USD", amount: "1" }
    expect(outcome(yield* ask("POST", "/v1/quotes", { key, json: same }))).toBe("400 VALIDATION_ERROR")
    const mismatch = { key, json: payment({ quoteId: fiat.body.id }) }
    expect(outcome(yield* ask("POST", "/v1/payments", mismatch))).toBe("422 QUOTE_MISMATCH")
  })

  test("for requests that are refused before they reach an operation", function* () {
    const ask = yield* makeAsk
    const { call, newKey } = yield* TestApi
    const { paths }: OpenApiDocument = (yield* call("GET", "/openapi.json")).body
    const key = yield* newKey()
    const powerless = yield* newKey("test", [])
    for (const [template, item] of Object.entries(paths)) {
      const path = template.replace("{id}", "x")
      expect(outcome(yield* ask("PUT", path, { key }))).toBe("405 METHOD_NOT_ALLOWED")
      for (const [method, { security }] of Object.entries(item)) {
        const upper = method.toUpperCase()
        const takesBody = ["POST", "PATCH"].includes(upper)
        const body = takesBody ? { json: {} } : {}
        expect(outcome(yield* ask(upper, `${path}?a=1`, { key, ...body }))).toBe("400 VALIDATION_ERROR")
        if (security.length > 0) {
          // Each from a network of its own: the refusals of one are delayed.
          const from = { headers: { "x-forwarded-for": `198.51.100.${++clients}` } }
          expect(outcome(yield* ask(upper, path, from))).toBe("401 UNAUTHORIZED")
          const without = yield* ask(upper, path, { key: powerless })
          if (path === "/v1/currencies") expect(without.status).toBe(200)
          else expect(outcome(without)).toBe("403 FORBIDDEN")
        }
        if (takesBody) {
          const type = { "content-type": "application/json" }
          expect(outcome(yield* ask(upper, path, { key, body: "{", headers: type }))).toBe("400 INVALID_JSON")
          expect(outcome(yield* ask(upper, path, { key, body: "{" }))).toBe("415 UNSUPPORTED_MEDIA_TYPE")
          const large = { key, body: "x".repeat(64 * 1024 + 1) }
          expect(outcome(yield* ask(upper, path, large))).toBe("413 PAYLOAD_TOO_LARGE")
        }
      }
    }
    for (const path of ["/v2", "/v1", "/openapi.json/", "/v1/payments/x/y"]) {
      expect(outcome(yield* ask("GET", path, { key }))).toBe("404 NOT_FOUND")
    }
  })

  test("for health and documents", function* () {
    const ask = yield* makeAsk
    expect((yield* ask("GET", "/healthz")).status).toBe(200)
    // No watcher runs here, so no chain has been read.
    expect((yield* ask("GET", "/readyz")).status).toBe(503)
    const path = "/openapi.json"
    expect((yield* ask("GET", path)).status).toBe(200)
    expect((yield* ask("HEAD", path)).text).toBe("")
    const kept = { headers: { "if-none-match": "*" } }
    expect([(yield* ask("GET", path, kept)).status, (yield* ask("HEAD", path, kept)).status]).toEqual([304, 304])
  })
})

liveSuite(testApp({ limits: { perMinute: 1, perHour: 10 } }), "beyond the limit", (test) => {
  test("every operation returns the documented 429", function* () {
    const ask = yield* makeAsk
    const { call, newKey } = yield* TestApi
    const { info, paths }: OpenApiDocument = (yield* call("GET", "/openapi.json")).body
    expect(info.description).toContain("1 requests a minute and 10 an hour")
    const key = yield* newKey()
    yield* ask("GET", "/v1/payments", { key })
    for (const [template, item] of Object.entries(paths)) {
      for (const [method, { security }] of Object.entries(item)) {
        if (security.length === 0) continue
        const refused = yield* ask(method.toUpperCase(), template.replace("{id}", "x"), { key })
        expect(outcome(refused)).toBe("429 RATE_LIMITED")
      }
    }
  })
})
