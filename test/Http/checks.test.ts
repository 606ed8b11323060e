import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { apiWithKey, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { dial } from "../lib/socket.ts"
import { saying } from "./serving.ts"

const tooLarge = "x".repeat(64 * 1024 + 1)

liveSuite(testApp(), "the checks of a request, in order", (test) => {
  // Each request violates the check under test and all later ones.
  test("an unknown path: 404, before authentication", function* () {
    const api = yield* TestApi
    const paths = [
      ...["/v1", "/V1/payments", "//v1/payments", "/v1/", "/v1/v1", `/v1/payments${"/".repeat(9)}`].map((path) => [
        path
      ]),
      ["/v1/payments/", ": it is /v1/payments"],
      ["/payments", ": it is /v1/payments"],
      ["/v1/v1/payments/pay_1?a=1", ": it is /v1/payments/:id"],
      ["/v1/v1/v1/quotes/", ": it is /v1/quotes"],
      ["/healthz/", ": it is /healthz"]
    ] as const
    for (const [path = "", right = ""] of paths) {
      const { body, headers, status } = yield* api.call("PUT", path, { body: tooLarge })
      expect(status, path).toBe(404)
      const message = `There is nothing at this path${right}.`
      expect(body).toEqual({ error: { code: "NOT_FOUND", message, requestId: headers["x-request-id"] } })
    }
  })

  test("a missing or wrong key: 401 with exactly two fields", function* () {
    const api = yield* TestApi
    const missing = yield* api.call("PUT", "/v1/payments", { body: tooLarge })
    expect(missing.status).toBe(401)
    expect(missing.text).toBe(
      '{"error":{"code":"UNAUTHORIZED","message":"The API key is missing: send it in the X-API-Key header. Keys are made and listed in the portal, under Keys (/portal), and made by tilld keys create."}}'
    )
    expect(missing.headers["x-request-id"]).toMatch(/^req_/)
    const good = yield* api.newKey()
    const wrong = ["", `${good}x`, good.replace("svc_test_", "svc_live_"), `${good}, ${good}`]
    for (const key of wrong) {
      const { status, text } = yield* api.call("PATCH", "/v1/payments/%ff", { key, body: tooLarge })
      expect(status, key).toBe(401)
      expect(text).toBe(
        '{"error":{"code":"UNAUTHORIZED","message":"The API key is invalid, revoked or has expired. Keys are made and listed in the portal, under Keys (/portal), and made by tilld keys create."}}'
      )
    }
  })

  test("a method that the path does not support: 405 with Allow", function* () {
    const api = yield* TestApi
    const key = yield* api.newKey("test", [])
    for (const [path, allow] of [
      ["/v1/payments", "GET, HEAD, POST"],
      ["/v1/webhooks/x", "DELETE, GET, HEAD, PATCH"],
      ["/v1/payments/x/cancel", "POST"],
      ["/v1/exceptions", "GET, HEAD"],
      ["/v1/exceptions/x/resolve", "POST"],
      ["/v1/deliveries/redeliver", "POST"],
      ["/v1/deliveries/x/redeliver", "POST"]
    ] as const) {
      for (const method of ["PUT", "OPTIONS", "PROPFIND"]) {
        const { body, headers, status } = yield* api.call(method, path, { key, body: tooLarge })
        expect([status, headers.allow], `${method} ${path}`).toEqual([405, allow])
        expect(body.error).toMatchObject({ code: "METHOD_NOT_ALLOWED", message: `This path takes ${allow}.` })
      }
    }
    const health = yield* api.call("POST", "/healthz")
    expect([health.status, health.headers.allow]).toEqual([405, "GET, HEAD"])
  })

  test("a key without the permission: 403 that names it; write does not imply read", function* () {
    const api = yield* TestApi
    const writer = yield* api.newKey("test", ["payments:write", "webhooks:write"])
    const reader = yield* api.newKey("test", ["payments:read", "webhooks:read"])
    for (const [method, path, key, permission] of [
      ["POST", "/v1/payments", reader, "payments:write"],
      ["GET", "/v1/payments/x", writer, "payments:read"],
      ["DELETE", "/v1/webhooks/x", reader, "webhooks:write"]
    ] as const) {
      const { body, status } = yield* api.call(method, path, method === "GET" ? { key } : { key, body: tooLarge })
      const message = `The API key lacks the permission ${permission}: use a key that has it. Keys are made and listed in the portal, under Keys (/portal), and made by tilld keys create --permissions.`
      expect([status, body.error], `${method} ${path}`).toMatchObject([403, { code: "FORBIDDEN", message }])
    }
  })

  test("the body: first its size (413), then its type (415), its JSON (400) and its fields (400)", function* () {
    const { api, key } = yield* apiWithKey
    const cases: ReadonlyArray<readonly [body: string, type: string | undefined, answer: string]> = [
      [tooLarge, undefined, "413 PAYLOAD_TOO_LARGE"],
      ["{", undefined, "415 UNSUPPORTED_MEDIA_TYPE"],
      ["", undefined, "400 VALIDATION_ERROR"],
      ["{", "text/plain", "415 UNSUPPORTED_MEDIA_TYPE"],
      ["{", "application/json; charset=latin1", "415 UNSUPPORTED_MEDIA_TYPE"],
      ["{", "application/json-patch+json", "415 UNSUPPORTED_MEDIA_TYPE"],
      ["{", "application/json", "400 INVALID_JSON"],
      ["{", "Application/JSON;charset=UTF-8", "400 INVALID_JSON"],
      ["{}", "application/json", "400 VALIDATION_ERROR"],
      // .NET, PowerShell and editors put a byte order mark in front, which RFC 8259, 8.1 lets a parser ignore.
      ["\ufeff{}", "application/json", "400 VALIDATION_ERROR"]
    ]
    for (const [body, type, answer] of cases) {
      const headers = type === undefined ? {} : { "content-type": type }
      const answered = yield* api.call("POST", "/v1/payments?x=1", { key, body, headers })
      expect(`${answered.status} ${answered.body.error.code}`, type).toBe(answer)
    }
  })

  test("a query of more than 4096 characters is refused as a whole, of an endpoint without parameters too", function* () {
    const { api, key } = yield* apiWithKey
    const problemsOf = (path: string, length: number) =>
      Effect.map(
        api.call("GET", `${path}?${"%zz&".repeat(1_024)}=`.slice(0, path.length + 1 + length), { key }),
        ({ body, status }) => [status, body.error.details]
      )
    const tooLong = { path: "", message: "the query must have at most 4096 characters" }
    for (const path of ["/v1/payments", "/healthz"]) {
      expect(yield* problemsOf(path, 4_097), path).toEqual([400, [tooLong]])
      expect(yield* problemsOf(path, 4_096), path).toEqual([400, [expect.objectContaining({ path: "%zz" })]])
    }
  })

  test("an HTTP/1.1 request needs a Host, and may have one in its target", function* () {
    const api = yield* TestApi
    const say = (request: string) =>
      Effect.gen(function* () {
        const client = yield* saying(dial(api), request)
        return yield* client.received(/\}$/)
      }).pipe(Effect.scoped)
    const nameless = yield* say("GET /healthz HTTP/1.1\r\n\r\n")
    expect(nameless).toMatch(
      /^HTTP\/1.1 400 Bad Request\r\n.*"code":"BAD_REQUEST","message":"The Host header is missing."/s
    )
    const twice = yield* say("GET /healthz HTTP/1.1\r\nhost: shop\r\nHOST: other\r\n\r\n")
    expect(twice).toMatch(/^HTTP\/1.1 400 Bad Request\r\n.*There is more than one Host header./s)
    expect(yield* say("GET /healthz HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    expect(yield* say("GET http://shop/healthz?x HTTP/1.1\r\nhost: shop\r\n\r\n")).toContain("VALIDATION_ERROR")
    expect(yield* say("GET http://shop/healthz HTTP/1.1\r\nhost: shop\r\n\r\n")).toContain("200 OK")
  })

  test("every response is JSON, must not be cached, and has its own request id; HEAD has the headers of GET", function* () {
    const { api, key } = yield* apiWithKey
    const answers = yield* Effect.all(
      [
        api.call("GET", "/nowhere"),
        api.call("GET", "/v1/payments"),
        api.call("GET", "/v1/payments", { key }),
        api.call("GET", "/v1/payments?limit=0", { key }),
        api.call("GET", "/healthz"),
        api.call("GET", "/readyz"),
        api.call("HEAD", "/v1/payments", { key })
      ],
      { concurrency: 1 }
    )
    for (const { headers } of answers) {
      expect(headers["content-type"]).toBe("application/json")
      expect(headers["cache-control"]).toBe("no-store")
      expect(headers["x-request-id"]).toMatch(/^req_[A-Za-z0-9_-]{22}$/)
    }
    const [get, head] = [answers[2], answers.at(-1)]
    expect([head?.status, head?.text]).toEqual([200, ""])
    expect(head?.headers["content-length"]).toBe(get?.headers["content-length"])
    expect(new Set(answers.map(({ headers }) => headers["x-request-id"])).size).toBe(answers.length)
  })
})

liveSuite(testApp(), "a cacheable response", (test) => {
  const paths = ["/docs", "/guide/index", "/openapi.json"]

  test("has its own strong ETag, and is not sent to a client that has the current version", function* () {
    const { call } = yield* TestApi
    const tags = new Set<string>()
    for (const path of paths) {
      const { headers, text } = yield* call("GET", path)
      const tag = headers.etag ?? ""
      expect(tag).toMatch(/^"[\w-]{22}"$/)
      tags.add(tag)
      const head = yield* call("HEAD", path)
      expect(head).toMatchObject({ status: 200, text: "", headers: { etag: tag, "cache-control": "no-cache" } })
      expect(head.headers["content-length"]).toBe(String(Buffer.byteLength(text)))
      const ask = (method: string, ifNoneMatch: string | ReadonlyArray<string>) =>
        call(method, path, { headers: { "if-none-match": ifNoneMatch } })
      for (const has of [tag, `W/${tag}`, "*", `"a", "b,c" ,${tag}`, ['"a"', tag]]) {
        for (const method of ["GET", "HEAD"]) {
          const kept = yield* ask(method, has)
          expect([kept.status, kept.text], `${method} ${has}`).toEqual([304, ""])
          expect(kept.headers).toMatchObject({ etag: tag, "cache-control": "no-cache" })
          expect(Object.keys(kept.headers)).not.toContain("content-type")
          expect(Object.keys(kept.headers)).not.toContain("content-length")
        }
      }
      for (const other of ['"a"', tag.replaceAll('"', ""), `"a,${tag.slice(1)}`, "", "**", "W/"]) {
        const sent = yield* ask("GET", other)
        expect([sent.status, sent.text === text], other).toEqual([200, true])
      }
    }
    expect(tags.size).toBe(paths.length)
  })

  test("other responses are not cacheable: they have no ETag, and a condition has no effect", function* () {
    const { call, newKey } = yield* TestApi
    const key = yield* newKey()
    for (const path of ["/healthz", "/v1/payments"]) {
      const answered = yield* call("GET", path, { key, headers: { "if-none-match": "*" } })
      expect(answered.status).toBe(200)
      expect(answered.headers).toMatchObject({ "cache-control": "no-store" })
      expect(answered.headers.etag).toBeUndefined()
    }
    const wrong = yield* call("GET", "/openapi.json?a=1", { headers: { "if-none-match": "*" } })
    expect(wrong.status).toBe(400)
    expect((yield* call("POST", "/docs", { headers: { "if-none-match": "*" } })).status).toBe(405)
  })
})
