import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import { defaultAccount, Keys } from "../../src/Auth.ts"
import { type KeyTerms, permissions } from "../../src/Domain/ApiKey.ts"
import { newApiKeyId } from "../../src/Domain/Ids.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { testSettings } from "../lib/settings.ts"

const limits = { perMinute: 50, perHour: 1_000 }

const behindProxy = testApp({ limits, server: { ...testSettings("").server, trustedProxies: ["127.0.0.1/32"] } })

const makeKey = (terms: Partial<KeyTerms> = {}) =>
  Effect.flatMap(Keys, (keys) =>
    keys.create({ account: defaultAccount, mode: "test", name: "shop", permissions, expiresIn: undefined, ...terms })
  )

const order = { merchantRef: "order-1", amount: "5", currency: "ETH", chain: "base" }

describe("a request with a key that has a list of addresses", () => {
  it.live("is answered from these, by way of the operator's own proxies too, and refused from others with 403", () =>
    Effect.gen(function* () {
      const { call } = yield* TestApi
      const key = Redacted.value((yield* makeKey({ ips: ["192.0.2.0/24", "2001:db8::/32"] })).key)
      const from = (...addresses: ReadonlyArray<string>) =>
        call("GET", "/v1/payments", { key, headers: { "x-forwarded-for": addresses.join(", ") } })
      const refused = yield* from("203.0.113.9")
      expect(refused.status).toBe(403)
      expect(refused.body).toEqual({
        error: {
          code: "FORBIDDEN",
          message:
            "The API key may not be used from 203.0.113.9: put this address on the key's list, in the portal, under Keys (/portal), or with tilld keys change.",
          requestId: refused.headers["x-request-id"]
        }
      })
      // Nothing about the key itself is revealed, not even its limits.
      expect(refused.headers["x-ratelimit-limit"]).toBeUndefined()
      // An address before the last one could be forged.
      expect((yield* from("192.0.2.1", "203.0.113.9")).status).toBe(403)
      expect((yield* from("203.0.113.9", "192.0.2.1")).status).toBe(200)
      expect((yield* from("::ffff:192.0.2.1")).status).toBe(200)
      const { headers, status } = yield* from("2001:db8::1")
      // The refused requests did not count.
      expect([status, headers["x-ratelimit-remaining"]]).toEqual([200, "47"])
      // The proxy itself is not one of the shop's servers.
      expect((yield* call("GET", "/v1/payments", { key })).status).toBe(403)
    }).pipe(Effect.provide(behindProxy))
  )

  it.live("is a failed attempt of its network when it is refused, and delays no one else", () =>
    Effect.gen(function* () {
      const { call, newKey } = yield* TestApi
      const key = Redacted.value((yield* makeKey({ ips: ["192.0.2.1/32"] })).key)
      const from = (address: string, with_ = key) =>
        Effect.map(
          call("GET", "/v1/payments", { key: with_, headers: { "x-forwarded-for": address } }),
          ({ headers, status }) => [status, headers.connection]
        )
      for (let i = 0; i < 5; i++) expect(yield* from("203.0.113.9")).toEqual([403, "keep-alive"])
      expect(yield* from("203.0.113.9")).toEqual([403, "close"])
      expect(yield* from("192.0.2.1")).toEqual([200, "keep-alive"])
      expect(yield* from("203.0.113.9", yield* newKey())).toEqual([200, "keep-alive"])
    }).pipe(Effect.provide(behindProxy))
  )

  it.live("is refused before anything else is revealed, and a revoked key is a 401 from any address", () =>
    Effect.gen(function* () {
      const { call } = yield* TestApi
      const keys = yield* Keys
      const { key, record } = yield* makeKey({ ips: ["192.0.2.1/32"] })
      const text = Redacted.value(key)
      expect((yield* call("PUT", "/v1/payments", { key: text, body: "{" })).status).toBe(403)
      yield* keys.revoke(record.id)
      expect((yield* call("PUT", "/v1/payments", { key: text, body: "{" })).status).toBe(401)
    }).pipe(Effect.provide(testApp()))
  )
})

it.live("a key's own limits are reported and enforced, and changed at once", () =>
  Effect.gen(function* () {
    const { call } = yield* TestApi
    const keys = yield* Keys
    const { key, record } = yield* makeKey({ perMinute: 2 })
    const ask = Effect.map(call("GET", "/v1/payments", { key: Redacted.value(key) }), ({ headers, status }) => [
      status,
      headers["x-ratelimit-limit"],
      headers["x-ratelimit-remaining"]
    ])
    expect(yield* Effect.replicateEffect(ask, 3)).toEqual([
      [200, "2", "1"],
      [200, "2", "0"],
      [429, "2", "0"]
    ])
    yield* keys.change(record.id, { perMinute: 200 })
    expect(yield* ask).toEqual([200, "200", "197"])
    yield* keys.change(record.id, { perMinute: undefined })
    expect(yield* ask).toEqual([200, "50", "46"])
  }).pipe(Effect.provide(testApp({ limits })))
)

it.live("a request that is repeated with the new key of a roll gets the first response: nothing is done twice", () =>
  Effect.gen(function* () {
    const { call } = yield* TestApi
    const keys = yield* Keys
    const former = yield* makeKey({ perMinute: 2 })
    const create = (key: Redacted.Redacted<string>, json: object = order) =>
      call("POST", "/v1/payments", { key: Redacted.value(key), json, headers: { "idempotency-key": "a" } })
    const first = yield* create(former.key)
    expect([first.status, first.headers["idempotent-replayed"]]).toEqual([201, undefined])
    const rolled = (yield* keys.roll(former.record.id, newApiKeyId(), Duration.zero)) ?? expect.fail()
    expect((yield* create(former.key)).status).toBe(401)
    const again = yield* create(rolled.key)
    expect([again.status, again.text, again.headers["idempotent-replayed"]]).toEqual([201, first.text, "true"])
    expect((yield* create(rolled.key, { ...order, amount: "6" })).body.error.code).toBe("IDEMPOTENCY_KEY_REUSED")
    const list = yield* call("GET", "/v1/payments", { key: Redacted.value(rolled.key) })
    expect(list.status).toBe(429)
  }).pipe(Effect.provide(testApp()))
)
