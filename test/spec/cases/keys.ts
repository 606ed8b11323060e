import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Permission } from "../../../src/Domain/ApiKey.ts"
import { newApiKeyId } from "../../../src/Domain/Ids.ts"
import { visitorOf } from "../../lib/portal.ts"
import type { Case } from "../Case.ts"
import { create, order, type Shop, shopCase } from "../Shop.ts"

/** What each permission is for: a request that needs it, and its status when it is there. */
const guarded: ReadonlyArray<{
  readonly permission: Permission
  readonly requests: ReadonlyArray<readonly [method: string, path: string, json: unknown, status: number]>
}> = [
  {
    permission: "payments:read",
    requests: [
      ["GET", "/v1/payments", undefined, 200],
      ["GET", "/v1/payments/pay_x", undefined, 404]
    ]
  },
  {
    permission: "payments:write",
    requests: [
      ["POST", "/v1/payments", {}, 400],
      ["POST", "/v1/payments/pay_x/cancel", {}, 404]
    ]
  },
  { permission: "webhooks:read", requests: [["GET", "/v1/webhooks", undefined, 200]] },
  {
    permission: "webhooks:write",
    requests: [
      ["POST", "/v1/webhooks", {}, 400],
      ["DELETE", "/v1/webhooks/wh_x", undefined, 404]
    ]
  },
  { permission: "quotes:read", requests: [["POST", "/v1/quotes", {}, 400]] }
]

const scoped = guarded.map(({ permission, requests }) =>
  shopCase(
    [`5.3 ${permission}`],
    `opens ${requests.map(([method, path]) => `${method} ${path}`).join(" and ")}, and nothing else does`,
    function* ({ ask, singleKeys }) {
      for (const [allowed, key] of Object.entries(yield* singleKeys)) {
        for (const [method, path, json, status] of requests) {
          const answer = yield* ask(method, path, { key, json })
          expect([allowed, answer.status]).toEqual([allowed, allowed === permission ? status : 403])
        }
      }
    }
  )
)

const unauthorized = (message: string) => ({ error: { code: "UNAUTHORIZED", message } })

export const keys: ReadonlyArray<Case<Shop>> = [
  ...scoped,
  shopCase(
    ["5.1", "5.5", '7 "Authentication failure: HTTP 401"', "7 error.code", "7 error.message"],
    "without a valid key in X-API-Key a request is answered 401 with exactly code and message",
    function* ({ ask, askUnknown, daemon, newKey, run }) {
      const missing = yield* askUnknown("GET", "/v1/payments")
      const text =
        "The API key is missing: send it in the X-API-Key header. Keys are made and listed in the portal, under Keys (/portal), and made by tilld keys create."
      expect([missing.status, missing.body]).toEqual([401, unauthorized(text)])
      const elsewhere = yield* askUnknown("GET", `/v1/webhooks?api_key=${daemon.key}`, {
        headers: { authorization: `Bearer ${daemon.key}` }
      })
      expect([elsewhere.status, elsewhere.body]).toEqual([401, unauthorized(text)])
      const revoked = yield* newKey({})
      yield* run("keys", "revoke", revoked.id)
      for (const key of [revoked.key, daemon.key.toLowerCase()]) {
        const { body, status } = yield* ask("POST", "/v1/quotes", { key, json: {} })
        expect([status, body]).toEqual([
          401,
          unauthorized(
            "The API key is invalid, revoked or has expired. Keys are made and listed in the portal, under Keys (/portal), and made by tilld keys create."
          )
        ])
      }
      expect((yield* ask("GET", "/v1/payments", { key: daemon.key })).status).toBe(200)
    }
  ),
  shopCase(
    ["5.2", "5.2 Live", "5.2 Test"],
    "a key's prefix shows its mode, and each mode sees only its own payments",
    function* ({ ask, newKey }) {
      const [live, test] = yield* Effect.all([newKey({ mode: "live" }), newKey({ mode: "test" })], { concurrency: 2 })
      expect(live.key).toMatch(/^svc_live_[0-9A-Za-z]{43,}$/)
      expect(test.key).toMatch(/^svc_test_[0-9A-Za-z]{43,}$/)
      const askWith = (key: string) => (method: string, path: string, sent?: object) =>
        ask(method, path, { key, ...sent })
      const shared = order()
      const inLive = yield* create(askWith(live.key), shared)
      const inTest = yield* create(askWith(test.key), shared)
      expect(inLive.address).not.toBe(inTest.address)
      const seen = (key: string, { id }: { readonly id: string }) =>
        Effect.map(askWith(key)("GET", `/v1/payments/${id}`), ({ status }) => status)
      expect([yield* seen(live.key, inLive), yield* seen(live.key, inTest)]).toEqual([200, 404])
      expect([yield* seen(test.key, inTest), yield* seen(test.key, inLive)]).toEqual([200, 404])
      const listed = yield* askWith(live.key)("GET", "/v1/payments?limit=100")
      expect(listed.body.data.map(({ id }: { readonly id: string }) => id)).not.toContain(inTest.id)
    }
  ),
  shopCase(
    ["5.3", '5.3 "Keys can be scoped"'],
    "a person in the portal creates and revokes keys, and names their permissions; the operator does so with tilld keys, too",
    function* ({ ask, daemon, newKey, run }) {
      const { id, key } = yield* newKey({ permissions: ["payments:read", "quotes:read"] })
      const listed = yield* run<ReadonlyArray<{ id: string; permissions: ReadonlyArray<string> }>>("keys", "list")
      expect(listed.find((each) => each.id === id)?.permissions).toEqual(["payments:read", "quotes:read"])
      expect(JSON.stringify(listed)).not.toContain(key)
      expect((yield* ask("GET", "/v1/payments", { key })).status).toBe(200)
      yield* run("keys", "revoke", id)
      expect((yield* ask("GET", "/v1/payments", { key })).status).toBe(401)

      const { url } = yield* run<{ url: string }>("login", "--account", "default", "--role", "admin", "--name", "Ada")
      const ada = visitorOf(daemon.url)
      expect((yield* ada.post(new URL(url).pathname)).status).toBe(303)
      const fields = { id: newApiKeyId(), name: "server", permissions: "payments:read" }
      const [made = ""] =
        /svc_test_[\w-]{20,}/.exec((yield* ada.post("/portal/a/default/test/keys", fields)).text) ?? []
      const asks = (path: string) => Effect.map(ask("GET", path, { key: made }), ({ status }) => status)
      expect([yield* asks("/v1/payments"), yield* asks("/v1/webhooks")]).toEqual([200, 403])
      expect((yield* ada.post(`/portal/a/default/test/keys/${fields.id}/revoke`)).status).toBe(303)
      expect(yield* asks("/v1/payments")).toBe(401)
    }
  ),
  shopCase(
    ["5.4"],
    "decided: writing does not imply reading; a 403 names the permission that a key lacks",
    function* ({ ask, newKey }) {
      const { key } = yield* newKey({ permissions: ["payments:write", "webhooks:write"] })
      for (const [path, permission] of [
        ["/v1/payments", "payments:read"],
        ["/v1/webhooks", "webhooks:read"]
      ] as const) {
        const { body, headers, status } = yield* ask("GET", path, { key })
        const message = `The API key lacks the permission ${permission}: use a key that has it. Keys are made and listed in the portal, under Keys (/portal), and made by tilld keys create --permissions.`
        const requestId = headers["x-request-id"]
        expect([status, body]).toEqual([403, { error: { code: "FORBIDDEN", message, requestId } }])
      }
    }
  ),
  shopCase(
    ["5.6"],
    "no page in a browser may use a key: no response is readable by another origin",
    function* ({ ask, askUnknown }) {
      const origin = "https://shop.example"
      const answer = yield* ask("GET", "/v1/payments", { headers: { origin } })
      const preflight = yield* askUnknown("OPTIONS", "/v1/payments", {
        headers: { origin, "access-control-request-method": "GET", "access-control-request-headers": "x-api-key" }
      })
      expect(preflight.status).toBe(401)
      for (const { headers } of [answer, preflight]) {
        expect(Object.keys(headers).filter((name) => name.startsWith("access-control-"))).toEqual([])
      }
    }
  ),
  shopCase(
    ['7 "Other status codes, error"'],
    "decided: one form for every other refusal, with a code, a message and the request's id",
    function* ({ ask }) {
      const post = (body: string, type = "application/json") =>
        ask("POST", "/v1/payments", { body, headers: { "content-type": type } })
      const refusals = [
        [yield* post("{"), 400, "INVALID_JSON"],
        [yield* post("{}"), 400, "VALIDATION_ERROR"],
        [yield* ask("GET", "/v1/payments/pay_x"), 404, "NOT_FOUND"],
        [yield* ask("DELETE", "/v1/webhooks/wh_x"), 404, "NOT_FOUND"],
        [yield* ask("GET", "/v1/nothing"), 404, "NOT_FOUND"],
        [yield* ask("PUT", "/v1/payments"), 405, "METHOD_NOT_ALLOWED"],
        [yield* post(`"${"x".repeat(65_536)}"`), 413, "PAYLOAD_TOO_LARGE"],
        [yield* post("{}", "text/plain"), 415, "UNSUPPORTED_MEDIA_TYPE"]
      ] as const
      for (const [{ body, headers, status }, expected, code] of refusals) {
        const { details, ...error } = body.error
        expect([status, error]).toEqual([
          expected,
          { code, message: expect.any(String), requestId: headers["x-request-id"] }
        ])
        expect(details !== undefined).toBe(code === "VALIDATION_ERROR")
      }
    }
  )
]
