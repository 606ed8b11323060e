import { expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { Mode } from "../../src/Domain/Chain.ts"
import { meantBy } from "../../src/Payments/PaymentListRepo.ts"
import { Reader } from "../../src/Sql.ts"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testRates, testXpub } from "../lib/settings.ts"
import { execute, rows } from "../lib/store.ts"
import { amountRule, expiresInRule, redirectRule, right, urlRule, wrong } from "./fields.ts"

const usdc = { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 8 } as const

const tokenContract = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"

const app = testApp({
  chains: [
    testChain({ chain: "base", tokens: [usdc] }),
    testChain({ chain: "polygon", tokens: [usdc] }),
    testChain({ chain: "ethereum", mode: "live" })
  ],
  wallets: { live: undefined, test: Redacted.make(testXpub) },
  rates: testRates({ USDC: "1.5" })
})

let orders = 0
const order = (fields: Record<string, unknown> = {}) => {
  orders += 1
  return { merchantRef: `order ${orders}`, amount: "1000000", currency: "USDC", chain: "base", ...fields }
}

/** A merchant with a key, and payments that are created with it. */
const merchant = (mode?: Mode) =>
  Effect.gen(function* () {
    const api = yield* TestApi
    const key = yield* api.newKey(mode)
    const create = (json: unknown, idempotencyKey?: string) =>
      api.call("POST", "/v1/payments", {
        ...{ key, json },
        ...(idempotencyKey && { headers: { "idempotency-key": idempotencyKey } })
      })
    return { api, key, create }
  })

liveSuite(app, "payments over HTTP", (test, it) => {
  test("a payment is created, with defaults for omitted fields, found by its id and listed", function* () {
    const { api, create, key } = yield* merchant()
    const metadata = { orderId: 17, nested: { list: [1, "two", null, true] }, "": 0.1 }
    const { body } = yield* create(order())
    expect([Date.parse(body.expiresAt) - Date.parse(body.createdAt), body.metadata]).toEqual([3_600_000, {}])
    const made = yield* create(order({ metadata, expiresIn: 60 }))
    expect(made.status).toBe(201)
    const { createdAt, expiresAt, id } = made.body
    expect(made.headers.location).toBe(`/v1/payments/${id}`)
    expect(made.body).toEqual({
      id: expect.stringMatching(/^pay_[A-Za-z0-9_-]{30}$/),
      merchantRef: `order ${orders}`,
      amount: "1000000",
      currency: "USDC",
      chain: "base",
      address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      status: "pending",
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      expiresAt,
      metadata,
      ...{ received: "0", refunded: "0", kept: "0" },
      checkoutUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:8080\/pay\/[A-Za-z0-9_-]{30}$/),
      tokenContract,
      chainId: 31337,
      decimals: 8,
      paymentUri: `ethereum:${tokenContract}@31337/transfer?address=${made.body.address}&uint256=1000000`
    })
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(60_000)
    const found = yield* api.call("GET", `/v1/payments/${id}`, { key })
    expect([found.status, found.text]).toEqual([200, made.text])
    const listed = yield* api.call("GET", "/v1/payments?limit=1", { key })
    expect(listed.body.data).toEqual([made.body])
  })

  test("a payment keeps what it was worth when it was made, by the chain's decimals, where that is known", function* () {
    const { create } = yield* merchant()
    for (const [currency, usd_value] of [
      ["USDC", "4.5"],
      ["ETH", null]
    ]) {
      const { body } = yield* create(order({ amount: "300000000", currency }))
      expect(yield* rows("SELECT usd_value FROM payments WHERE id = ?", [body.id])).toEqual([{ usd_value }])
    }
  })

  test("redirectUrl is shown where a payment is read, and not where it is created", function* () {
    const { api, create, key } = yield* merchant()
    const redirectUrl = "https://shop.example/thanks?order=5"
    const { body: created } = yield* create(order({ redirectUrl }))
    const { body: without } = yield* create(order())
    expect(created).not.toHaveProperty("redirectUrl")
    expect((yield* api.call("GET", `/v1/payments/${created.id}`, { key })).body).toEqual({ ...created, redirectUrl })
    const { body } = yield* api.call("GET", "/v1/payments?limit=2", { key })
    expect(body.data).toEqual([without, { ...created, redirectUrl }])
  })

  test("a merchantRef is taken once in each mode; the refusal names the payment", function* () {
    const { create } = yield* merchant()
    const json = order()
    const first = yield* create(json)
    const second = yield* create({ ...json, amount: "5" })
    expect(second.status).toBe(409)
    expect(second.body.error).toEqual({
      code: "DUPLICATE_MERCHANT_REF",
      message: "A payment with this merchantRef exists: details has its id.",
      details: { paymentId: first.body.id },
      requestId: second.headers["x-request-id"]
    })
  })

  test("references that look alike are one, wherever they are looked up", function* () {
    const { api, create, key } = yield* merchant()
    const made = yield* create(order({ merchantRef: "Cafe\u0301 2" }))
    expect(made.body.merchantRef).toBe("Caf\u00e9 2")
    const spaces = ["Caf\u00e9\u00a02", "Caf\u00e9 2\u00a0", "Caf\u00e9\u20092"]
    for (const alike of ["Caf\u00e9 2", " Cafe\u0301 2 ", ...spaces]) {
      const again = yield* create(order({ merchantRef: alike }))
      expect([again.status, again.body.error?.details], JSON.stringify(alike)).toEqual([
        409,
        { paymentId: made.body.id }
      ])
      const found = yield* api.call("GET", `/v1/payments?merchantRef=${encodeURIComponent(alike)}`, { key })
      expect(found.body.data).toEqual([made.body])
      const [meant] = yield* meantBy(yield* Reader, alike, 1)
      expect(meant?.id).toBe(made.body.id)
    }
    // Not what is another character, such as a full-width digit.
    expect((yield* create(order({ merchantRef: "Caf\u00e9 \uff12" }))).status).toBe(201)
  })

  test("an id that is malformed, foreign or of the other mode is the same 404", function* () {
    const { api, create, key } = yield* merchant()
    const live = yield* api.newKey("live")
    const made = yield* create(order())
    const answers = yield* Effect.forEach(
      [`pay_${"A".repeat(22)}`, "nonsense", "%ff", "%00", "a%2Fb", encodeURIComponent("'; --"), "x".repeat(5_000)],
      (id) => api.call("GET", `/v1/payments/${id}`, { key }),
      { concurrency: 1 }
    )
    const foreign = yield* api.call("GET", `/v1/payments/${made.body.id}`, { key: live })
    for (const { body, headers, status } of [...answers, foreign]) {
      expect(status).toBe(404)
      expect(body).toEqual({
        error: {
          code: "NOT_FOUND",
          message:
            "There is no such payment in this account and mode: its id begins with pay_, and GET /v1/payments?merchantRef= finds one by your reference.",
          requestId: headers["x-request-id"]
        }
      })
    }
  })

  test("all problems are reported at once, and nothing is echoed", function* () {
    const { api, key } = yield* merchant()
    const secret = "sk-looks-like-a-secret"
    const answer = yield* api.call("POST", "/v1/payments?dryRun=1", {
      key,
      json: {
        merchantref: secret,
        amount: 1000000,
        currency: secret,
        chain: null,
        webhookUrl: `http://${secret}`,
        redirectUrl: secret,
        expiresIn: "3600",
        metadata: [secret],
        quoteId: 5,
        expires_in: 60,
        ["x".repeat(1_000)]: 1
      }
    })
    expect(answer.status).toBe(400)
    expect(answer.body.error.code).toBe("VALIDATION_ERROR")
    expect(problemsIn(answer)).toEqual({
      dryRun: "is not a query parameter: this endpoint takes none",
      merchantRef: "is required",
      merchantref: "is not a field of this endpoint: did you mean merchantRef?",
      amount: amountRule,
      currency: "must be ETH, USDC, USDT, DAI or WBTC; MATIC is quoted, not taken",
      chain: "must be ethereum, polygon, arbitrum, optimism or base",
      webhookUrl: urlRule,
      redirectUrl: redirectRule,
      expiresIn: expiresInRule,
      metadata: "must be an object",
      quoteId: "must be the id of a quote",
      expires_in: "is not a field of this endpoint: did you mean expiresIn?",
      [`${"x".repeat(60)}…`]: "is not a field of this endpoint"
    })
    expect(answer.text).not.toContain(secret)
  })

  test("a body that is not an object, and one with thousands of faults, are answered briefly", function* () {
    const { create } = yield* merchant()
    for (const json of [[], null, "text", 5, true]) {
      const answer = yield* create(json)
      expect([answer.status, problemsIn(answer)]).toEqual([400, { "": "must be a JSON object" }])
    }
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`f${i}`, 0]))
    const { body, text } = yield* create(many)
    expect(body.error.details).toHaveLength(101)
    expect(body.error.details[100]).toEqual({ path: "", message: "has 4904 problems more" })
    expect(text.length).toBeLessThan(10_000)
  })

  it.effect.each(wrong)("%s %s", ([field, rule, values]) =>
    Effect.gen(function* () {
      const { create } = yield* merchant()
      for (const value of values) {
        const answer = yield* create(order({ [field]: value }))
        expect([answer.status, problemsIn(answer)], JSON.stringify(value)).toEqual([400, { [field]: rule }])
      }
    })
  )

  it.effect.each(right)("%s may be at its bounds", ([field, values]) =>
    Effect.gen(function* () {
      const { create } = yield* merchant()
      for (const value of values) {
        const { body, status } = yield* create(order({ [field]: value }))
        expect(status, JSON.stringify(value)).toBe(201)
        if (field in body) expect(body[field]).toEqual(value)
      }
    })
  )

  test("a live key accepts no http for redirects, and reports that with all other problems", function* () {
    const { create } = yield* merchant("live")
    const answer = yield* create(order({ redirectUrl: "http://localhost", amount: "0" }))
    expect(problemsIn(answer)).toEqual({ amount: amountRule, redirectUrl: redirectRule })
  })

  test("problems in metadata are located, including numbers that would change", function* () {
    const { api, key } = yield* merchant()
    const body = JSON.stringify(order({ metadata: { ids: [1, "N"], deep: { a: { b: { c: { d: {} } } } } } }))
    const answer = yield* api.call("POST", "/v1/payments", {
      key,
      headers: { "content-type": "application/json" },
      body: body.replace('"N"', "12345678901234567890")
    })
    expect(problemsIn(answer)).toEqual({
      "metadata.ids[1]": "is a number that a double cannot hold exactly: send it as a string",
      "metadata.deep.a.b.c.d": "must not be nested deeper than 5 levels"
    })
  })

  test("half an emoji, and U+0000, is refused at its path, in texts and in names, however deep", function* () {
    const { create } = yield* merchant()
    const half = "Birthday card 🎂".slice(0, -1)
    const metadata = { note: half, list: [1, ["🎂", { [half]: 1 }]], whole: "🎂" }
    const answer = yield* create(order({ merchantRef: half, metadata, [half]: 1 }))
    const shown = half.toWellFormed()
    expect(answer.body.error.code).toBe("VALIDATION_ERROR")
    expect(Object.keys(problemsIn(answer)).sort()).toEqual(
      [shown, "merchantRef", `metadata.list[1][1].${shown}`, "metadata.note"].sort()
    )
    expect(new Set(Object.values(problemsIn(answer)))).toEqual(
      new Set(["must not have half a surrogate pair, such as half an emoji, or U+0000: cut texts between code points"])
    )
    const zero = yield* create(order({ metadata: { "\0a": 1, b: ["a\0"], "\\u0000": "\\u0000" } }))
    expect(Object.keys(problemsIn(zero))).toEqual(["metadata.\0a", "metadata.b[0]"])
    const many = yield* create({ metadata: Array.from({ length: 5_000 }, () => "\udf82") })
    expect(many.body.error.details).toHaveLength(101)
  })

  test("half an emoji that is stored already is shown as U+FFFD", function* () {
    const { api, create, key } = yield* merchant()
    const { id } = (yield* create(order({ metadata: { note: "whole" } }), "once")).body
    yield* execute(String.raw`UPDATE payments SET metadata = '{"note":"\ud83c","\udf82":1}' WHERE id = ?`, [id])
    yield* execute(String.raw`UPDATE idempotent_responses SET body = replace(body, 'whole', '\ud83c')`)
    const answers = [
      yield* api.call("GET", `/v1/payments/${id}`, { key }),
      yield* api.call("GET", "/v1/payments?limit=1", { key })
    ]
    for (const { text } of answers) expect(text).toContain('"metadata":{"note":"\ufffd","\ufffd":1}')
    const again = yield* create({ ...order(), merchantRef: `order ${orders - 1}`, metadata: { note: "whole" } }, "once")
    expect(again.body.metadata).toEqual({ note: "\ufffd" })
    expect(again.text).not.toContain("\\ud")
  })

  test("a body that is not JSON, or not UTF-8, is INVALID_JSON", function* () {
    const { api, key } = yield* merchant()
    const post = (body: string | Uint8Array) =>
      Effect.map(
        api.call("POST", "/v1/payments", { key, body, headers: { "content-type": "application/json" } }),
        ({ body: { error }, status }) => [status, error.code, error.message]
      )
    expect(yield* post("{")).toEqual([400, "INVALID_JSON", expect.stringMatching(/^The body is not valid JSON: /)])
    const broken = new Uint8Array([0x22, 0xff, 0x22])
    expect(yield* post(broken)).toEqual([400, "INVALID_JSON", "The body is not valid UTF-8."])
  })

  test("an option that this installation does not offer is refused at once, with those that it offers", function* () {
    const { create } = yield* merchant()
    const problems = (fields: Record<string, unknown>) => Effect.map(create(order(fields)), problemsIn)
    expect(yield* problems({ chain: "ethereum" })).toEqual({
      chain: "ethereum is not available to this key: choose base or polygon"
    })
    expect(yield* problems({ chain: "polygon", currency: "ETH" })).toEqual({
      currency: "ETH is not available on polygon: choose USDC"
    })
    expect(yield* problems({ currency: "WBTC", webhookUrl: "https://127.0.0.1/hook" })).toEqual({
      currency: "WBTC is not available on base: choose ETH or USDC",
      webhookUrl: "target is not a public address: tilld listen forwards events to one"
    })
  })

  test("what is worth less than the account takes is refused, where its price is known", function* () {
    const { create } = yield* merchant()
    expect((yield* create(order({ amount: "25" }))).status).toBe(201)
    yield* execute("INSERT INTO shops (account_id, minimum_usd, frame_origins) VALUES ('default', '1.50', '')")
    expect(problemsIn(yield* create(order({ amount: "25" })))).toEqual({
      amount: "is worth 0.000000375 USD, and this account takes 1.50 USD or more: 25 USDC are 2500000000 base units"
    })
    expect(Object.keys(problemsIn(yield* create(order({ amount: "99999999" }))))).toEqual(["amount"])
    expect((yield* create(order({ amount: "100000000" }))).status).toBe(201)
    expect((yield* create(order({ amount: "1", currency: "ETH" }))).status).toBe(201)
    yield* execute("DELETE FROM shops")
  })

  test("any key lists what can be paid in with it, for caches of its own", function* () {
    const { call, newKey } = yield* TestApi
    const list = (mode: Mode, headers = {}) =>
      Effect.flatMap(newKey(mode, []), (key) => call("GET", "/v1/currencies", { key, headers }))
    const { body, headers } = yield* list("test")
    const token = { currency: "USDC", chainId: expect.any(Number), decimals: 8, native: false, contract: tokenContract }
    const coin = { currency: "ETH", chainId: expect.any(Number), decimals: 18, native: true }
    expect(body).toEqual({
      data: [
        { ...coin, chain: "base" },
        { ...token, chain: "base" },
        { ...token, chain: "polygon" }
      ]
    })
    expect((yield* list("live")).body).toEqual({ data: [{ ...coin, chain: "ethereum" }] })
    expect(headers).toMatchObject({ "cache-control": "private, max-age=300", vary: "X-API-Key" })
    expect((yield* list("test", { "if-none-match": headers.etag ?? "" })).status).toBe(304)
  })

  test("a mode without a wallet is not the merchant's fault", function* () {
    const { create } = yield* merchant("live")
    const { body, status } = yield* create(order({ chain: "ethereum", currency: "ETH" }))
    expect([status, body.error.code, body.error.message]).toEqual([
      503,
      "WALLET_NOT_CONFIGURED",
      "There is no wallet to receive live payments with: the operator has to configure one."
    ])
  })
})

liveSuite(testApp(), "without a chain in its mode", (test) => {
  test("a live key is told what the operator has to configure", function* () {
    const { create } = yield* merchant("live")
    expect(problemsIn(yield* create(order()))).toEqual({
      chain: "no chain is open for live keys: the operator adds [chains.base.live], or sets accepting = true in it"
    })
  })
})
