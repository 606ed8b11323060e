import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"

const secret = "whsec_0123456789abcdef"
const endpoint = (fields: Record<string, unknown> = {}) => ({
  url: "https://192.0.2.1:1/hook",
  events: ["payment.confirmed", "payment.failed"],
  secret,
  ...fields
})

const kinds = "must be payment.created, payment.detecting, payment.confirmed, payment.expired or payment.failed"

// 192.0.2.0/24 is for documentation: nobody is called.
const app = testApp({
  webhooks: {
    allowTargets: ["192.0.2.0/24"],
    denyTargets: [],
    extraCaFile: "",
    concurrency: 64,
    concurrencyPerEndpoint: 8
  }
})

layer(app, { excludeTestServices: true })("webhook endpoints over HTTP", (it) => {
  it.effect("an endpoint is made, listed and deleted once; its secret is never shown", () =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const key = yield* api.newKey()
      const made = yield* api.call("POST", "/v1/webhooks", { key, json: endpoint() })
      expect(made.status).toBe(201)
      expect(made.body).toEqual({
        id: expect.stringMatching(/^wh_[A-Za-z0-9_-]{22}$/),
        url: "https://192.0.2.1:1/hook",
        events: ["payment.confirmed", "payment.failed"],
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      })
      const listed = yield* api.call("GET", "/v1/webhooks", { key })
      expect([listed.status, listed.body]).toEqual([200, { data: [made.body] }])
      const deleted = yield* api.call("DELETE", `/v1/webhooks/${made.body.id}`, { key })
      expect([deleted.status, deleted.body]).toEqual([200, { id: made.body.id, deleted: true }])
      const again = yield* api.call("DELETE", `/v1/webhooks/${made.body.id}`, { key })
      expect([again.status, again.body.error.code, again.body.error.message]).toEqual([
        404,
        "NOT_FOUND",
        "There is no such webhook endpoint."
      ])
      expect((yield* api.call("GET", "/v1/webhooks", { key })).body).toEqual({ data: [] })
    })
  )

  it.effect("belongs to its mode", () =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const made = yield* api.call("POST", "/v1/webhooks", { key: yield* api.newKey(), json: endpoint() })
      const live = yield* api.newKey("live")
      expect((yield* api.call("GET", "/v1/webhooks", { key: live })).body).toEqual({ data: [] })
      expect((yield* api.call("DELETE", `/v1/webhooks/${made.body.id}`, { key: live })).status).toBe(404)
    })
  )

  it.effect.each([
    [
      "url",
      "must be an https URL of at most 2048 characters, without user info",
      ["http://192.0.2.1", "x", "", null, "https://u:p@192.0.2.1"]
    ],
    ["url", "target is not a public address", ["https://127.0.0.1", "https://[::1]", "https://10.0.0.1"]],
    ["events", "must have at least one event kind", [[]]],
    [
      "events",
      "must not have the same event kind twice",
      [["payment.created", "payment.created"], Array.from({ length: 100 }, () => "payment.created")]
    ],
    [
      "events",
      "must have at most 100 items",
      [Array.from({ length: 101 }, () => "payment.created"), Array.from({ length: 30_000 }, () => 1)]
    ],
    ["events", "must be an array of event kinds", ["payment.created", null, {}]],
    [
      "events[1]",
      kinds,
      [
        ["payment.created", "payment.paid"],
        ["payment.created", 5]
      ]
    ],
    [
      "secret",
      "must be whsec_ followed by 16 to 256 visible characters",
      ["whsec_short", `whsec_${"x".repeat(257)}`, `WHSEC_${"x".repeat(20)}`, `whsec_${"x".repeat(20)} `, "", null]
    ]
  ] as const)("%s %s", ([path, rule, values]) =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const key = yield* api.newKey()
      for (const value of values) {
        const field = path.replace(/\[.*/, "")
        const answer = yield* api.call("POST", "/v1/webhooks", { key, json: endpoint({ [field]: value }) })
        expect([answer.status, problemsIn(answer)], JSON.stringify(value)).toEqual([400, { [path]: rule }])
      }
    })
  )

  it.effect("a secret that is refused is not shown", () =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const answer = yield* api.call("POST", "/v1/webhooks", {
        key: yield* api.newKey(),
        json: endpoint({ secret: "my secret", url: "ftp://x" })
      })
      expect(Object.keys(problemsIn(answer))).toEqual(["url", "secret"])
      expect(answer.text).not.toContain("my secret")
    })
  )

  it.effect("there are at most fifty", () =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const key = yield* api.newKey("live")
      const add = api.call("POST", "/v1/webhooks", { key, json: endpoint() })
      for (let i = 0; i < 50; i++) expect((yield* add).status).toBe(201)
      const { body, status } = yield* add
      expect([status, body.error.code, body.error.message]).toEqual([
        409,
        "TOO_MANY_ENDPOINTS",
        "There are 50 endpoints, as many as an account may have in a mode: delete one first."
      ])
    })
  )
})
