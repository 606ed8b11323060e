import { HttpApi } from "@effect/platform"
import { Option, SchemaAST } from "effect"
import { describe, expect, it } from "vitest"
import { Api } from "../../src/Api.ts"
import { redactor } from "../../src/Http/redacted.ts"
import { inLogOf } from "../../src/lib/annotations.ts"
import { CreatePaymentBody } from "../../src/Payments/Api.ts"
import { CreateEndpointBody } from "../../src/Webhooks/Api.ts"

const ofPayment = redactor(Option.some(CreatePaymentBody))
const ofEndpoint = redactor(Option.some(CreateEndpointBody))

/** `"?"` for a hidden value. */
const brief = (text: string) => text.replaceAll('"[redacted]"', '"?"')

/** The fields of the bodies of all endpoints, with what each says of the log. */
const fields = (() => {
  const found: Array<readonly [body: string, field: string, inLog: string | undefined]> = []
  const redactors: Array<ReturnType<typeof redactor>> = []
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      if (Option.isNone(endpoint.payloadSchema)) return
      redactors.push(redactor(endpoint.payloadSchema))
      for (const { name, type } of SchemaAST.getPropertySignatures(endpoint.payloadSchema.value.ast)) {
        found.push([`${endpoint.method} ${endpoint.path}`, String(name), inLogOf(type)])
      }
    }
  })
  return { found, redactors }
})()

describe("the fields of all endpoints", () => {
  it("say whether the log may have their values", () => {
    expect(fields.found.filter(([, , inLog]) => inLog === undefined)).toEqual([])
  })

  it("that are shown are these: add none that may be a secret", () => {
    const shown = fields.found.filter(([, , inLog]) => inLog === "shown").map(([body, name]) => `${body} ${name}`)
    expect(shown).toEqual([
      ...["merchantRef", "amount", "currency", "chain", "expiresIn"].map((name) => `POST /v1/payments ${name}`),
      ...["price", "merchantRef", "currencies", "expiresIn", "language"].map((name) => `POST /v1/invoices ${name}`),
      ...["currency", "chain"].map((name) => `POST /v1/invoices/:id/choose ${name}`),
      ...["action", "amount"].map((name) => `POST /v1/exceptions/:id/resolve ${name}`),
      "POST /v1/payments/:id/refunds amount",
      "POST /v1/webhooks events",
      ...["events", "overlapSeconds"].map((name) => `PATCH /v1/webhooks/:id ${name}`),
      ...["createdAfter", "createdBefore", "status"].map((name) => `POST /v1/deliveries/redeliver ${name}`),
      ...["fromCurrency", "toCurrency", "amount", "chain"].map((name) => `POST /v1/quotes ${name}`)
    ])
  })

  it("show no private key, whatever field it was put into by mistake, and none below it", () => {
    const key = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
    const names = new Set(fields.found.map(([, name]) => name))
    // The merchant's own reference is any text.
    names.delete("merchantRef")
    for (const redact of fields.redactors) {
      for (const value of [key, `0x${key}`, [key], { [key]: key }, [{ a: key }], ` ${key}`]) {
        const body = Object.fromEntries([...names, "private_key", "Authorization"].map((name) => [name, value]))
        expect(redact(body, false)).not.toContain(key.slice(0, 8))
      }
    }
  })
})

it.each([
  [{ merchantRef: "1", amount: "5" }, '{"merchantRef":"1","amount":"5"}'],
  [{ amount: 5, currency: "0xKEY", chain: ["base"] }, '{"amount":"?","currency":"?","chain":"?"}'],
  [{ metadata: { card: "4111" }, quoteId: "quote_1" }, '{"metadata":"?","quoteId":"?"}'],
  [
    { webhookUrl: "https://shop.example/x", redirectUrl: "https://SECRET.example" },
    '{"webhookUrl":"?","redirectUrl":"?"}'
  ],
  [{ private_key: "a", signing_key: "b", amuont: "7" }, '{"private_key":"?","signing_key":"?","amuont":"?"}'],
  [{ Authorization: "Bearer SECRET", hunter2: 1, "": 0 }, '{"Authorizatio…":"?","hunter…":"?","":"?"}'],
  [{ whsec_KEY: 1, svc_live_KEYKEYKEY: 1, "4c0883a6": 1 }, '{"whsec_…":"?","svc_live_…":"?","…":"?"}'],
  [{ merchantRef: `svc_test_${"k".repeat(49)}` }, '{"merchantRef":"svc_test_[redacted]"}'],
  [{ merchantRef: "a".repeat(66) }, `{"merchantRef":"${"a".repeat(64)}…"}`],
  [Object.fromEntries(Array.from("abcdefghijklmno", (name) => [name, 0])), /^\{("[a-j]":"\?",){10}"…":"5 more"\}$/],
  [["whsec_KEY", { whsec_KEY: 1 }], '"?"'],
  ["text", '"?"'],
  [null, '"?"']
])("of a payment's body %j the log has %s", (payload, expected) => {
  const text = brief(ofPayment(payload, false))
  if (typeof expected === "string") expect(text).toBe(expected)
  else expect(text).toMatch(expected)
})

it.each([
  [{ url: "https://shop.example/hook", events: ["payment.confirmed"] }, '{"url":"?","events":["payment.confirmed"]}'],
  [{ events: ["payment.confirmed", "KEY"], secret: "whsec_0123456789abcdef" }, '{"events":"?","secret":"?"}']
])("of an endpoint's body %j the log has %s", (payload, expected) => {
  expect(brief(ofEndpoint(payload, false))).toBe(expected)
})

it("of an accepted body the log has the same, without decoding it again", () => {
  const body = {
    merchantRef: "whsec_a",
    amount: "1",
    currency: "ETH",
    chain: "base",
    expiresIn: 60,
    metadata: { a: 1 }
  }
  expect(ofPayment(body, true)).toBe(ofPayment(body, false))
})

it("a long body takes at most 1,024 bytes, and no character is cut in two", () => {
  const wide = {
    merchantRef: "💶".repeat(60),
    ...Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`f${i}`, 0]))
  }
  for (const payload of [wide, { ["k".repeat(60_000)]: 1 }, { merchantRef: "é".repeat(128) }]) {
    const text = ofPayment(payload, false)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_024)
    expect(text).not.toMatch(/\uFFFD|[\ud800-\udfff]/u)
  }
})
