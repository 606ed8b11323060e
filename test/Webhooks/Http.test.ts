import { HttpApi } from "@effect/platform"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Api } from "../../src/Api.ts"
import { requiredPermissions } from "../../src/Auth/Api.ts"
import { Keys } from "../../src/Auth.ts"
import * as AuditRepo from "../../src/Operations/AuditRepo.ts"
import { Reader } from "../../src/Sql.ts"
import { apiWithKey, problemsIn, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testWebhooks } from "../lib/settings.ts"

const endpoint = (fields: Record<string, unknown> = {}) => ({
  url: "https://192.0.2.1:1/hook",
  events: ["payment.confirmed", "payment.failed"],
  secret: "whsec_0123456789abcdef",
  ...fields
})

const kinds =
  "must be payment.created, payment.detecting, payment.confirmed, payment.expired, payment.failed, payment.updated, payment.exception, refund.final, invoice.created, invoice.processing, invoice.paid, invoice.expired, invoice.failed or invoice.cancelled"

// 192.0.2.0/24 is for documentation: no one is called.
const app = testApp({ webhooks: testWebhooks({ allowTargets: ["192.0.2.0/24"] }) })

/** The input of each administrative operation, in this order, and its audit row. */
const acts = {
  "POST /v1/webhooks": { act: "webhooks register", host: "192.0.2.1:8443", events: endpoint().events },
  "PATCH /v1/webhooks/:id": { act: "webhooks change", host: "192.0.2.2" },
  "DELETE /v1/webhooks/:id": { act: "webhooks delete" },
  "POST /v1/deliveries/redeliver": { act: "webhooks redeliver", status: "failing" },
  "POST /v1/deliveries/:id/redeliver": { act: "webhooks redeliver" }
} as const

/**
 * To have a payment or a price is a merchant's business; to change where events go, and who can sign, administers. Decisions
 * on exceptions are in the log too, see Payments/decisions/Http.test.ts.
 */
const isBusiness = new Set([
  ...["payments:read", "payments:write", "webhooks:read", "quotes:read"],
  ...["exceptions:read", "exceptions:write"]
])

it("every operation of the API that administers is in the table", () => {
  const found: Array<string> = []
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations }) => {
      const permissions = requiredPermissions(mergedAnnotations)
      if (permissions.some((each) => !isBusiness.has(each))) found.push(`${endpoint.method} ${endpoint.path}`)
    }
  })
  expect(found).toEqual(Object.keys(acts))
})

liveSuite(app, "webhook endpoints over HTTP", (test, it) => {
  test("an endpoint is made, listed and deleted once, in its mode; its secret is never shown", function* () {
    const { api, key } = yield* apiWithKey
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
    const live = yield* api.newKey("live")
    expect((yield* api.call("GET", "/v1/webhooks", { key: live })).body).toEqual({ data: [] })
    expect((yield* api.call("DELETE", `/v1/webhooks/${made.body.id}`, { key: live })).status).toBe(404)
    const deleted = yield* api.call("DELETE", `/v1/webhooks/${made.body.id}`, { key })
    expect([deleted.status, deleted.body]).toEqual([200, { id: made.body.id, deleted: true, cancelled: 0 }])
    const again = yield* api.call("DELETE", `/v1/webhooks/${made.body.id}`, { key })
    expect([again.status, again.body.error.code, again.body.error.message]).toEqual([
      404,
      "NOT_FOUND",
      "There is no such webhook endpoint in this account and mode: GET /v1/webhooks lists them."
    ])
    expect((yield* api.call("GET", "/v1/webhooks", { key })).body).toEqual({ data: [] })
  })

  const created = "payment.created"
  it.effect.each([
    [
      "url",
      "must be an https URL of at most 2048 characters, without user info",
      ["http://192.0.2.1", "", null, "https://u:p@192.0.2.1"]
    ],
    [
      "url",
      "target is not a public address: tilld listen forwards events to one",
      ["https://127.0.0.1", "https://[::1]", "https://10.0.0.1"]
    ],
    ["events", "must have at least one event kind", [[]]],
    ["events", "must not have the same event kind twice", [[created, created]]],
    ["events", "must have at most 100 items", [Array(101).fill(created), Array(30_000).fill(1)]],
    ["events", "must be an array of event kinds", [created, null, {}]],
    [
      "events[1]",
      kinds,
      [
        [created, "payment.paid"],
        [created, 5]
      ]
    ],
    [
      "secret",
      "must be whsec_ followed by 16 to 256 visible characters",
      ["whsec_short", `whsec_${"x".repeat(257)}`, `WHSEC_${"x".repeat(20)}`, `whsec_${"x".repeat(20)} `, null]
    ]
  ] as const)("%s %s", ([path, rule, values]) =>
    Effect.gen(function* () {
      const { api, key } = yield* apiWithKey
      for (const value of values) {
        const field = path.replace(/\[.*/, "")
        const answer = yield* api.call("POST", "/v1/webhooks", { key, json: endpoint({ [field]: value }) })
        expect([answer.status, problemsIn(answer)], JSON.stringify(value)).toEqual([400, { [path]: rule }])
      }
    })
  )

  test("one with the URL, kinds and secret of another is that one, and with another secret is refused", function* () {
    const { api, key } = yield* apiWithKey
    const post = (fields: object) =>
      api.call("POST", "/v1/webhooks", { key, json: endpoint({ url: "https://192.0.2.9", ...fields }) })
    const first = yield* post({})
    const again = yield* post({ url: "https://192.0.2.9:443/", events: endpoint().events.toReversed() })
    expect([first.status, again.status, again.body]).toEqual([201, 200, first.body])
    const refused = yield* post({ secret: "whsec_fedcba9876543210" })
    expect([refused.status, problemsIn(refused)]).toEqual([
      400,
      {
        secret: `must be that of ${first.body.id}, which has this URL and these kinds: PATCH /v1/webhooks/:id replaces a secret, and both sign for an overlap`
      }
    ])
    expect((yield* post({ events: ["payment.confirmed"] })).status).toBe(201)
    const [, repeated] = yield* AuditRepo.list(yield* Reader, { since: 0, before: undefined, limit: 2 })
    expect(JSON.parse(repeated?.detail ?? "").endpoint).toBe(first.body.id)
  })

  test("a secret that is refused is not shown", function* () {
    const api = yield* TestApi
    const answer = yield* api.call("POST", "/v1/webhooks", {
      key: yield* api.newKey(),
      json: endpoint({ secret: "my secret", url: "ftp://x" })
    })
    expect(Object.keys(problemsIn(answer))).toEqual(["url", "secret"])
    expect(answer.text).not.toContain("my secret")
  })

  test("each act of a key adds a row, and refused or replayed requests add none", function* () {
    const api = yield* TestApi
    const reader = yield* Reader
    const keys = yield* Keys
    const key = yield* api.newKey()
    const { id: keyId } = (yield* keys.authenticate(key, () => "127.0.0.1")) ?? expect.fail("no key")
    const rows = Effect.map(AuditRepo.list(reader, { since: 0, before: undefined, limit: 10 }), (all) =>
      all
        .filter(({ who }) => who === keyId)
        .map(({ at: _, sequence: __, ...row }) => ({ ...row, detail: JSON.parse(row.detail) }))
    )
    const by = { via: "api", who: keyId, account: "default", mode: "test" }

    const target = endpoint({ url: "https://192.0.2.1:8443/hook/token-4711" })
    const headers = { "idempotency-key": "once" }
    const made = yield* api.call("POST", "/v1/webhooks", { key, json: target, headers })
    expect(made.status).toBe(201)
    const { act, ...detail } = acts["POST /v1/webhooks"]
    const registered = { ...by, act, detail: { endpoint: made.body.id, ...detail } }
    expect(yield* rows).toEqual([registered])

    const again = yield* api.call("POST", "/v1/webhooks", { key, json: target, headers })
    expect([again.status, again.body.id]).toEqual([201, made.body.id])
    const refused = yield* api.call("POST", "/v1/webhooks", { key, json: endpoint({ url: "https://127.0.0.1" }) })
    expect(refused.status).toBe(400)
    expect((yield* api.call("DELETE", "/v1/webhooks/wh_none", { key })).status).toBe(404)
    expect((yield* api.call("GET", "/v1/webhooks", { key })).status).toBe(200)
    expect(yield* rows).toEqual([registered])

    const path = `/v1/webhooks/${made.body.id}`
    expect((yield* api.call("PATCH", path, { key, json: {} })).status).toBe(400)
    const change = { url: "https://192.0.2.2/token-4711", secret: "whsec_fedcba9876543210" }
    expect((yield* api.call("PATCH", path, { key, json: change })).status).toBe(200)
    const { act: changes, ...changed } = acts["PATCH /v1/webhooks/:id"]
    const moved = { ...by, act: changes, detail: { endpoint: made.body.id, ...changed, secret: "replaced" } }
    expect(yield* rows).toEqual([moved, registered])

    const { act: sends, ...sent } = acts["POST /v1/deliveries/redeliver"]
    const some = { ...by, act: sends, detail: sent }
    expect((yield* api.call("POST", "/v1/deliveries/redeliver", { key, json: {} })).status).toBe(200)
    expect(yield* rows).toEqual([some, moved, registered])

    expect((yield* api.call("DELETE", path, { key })).status).toBe(200)
    const deleted = { ...by, act: acts["DELETE /v1/webhooks/:id"].act, detail: { endpoint: made.body.id } }
    expect(yield* rows).toEqual([deleted, some, moved, registered])
    expect((yield* api.call("DELETE", path, { key })).status).toBe(404)
    expect(JSON.stringify(yield* rows)).not.toMatch(/whsec_|4711/)
    expect(yield* rows).toHaveLength(4)
  })
})

const next = "whsec_fedcba9876543210"

liveSuite(app, "a change of a webhook endpoint over HTTP", (test, it) => {
  let made = 0
  const registered = Effect.gen(function* () {
    const { api, key } = yield* apiWithKey
    const json = endpoint({ url: `https://192.0.2.1/hook/${++made}` })
    const { body } = yield* api.call("POST", "/v1/webhooks", { key, json })
    const change = (json: unknown, headers = {}) => api.call("PATCH", `/v1/webhooks/${body.id}`, { key, json, headers })
    return { api, key, endpoint: body, change }
  })

  test("changes the given fields, and returns the endpoint without its secret", function* () {
    const { api, change, endpoint, key } = yield* registered
    const moved = yield* change({ url: "https://192.0.2.2/hook" })
    expect([moved.status, moved.body]).toEqual([200, { ...endpoint, url: "https://192.0.2.2/hook" }])
    const more = yield* change({ events: ["payment.failed"], secret: next, overlapSeconds: 60 })
    const { formerSecretUntil, ...rest } = more.body
    expect(rest).toEqual({ ...moved.body, events: ["payment.failed"] })
    const left = Date.parse(formerSecretUntil) - Date.parse(more.headers.date ?? "")
    expect([left > 50_000, left <= 61_000]).toEqual([true, true])
    expect((yield* api.call("GET", `/v1/webhooks/${endpoint.id}`, { key })).body).toEqual(more.body)
    expect((yield* api.call("GET", "/v1/webhooks", { key })).body.data).toContainEqual(more.body)
    expect(more.text).not.toContain("whsec_")
  })

  it.effect.each([
    [{}, { "": "must have at least one of url, events and secret" }],
    [{ overlapSeconds: 5 }, { "": "must have at least one of url, events and secret" }],
    [{ url: "https://192.0.2.2", overlapSeconds: 5 }, { overlapSeconds: "must come with a secret" }],
    [{ url: "https://10.0.0.1" }, { url: "target is not a public address: tilld listen forwards events to one" }],
    [{ url: "http://192.0.2.1" }, { url: "must be an https URL of at most 2048 characters, without user info" }],
    [{ events: [] }, { events: "must have at least one event kind" }],
    [{ secret: "whsec_short" }, { secret: "must be whsec_ followed by 16 to 256 visible characters" }],
    ...[-1, 2_592_001, 1.5, "60", null].map(
      (overlapSeconds) =>
        [
          { secret: next, overlapSeconds },
          { overlapSeconds: "must be an integer from 0 to 2592000, in seconds, with a secret" }
        ] as const
    ),
    [{ id: "wh_x" }, { id: "is not a field of this endpoint" }]
  ] as const)("refuses %j", ([body, problems]) =>
    Effect.gen(function* () {
      const { change } = yield* registered
      const answer = yield* change(body)
      expect([answer.status, problemsIn(answer)]).toEqual([400, problems])
    })
  )

  test("a second rotation waits for the end of the first one's overlap, or ends it", function* () {
    const { change } = yield* registered
    expect((yield* change({ secret: next })).status).toBe(200)
    const refused = yield* change({ secret: `${next}!` })
    expect([refused.status, refused.body.error.code]).toEqual([409, "ROTATION_UNDER_WAY"])
    expect(refused.body.error.message).toMatch(/still signs until \d{4}-\d\d-\d\dT.*overlapSeconds 0/)
    // The request whose answer was lost.
    expect((yield* change({ secret: next })).status).toBe(200)
    const ended = yield* change({ secret: `${next}!`, overlapSeconds: 0 })
    expect([ended.status, "formerSecretUntil" in ended.body]).toEqual([200, false])
  })

  test("is found by its owner alone, in its mode, and not once it is deleted", function* () {
    const { api, change, endpoint, key } = yield* registered
    const path = `/v1/webhooks/${endpoint.id}`
    const json = { url: "https://192.0.2.2/hook" }
    const live = yield* api.newKey("live")
    const reader = yield* api.newKey("test", ["webhooks:read"])
    expect((yield* api.call("PATCH", path, { key: live, json })).status).toBe(404)
    expect((yield* api.call("GET", path, { key: live })).status).toBe(404)
    expect((yield* api.call("GET", path, { key: reader })).body).toEqual(endpoint)
    expect((yield* api.call("PATCH", path, { key: reader, json })).status).toBe(403)
    expect((yield* api.call("PATCH", path, { json })).status).toBe(401)
    yield* api.call("DELETE", path, { key })
    expect((yield* change(json)).status).toBe(404)
  })

  test("an idempotency key counts for one endpoint: the same body for another is another request", function* () {
    const { api, change, endpoint: made, key } = yield* registered
    const json = endpoint({ url: "https://192.0.2.1/other" })
    const other = yield* api.call("POST", "/v1/webhooks", { key, json })
    const headers = { "idempotency-key": "move" }
    const body = { url: "https://192.0.2.3/hook" }
    const first = yield* change(body, headers)
    const again = yield* change(body, headers)
    expect([again.headers["idempotent-replayed"], again.body]).toEqual(["true", first.body])
    const theirs = yield* api.call("PATCH", `/v1/webhooks/${other.body.id}`, { key, json: body, headers })
    expect([theirs.headers["idempotent-replayed"], theirs.body.id]).toEqual([undefined, other.body.id])
    expect(first.body.id).toBe(made.id)
    expect((yield* change({ url: "https://192.0.2.4/hook" }, headers)).body.error.code).toBe("IDEMPOTENCY_KEY_REUSED")
  })
})
