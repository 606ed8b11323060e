import { expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Accounts, defaultAccount, Keys } from "../../src/Auth.ts"
import { type Permission, permissions } from "../../src/Domain/ApiKey.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { openStream } from "../lib/eventStream.ts"
import { liveSuite } from "../lib/scopedTest.ts"

const path = "/v1/events/stream"

const streamers: ReadonlyArray<Permission> = ["webhooks:read", "payments:read"]

liveSuite(testApp(), "GET /v1/events/stream", (test, it) => {
  const create = (key: string, merchantRef: string) =>
    Effect.gen(function* () {
      const { call } = yield* TestApi
      const json = { merchantRef, chain: "base", currency: "ETH", amount: "1" }
      const { body, status } = yield* call("POST", "/v1/payments", { key, json })
      expect(status, JSON.stringify(body)).toBe(201)
    })

  const makeKey = (account: AccountId, allowed: ReadonlyArray<Permission> = permissions) =>
    Effect.flatMap(Keys, (keys) =>
      keys.create({ account, mode: "test", name: "test", permissions: allowed, expiresIn: undefined })
    )

  const open = (key: string, after?: string) =>
    Effect.flatMap(TestApi, ({ host, port }) => openStream({ key, url: `http://${host}:${port}` }, after))

  test("is open to keys that may read webhooks and payments, and sends them events of payments", function* () {
    const { newKey } = yield* TestApi
    const { next, response } = yield* open(yield* newKey("test", streamers))
    expect(response.statusCode).toBe(200)
    expect(response.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      "x-ratelimit-limit": "1000000"
    })
    expect(yield* next).toMatchObject({ event: "", data: "" })
    yield* create(yield* newKey(), "first")
    const { data, event, id } = yield* next
    expect(event).toBe("payment.created")
    expect(JSON.parse(data)).toMatchObject({ id, event, data: { merchantRef: "first" } })
  })

  it.effect.each([
    [["webhooks:read"], "permission payments:read: use a key that has it"],
    [["payments:read", "webhooks:write"], "permission webhooks:read: use a key that has it"],
    [["quotes:read"], "permissions webhooks:read and payments:read: use a key that has them"]
  ] as const)("refuses a key with %j", ([allowed, lacks]) =>
    Effect.gen(function* () {
      const { call, newKey } = yield* TestApi
      const key = yield* newKey("test", allowed)
      expect((yield* call("HEAD", path, { key })).status).toBe(403)
      const { body, status } = yield* call("GET", path, { key })
      const message = `The API key lacks the ${lacks}. Keys are made and listed in the portal, under Keys (/portal), and made by tilld keys create --permissions.`
      expect([status, body.error]).toMatchObject([403, { code: "FORBIDDEN", message }])
    })
  )

  it.effect.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("takes no %s", (method) =>
    Effect.gen(function* () {
      const { call, newKey } = yield* TestApi
      const { headers, status } = yield* call(method, path, { key: yield* newKey() })
      expect([status, headers.allow]).toEqual([405, "GET, HEAD"])
    })
  )

  test("is for keys only, and takes no other parameters", function* () {
    const { call, newKey } = yield* TestApi
    expect((yield* call("GET", path)).status).toBe(401)
    const wrong = yield* call("GET", `${path}?after=evt_1`, { key: yield* newKey() })
    expect(wrong.status).toBe(400)
    expect(problemsIn(wrong)).toEqual({ after: "is not a query parameter of this endpoint" })
  })

  test("has the kinds that are named, and knows no others", function* () {
    const { call, newKey } = yield* TestApi
    const key = yield* newKey()
    const rule =
      "must be kinds of events, separated by commas: payment.created, payment.detecting, payment.confirmed, payment.expired, payment.failed, payment.updated, payment.exception, refund.final, invoice.created, invoice.processing, invoice.paid, invoice.expired, invoice.failed or invoice.cancelled"
    for (const events of ["", "payment.paid", "payment.created,", "payment.created payment.updated"]) {
      const wrong = yield* call("GET", `${path}?events=${encodeURIComponent(events)}`, { key })
      expect([wrong.status, problemsIn(wrong)], events).toEqual([400, { events: rule }])
    }
    expect((yield* call("HEAD", `${path}?events=payment.updated,payment.created`, { key })).status).toBe(200)
    const long = yield* call("GET", `${path}?events=${",".repeat(1_025)}`, { key })
    expect([long.status, problemsIn(long)]).toEqual([400, { events: "must have at most 1024 characters" }])
    const longer = yield* call("GET", `${path}?${"%ff&".repeat(1_025)}`, { key })
    expect([longer.status, problemsIn(longer)]).toEqual([400, { "": "the query must have at most 4096 characters" }])
  })

  it.effect.each([
    ["empty", ""],
    ["nonsense", "12"],
    ["another id", `pay_${"a".repeat(22)}`],
    ["with more behind it", `evt_${"a".repeat(22)} `.concat("b")],
    ["too long", `evt_${"a".repeat(44)}`],
    ["much too long", `evt_${"a".repeat(1_000)}`]
  ] as const)("refuses a Last-Event-ID that is %s", ([, after]) =>
    Effect.gen(function* () {
      const { call, newKey } = yield* TestApi
      const refused = yield* call("GET", path, { key: yield* newKey(), headers: { "last-event-id": after } })
      expect(refused.status).toBe(400)
      expect(problemsIn(refused)).toEqual({ "last-event-id": "must be the id of a message of this stream" })
    })
  )

  test("refuses a Last-Event-ID beyond what headers may have", function* () {
    const { call, newKey } = yield* TestApi
    const headers = { "last-event-id": `evt_${"a".repeat(20_000)}` }
    const { body, status } = yield* call("GET", path, { key: yield* newKey(), headers })
    expect([status, body.error.code]).toEqual([431, "HEADERS_TOO_LARGE"])
  })

  test("continues with the oldest event for an unknown id, and says so", function* () {
    const key = yield* (yield* TestApi).newKey()
    yield* create(key, "known")
    const unknown = `evt_${"x".repeat(22)}`
    const { comment, next } = yield* open(key, unknown)
    expect(yield* comment).toBe(`${unknown} is not kept any more: from the oldest event that is`)
    expect(yield* next).toMatchObject({ id: "start", data: "" })
    expect(yield* next).toMatchObject({ event: "payment.created" })
  })

  test("ends with its key, before any later event", function* () {
    const { newKey } = yield* TestApi
    const keys = yield* Keys
    const { key, record } = yield* makeKey(defaultAccount)
    const stream = yield* open(Redacted.value(key))
    yield* stream.next
    yield* keys.revoke(record.id)
    yield* create(yield* newKey(), "after the key")
    yield* stream.ended
    expect(stream.response.complete).toBe(true)
    expect(yield* stream.isEmpty).toBe(true)
  })

  test("can be opened 20 times at most by an account; HEAD opens none", function* () {
    const { call, newKey } = yield* TestApi
    const account = AccountId.make("busy")
    yield* (yield* Accounts).create({ id: account, name: "Busy", wallets: [] })
    const key = Redacted.value((yield* makeKey(account, streamers)).key)
    for (let i = 0; i < 25; i++) expect((yield* call("HEAD", path, { key })).status).toBe(200)
    const streams = yield* Effect.replicateEffect(open(key), 20)
    expect(streams.map(({ response }) => response.statusCode)).toEqual(streams.map(() => 200))
    const { body, headers, status } = yield* call("GET", path, { key })
    expect([status, headers["retry-after"], body.error.code]).toEqual([429, "30", "TOO_MANY_STREAMS"])
    expect((yield* open(yield* newKey())).response.statusCode).toBe(200)
  })
})
