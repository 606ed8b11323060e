import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { shownPrefix } from "../../src/Auth/keyFormat.ts"
import { Accounts, defaultAccount } from "../../src/Auth.ts"
import { clientAddressOf } from "../../src/Http/clientAddress.ts"
import { apiWithKey, TestApi, testApp } from "../lib/api.ts"
import { liveTestOn } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"

/** Tests of a daemon with these limits. */
const limitedTo = (perMinute: number, perHour: number) => liveTestOn(testApp({ limits: { perMinute, perHour } }))
const limitOf = ({ headers }: { readonly headers: Readonly<Record<string, unknown>> }) => [
  headers["x-ratelimit-limit"],
  headers["x-ratelimit-remaining"]
]

describe("the rate limits of a key", () => {
  limitedTo(100, 1000)(
    "are in headers of every response to it, whatever is wrong with the request, and of no other",
    function* () {
      const api = yield* TestApi
      const key = yield* api.newKey("test", ["quotes:read"])
      const answers = [
        yield* api.call("GET", "/v1/payments", { key }),
        yield* api.call("PUT", "/v1/payments", { key }),
        yield* api.call("POST", "/v1/quotes", { key, body: "{", headers: { "content-type": "application/json" } }),
        yield* api.call("POST", "/v1/quotes", { key, json: {} })
      ]
      expect(answers.map(({ status }) => status)).toEqual([403, 405, 400, 400])
      expect(answers.map(limitOf)).toEqual([
        ["100", "99"],
        ["100", "98"],
        ["100", "97"],
        ["100", "96"]
      ])
      const reset = Number(answers[0]?.headers["x-ratelimit-reset"])
      const date = Date.parse(String(answers[0]?.headers.date)) / 1000
      expect(Number.isInteger(reset)).toBe(true)
      expect(reset - date).toBeGreaterThan(55)
      expect(reset - date).toBeLessThanOrEqual(62)
      for (const other of [
        yield* api.call("GET", "/v1/payments"),
        yield* api.call("GET", "/healthz"),
        yield* api.call("GET", "/nothing", { key })
      ]) {
        expect(limitOf(other)).toEqual([undefined, undefined])
      }
      expect(limitOf(yield* api.call("GET", "/v1/payments", { key }))).toEqual(["100", "95"])
    }
  )

  limitedTo(2, 1000)(
    "refuse further requests with 429, before any other check, and count each key separately",
    function* () {
      const { api, key } = yield* apiWithKey
      const other = yield* api.newKey()
      for (let i = 0; i < 2; i++) expect((yield* api.call("GET", "/v1/payments", { key })).status).toBe(200)
      for (let i = 0; i < 2; i++) {
        const refused = yield* api.call("PUT", "/v1/payments", { key })
        expect(refused.status).toBe(429)
        expect(limitOf(refused)).toEqual(["2", "0"])
        expect(Number(refused.headers["retry-after"])).toBeGreaterThan(50)
        expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(60)
        expect(refused.body.error).toMatchObject({ code: "RATE_LIMITED", details: { window: "minute", limit: 2 } })
        expect(refused.body.error.requestId).toBe(refused.headers["x-request-id"])
      }
      expect((yield* api.call("GET", "/v1/payments", { key: other })).status).toBe(200)
    }
  )

  limitedTo(2, 1000)("are beside the account's, and a refusal says whose was reached", function* () {
    const api = yield* TestApi
    const keys = yield* Effect.replicateEffect(api.newKey(), 3)
    yield* Effect.flatMap(Accounts, (accounts) => accounts.change(defaultAccount, { perMinute: 3 }))
    const first = keys[0] ?? ""
    for (let i = 0; i < 2; i++) yield* api.call("GET", "/v1/payments", { key: first })
    const ofKey = yield* api.call("GET", "/v1/payments", { key: first })
    expect([ofKey.status, limitOf(ofKey)]).toEqual([429, ["2", "0"]])
    expect(ofKey.body.error.message).toMatch(/^This key may make 2 requests a minute:/)
    const last = yield* api.call("GET", "/v1/payments", { key: keys[1] ?? "" })
    expect([last.status, limitOf(last)]).toEqual([200, ["3", "0"]])
    const ofAccount = yield* api.call("GET", "/v1/payments", { key: keys[2] ?? "" })
    expect([ofAccount.status, limitOf(ofAccount)]).toEqual([429, ["3", "0"]])
    expect(ofAccount.body.error.message).toMatch(/^All keys of this account together may make 3 requests a minute:/)
  })
})

describe("failed authentication", () => {
  limitedTo(100, 1000)("is delayed when repeated, closes its connection, and locks no valid key out", function* () {
    const { api, key } = yield* apiWithKey
    for (let i = 0; i < 5; i++) {
      const { headers, status } = yield* api.call("GET", "/v1/payments", { key: "wrong" })
      expect([status, headers.connection]).toEqual([401, "keep-alive"])
    }
    const late = yield* api.call("GET", "/v1/payments", { key: "wrong" })
    expect(late.status).toBe(401)
    expect(late.body).toEqual({
      error: {
        code: "UNAUTHORIZED",
        message:
          "The API key is invalid, revoked or has expired. Keys are made and listed in the portal, under Keys (/portal), and made by tilld keys create."
      }
    })
    expect(late.headers.connection).toBe("close")
    expect((yield* api.call("GET", "/v1/payments", { key })).status).toBe(200)
  })

  it.live("is counted by network: a client with many addresses of one IPv6 network waits as with one", () =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const connectionAfter = (address: string) =>
        Effect.map(
          api.call("GET", "/v1/payments", { key: "wrong", headers: { "x-forwarded-for": address } }),
          ({ headers }) => headers.connection
        )
      for (let i = 1; i <= 5; i++) expect(yield* connectionAfter(`2001:db8:0:1::${i}`)).toBe("keep-alive")
      expect(yield* connectionAfter("2001:db8:0:1:ffff::6")).toBe("close")
      expect(yield* connectionAfter("2001:db8:0:2::1")).toBe("keep-alive")
    }).pipe(Effect.provide(testApp({ server: { ...testSettings("").server, trustedProxies: ["127.0.0.1/32"] } })))
  )
})

describe("the address of a client", () => {
  const of = (peer: string, forwarded?: string, trusted: ReadonlyArray<string> = ["10.0.0.0/8", "::1/128"]) =>
    clientAddressOf(trusted)({
      socket: { remoteAddress: peer },
      headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded }
    } as never)

  it("is the peer of the connection unless that is a trusted proxy", () => {
    expect(of("192.0.2.1", "198.51.100.7")).toBe("192.0.2.1")
    expect(of("10.0.0.1", "198.51.100.7")).toBe("198.51.100.7")
    expect(of("::ffff:10.0.0.1", "198.51.100.7")).toBe("198.51.100.7")
    expect(of("10.0.0.1", "198.51.100.7", [])).toBe("10.0.0.1")
    expect(of("10.0.0.1")).toBe("10.0.0.1")
  })

  it("is the last one before the operator's own proxies, since clients can forge the earlier ones", () => {
    expect(of("10.0.0.1", "1.1.1.1, 198.51.100.7, 10.9.9.9")).toBe("198.51.100.7")
    expect(of("10.0.0.1", "203.0.113.9, nonsense")).toBe("10.0.0.1")
    expect(of("::1", "2001:db8::5, 10.1.1.1")).toBe("2001:db8::5")
  })
})

it.each([
  ["svc_live_ABCDefgh0123456789ABCDefgh0123456789ABCDefgh012345678", "svc_live_ABCD…"],
  ["svc_test_ABCD", "none"],
  ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "none"],
  ["correct horse battery staple", "none"],
  ["", "none"]
])("of a key the log shows four random characters at most: %s", (key, shown) => expect(shownPrefix(key)).toBe(shown))

liveTestOn(testApp({ log: { level: "info", format: "json" } }))(
  "refused keys are logged by their beginning with the request's id, and no more than three a minute of a network",
  function* () {
    const { api, key } = yield* apiWithKey
    const lines: Array<string> = []
    const spy = vi.spyOn(console, "error").mockImplementation((line) => void lines.push(String(line)))
    const ask = (given: object) => api.call("GET", "/v1/payments", given)
    const ids: Array<unknown> = []
    yield* ask({})
    for (let i = 0; i < 5; i++) ids.push((yield* ask({ key: `${key}x` })).headers["x-request-id"])
    spy.mockRestore()
    const refusals = lines.map((line) => JSON.parse(line)).filter(({ message }) => message === "an API key was refused")
    expect(refusals.map(({ annotations }) => annotations)).toEqual(
      ids.slice(0, 3).map((requestId) => ({ prefix: `${key.slice(0, 13)}…`, network: "127.0.0.1", requestId }))
    )
    expect(lines.join()).not.toContain(key.slice(0, 20))
  }
)
