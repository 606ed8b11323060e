import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  type ClientOptions,
  createClient,
  type TilldClient,
  TilldConnectionError,
  TilldError
} from "../../src/client/index.ts"
import { makeClient } from "../../src/client/make.ts"
import { sleep } from "../../src/client/transport.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite, liveTest } from "../lib/scopedTest.ts"
import { type Fate, type Front, startFront } from "./front.ts"

const apiKey = `svc_test_${"k".repeat(49)}`
const order = { merchantRef: "order-1", amount: "25000000", currency: "ETH", chain: "base" } as const

const endpoint = {
  url: "https://shop.example.com/x",
  events: ["payment.failed"],
  secret: `whsec_${"s".repeat(32)}`
} as const

const refusal = (status: number, code: string, headers: Readonly<Record<string, string>> = {}): Fate => ({
  status,
  headers,
  body: { error: { code, message: "no", requestId: "req_1" } }
})

const found: Fate = { status: 200, body: { data: [], cursor: null } }

/** A client that does not wait, but records its longest possible waits. */
const hasty = (front: Front, options: Partial<ClientOptions> = {}, random = 0) => {
  const waits: Array<number> = []
  const waiting = { sleep: async (millis: number) => void waits.push(millis), random: () => random }
  return { waits, tilld: makeClient({ baseUrl: front.url, apiKey, ...options }, waiting) }
}

const failureOf = (work: Promise<unknown>) =>
  Effect.promise(() =>
    work.then(
      () => expect.fail("it did not fail"),
      (error: unknown) => error
    )
  )

/** How one listing ends against these fates: its error, the waits, and how often it was sent. */
const listing = (fates: ReadonlyArray<Fate>, options: Partial<ClientOptions> = {}, random = 0) =>
  Effect.gen(function* () {
    const front = yield* startFront()
    front.expect(...fates)
    const { tilld, waits } = hasty(front, options, random)
    const error = yield* Effect.promise(() =>
      tilld.payments.list().then(
        () => undefined,
        (error: unknown) => error
      )
    )
    return { error, waits, sent: front.seen.length }
  })

liveSuite(testApp(), "a retry at a server", (test) => {
  const behindFront = Effect.gen(function* () {
    const api = yield* TestApi
    const front = yield* startFront(api)
    return { front, ...hasty(front, { apiKey: yield* api.newKey() }) }
  })
  const payments = (tilld: TilldClient) =>
    Effect.map(
      Effect.promise(() => tilld.payments.list()),
      ({ data }) => data
    )

  test("gets the payment that was created before the connection was reset, only once", function* () {
    const { front, tilld } = yield* behindFront
    const before = (yield* payments(tilld)).length
    front.expect("reset after", "reset after")
    const payment = yield* Effect.promise(() => tilld.payments.create(order))
    const posts = front.seen.filter(({ method }) => method === "POST")
    expect(posts.length).toBe(3)
    expect(new Set(posts.map(({ headers }) => headers["idempotency-key"])).size).toBe(1)
    expect(new Set(posts.map(({ body }) => body)).size).toBe(1)
    const [newest, ...others] = yield* payments(tilld)
    expect(newest).toEqual(payment)
    expect(others.length).toBe(before)
  })

  test("creates the payment that a reset prevented", function* () {
    const { front, tilld, waits } = yield* behindFront
    front.expect("reset before", { status: 502, body: "<html>Bad Gateway</html>" })
    const payment = yield* Effect.promise(() => tilld.payments.create({ ...order, merchantRef: "order-2" }))
    expect(payment.status).toBe("pending")
    expect(waits).toEqual([500, 1_000])
  })

  test("of a deletion finds nothing, when an attempt before it has deleted", function* () {
    const { front, tilld } = yield* behindFront
    const { id } = yield* Effect.promise(() => tilld.webhooks.create(endpoint))
    front.expect("reset after")
    expect(yield* Effect.promise(() => tilld.webhooks.delete(id))).toEqual({ id, deleted: true })
    expect((yield* Effect.promise(() => tilld.webhooks.list())).data).toEqual([])
    const other = yield* Effect.promise(() => tilld.webhooks.create(endpoint))
    front.expect("reset after", refusal(429, "RATE_LIMITED"))
    expect(yield* Effect.promise(() => tilld.webhooks.delete(other.id))).toEqual({ id: other.id, deleted: true })
    // A refused attempt has deleted nothing.
    front.expect(refusal(429, "RATE_LIMITED"))
    expect(yield* failureOf(tilld.webhooks.delete(id))).toMatchObject({ code: "NOT_FOUND" })
    // This does not apply to payments.
    front.expect("reset before")
    expect(yield* failureOf(tilld.payments.get("pay_none"))).toMatchObject({ code: "NOT_FOUND" })
  })
})

describe("a request", () => {
  it.scopedLive.each<readonly [Fate]>([
    [refusal(409, "IDEMPOTENCY_KEY_IN_USE")],
    [refusal(429, "RATE_LIMITED")],
    [refusal(500, "INTERNAL")],
    [refusal(503, "SHUTTING_DOWN")],
    [{ status: 502, headers: { "content-type": "text/html" }, body: "<html>" }],
    [{ status: 504, body: "" }],
    ["reset before"]
  ])("is repeated after %j", ([fate]) =>
    Effect.gen(function* () {
      expect(yield* listing([fate, found])).toEqual({ error: undefined, waits: [500], sent: 2 })
    })
  )

  it.scopedLive.each<readonly [number, string]>([
    [400, "VALIDATION_ERROR"],
    [401, "UNAUTHORIZED"],
    [403, "FORBIDDEN"],
    [404, "NOT_FOUND"],
    [409, "DUPLICATE_MERCHANT_REF"],
    [422, "IDEMPOTENCY_KEY_REUSED"],
    [501, "SOMETHING_NEW"]
  ])("is not repeated after %d %s", ([status, code]) =>
    Effect.gen(function* () {
      const { error, sent } = yield* listing([refusal(status, code), found])
      expect(error).toBeInstanceOf(TilldError)
      expect(error).toMatchObject({ status, code, message: "no", requestId: "req_1" })
      expect(sent).toBe(1)
    })
  )

  liveTest("is given up after as many retries as allowed, with the last error", function* () {
    const fates = [refusal(500, "A"), refusal(500, "B"), refusal(500, "C"), refusal(500, "D"), found]
    expect(yield* listing(fates)).toMatchObject({ error: { code: "C" }, sent: 3 })
    expect(yield* listing(fates, { maxRetries: 0 })).toMatchObject({ error: { code: "A" }, waits: [], sent: 1 })
  })

  liveTest("waits twice as long each time, up to eight seconds, and by chance up to half of it less", function* () {
    const fates = Array.from({ length: 7 }, () => "reset before" as const)
    const { waits } = yield* listing([...fates, found], { maxRetries: 7 })
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000])
    expect((yield* listing([...fates, found], { maxRetries: 7 }, 0.5)).waits).toEqual(waits.map((wait) => wait * 0.75))
  })

  liveTest("waits as long as Retry-After says on top, and is not kept waiting for more than a minute", function* () {
    const limited = (retryAfter: string, date = "Fri, 31 Dec 1999 23:59:49 GMT") =>
      listing([refusal(429, "RATE_LIMITED", { "retry-after": retryAfter, date }), found])
    expect(yield* limited("1")).toMatchObject({ waits: [1_500], sent: 2 })
    expect(yield* limited("60")).toMatchObject({ waits: [60_500], sent: 2 })
    expect(yield* limited("61")).toMatchObject({ error: { retryAfter: 61 }, waits: [], sent: 1 })
    expect(yield* limited("Fri, 31 Dec 1999 23:59:59 GMT")).toMatchObject({ waits: [10_500] })
    expect(yield* limited("Fri, 31 Dec 1999 23:00:00 GMT")).toMatchObject({ waits: [500] })
    expect(yield* limited("soon")).toMatchObject({ waits: [500] })
  })

  liveTest("without a response fails at the timeout, and so does a response that does not end", function* () {
    const late = {
      message: expect.stringMatching(/^tilld at 127\.0\.0\.1:\d+ did not answer within 20 ms$/),
      name: "TilldConnectionError"
    }
    expect(yield* listing(["hang", "hang"], { timeoutMs: 20, maxRetries: 1 })).toMatchObject({
      error: late,
      waits: [500]
    })
    const front = yield* startFront()
    const slow = new Response(new ReadableStream({ pull: () => new Promise(() => undefined) }))
    const { tilld } = hasty(front, { fetch: async () => slow, timeoutMs: 20, maxRetries: 0 })
    expect(yield* failureOf(tilld.payments.list())).toMatchObject(late)
  })

  liveTest("that cannot connect gives the error code, and nothing else", function* () {
    const { url } = yield* Effect.scoped(startFront())
    const closed = { baseUrl: url, apiKey, maxRetries: 0 }
    const refused = yield* failureOf(createClient(closed).payments.list())
    expect(refused).toBeInstanceOf(TilldConnectionError)
    expect(refused).toMatchObject({ message: `The connection to tilld at ${new URL(url).host} failed (ECONNREFUSED)` })
    const telling = async () => Promise.reject(new Error(`cannot send X-API-Key: ${apiKey}`))
    const failure = yield* failureOf(createClient({ ...closed, fetch: telling }).payments.list())
    expect(failure).toMatchObject({ message: `The connection to tilld at ${new URL(url).host} failed` })
  })

  liveTest("is aborted by its signal: before it is sent, without a response, and while waiting", function* () {
    const front = yield* startFront()
    const { tilld } = hasty(front)
    const reason = new Error("the customer left")
    expect(yield* failureOf(tilld.payments.list({}, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(front.seen.length).toBe(0)

    // The signal comes from what the client does itself: sends, and waits.
    const sending = new AbortController()
    const fetch: ClientOptions["fetch"] = (url, init) => {
      // What the client calls by default.
      // @effect-diagnostics-next-line globalFetch:off
      const answer = globalThis.fetch(url, init)
      sending.abort(reason)
      return answer
    }
    front.expect("hang")
    const cut = hasty(front, { fetch })
    expect(yield* failureOf(cut.tilld.payments.create(order, { signal: sending.signal }))).toBe(reason)
    expect(cut.waits).toEqual([])

    const waiting = new AbortController()
    front.expect(refusal(429, "RATE_LIMITED", { "retry-after": "60" }))
    const patient = makeClient(
      { baseUrl: front.url, apiKey },
      {
        random: () => 0,
        sleep: (millis, signal) => {
          const asleep = sleep(millis, signal)
          waiting.abort(reason)
          return asleep
        }
      }
    )
    expect(yield* failureOf(patient.payments.list({}, { signal: waiting.signal }))).toBe(reason)
  })

  liveTest("waits in real time, too", function* () {
    const front = yield* startFront()
    front.expect(refusal(500, "INTERNAL"), found)
    const tilld = createClient({ baseUrl: front.url, apiKey })
    expect(yield* Effect.promise(() => tilld.payments.list())).toEqual({ data: [], cursor: null })
    expect(front.seen.length).toBe(2)
  })
})

describe("a response that is not from tilld", () => {
  it.scopedLive.each<readonly [Fate, string]>([
    [
      { status: 200, headers: { "content-type": "text/html" }, body: "<html>Welcome</html>" },
      "(status 200, text/html)"
    ],
    [{ status: 200, body: '"ok"' }, "(status 200, application/json)"],
    [
      { status: 404, headers: { "content-type": "text/plain" }, body: "404 page not found" },
      "(status 404, text/plain)"
    ],
    [{ status: 403, body: { message: "Forbidden" } }, "(status 403, application/json)"],
    [
      { status: 301, headers: { location: "https://pay.example.com/" }, body: "" },
      "redirect (status 301 to https://pay"
    ]
  ])("is an error that says so: %j", ([fate, words]) =>
    Effect.gen(function* () {
      const { error, sent } = yield* listing([fate, found])
      expect(error).toMatchObject({
        name: "TilldError",
        code: "INVALID_RESPONSE",
        message: expect.stringContaining(words)
      })
      expect(sent).toBe(1)
    })
  )
})
