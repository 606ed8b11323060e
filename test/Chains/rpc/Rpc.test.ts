import type { ServerResponse } from "node:http"
import { gzipSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import { Array as Arr, Chunk, DateTime, Effect, Either, Fiber, type Scope, TestClock } from "effect"
import type { YieldWrap } from "effect/Utils"
import { Rpc, type RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import { resolvingTo, slowConnects } from "../../lib/slowLine.ts"
import { answering, type Call, clientFor, type Handler, key, provider, results, twoCalls } from "../httpNode.ts"

const eachOfTwo = (client: RpcClient) =>
  client.sendEach([
    { method: "a", params: [] },
    { method: "bb", params: [1] }
  ])

const respondPacked = (response: ServerResponse, text: string) =>
  void response.setHeader("content-encoding", "gzip").end(gzipSync(text))

const clientOf = (handle: Handler) => Effect.flatMap(provider(handle), ({ url }) => clientFor(url))

/** A test with a real HTTP server. */
const live = (
  title: string,
  steps: () => Generator<YieldWrap<Effect.Effect<unknown, unknown, Rpc | Scope.Scope>>, void, never>
) => it.scopedLive(title, () => Effect.gen(steps).pipe(Effect.provide(Rpc.layer)))

/** Responds with a text around a list of a list of a list. */
const nested =
  (around: (deep: string) => string, status = 200): Handler =>
  (_, response) =>
    response.writeHead(status).end(around(`${"[".repeat(5_000)}${"]".repeat(5_000)}`))

describe("Rpc", () => {
  live("gives results in the order of the calls, whatever the order of the responses, null included", function* () {
    const client = yield* clientOf(
      answering(() => [
        { id: 2, result: null },
        { id: 1, result: "0x1", error: null }
      ])
    )
    expect(yield* twoCalls(client)).toEqual(["0x1", null])
    // Gateways lose an id of 0 (pokt-network/path#193), or return each as a string.
    for (const idOf of [(id: number) => id || undefined, String]) {
      const gateway = yield* clientOf(answering((calls) => results(calls).map((one) => ({ ...one, id: idOf(one.id) }))))
      expect(yield* twoCalls(gateway)).toEqual(["0x1", "0x2"])
    }
  })

  it.scoped.each([
    ["a status", (_: ReadonlyArray<Call>, response: ServerResponse) => void response.writeHead(429).end()],
    ["an error", answering(() => ({ error: { code: -32005, message: "rate limit" } }))]
  ] as const)(
    "after a refusal by %s, sends half as many calls a second, and none at once that are more",
    ([, refuse]) =>
      Effect.gen(function* () {
        const batches: Array<number> = []
        const { url } = yield* provider((calls, ...rest) => {
          const answer = batches.push(calls.length) === 1 ? refuse : answering(results)
          answer(calls, ...rest)
        })
        const client = yield* clientFor(url)
        const calls = Arr.replicate({ method: "a", params: [] }, 100)
        yield* Effect.either(client.sendEach(calls))
        const held = yield* Effect.fork(client.send(calls))
        // Fifty calls at fifty a second. The deadlines of the earlier responses are cancelled.
        while (!Chunk.contains(yield* TestClock.sleeps(), 1_000)) yield* Effect.yieldNow()
        expect(batches).toEqual([100, 50])
        yield* TestClock.adjust(1_000)
        expect(yield* Fiber.join(held)).toHaveLength(100)
        expect(batches).toEqual([100, 50, 50])
      }).pipe(Effect.provide(Rpc.layer))
  )

  live("keeps its connection between batches", function* () {
    const { connections, url } = yield* provider(answering(results))
    const client = yield* clientFor(url)
    yield* Effect.repeatN(twoCalls(client), 9)
    // The next call may be sent before the last response's connection is free again.
    expect(connections()).toBeLessThanOrEqual(2)
  })

  it.scopedLive.each<[string, string]>([
    ["us%40er:pass", "us@er:pass"],
    // As Infura has it.
    [":SECRET", ":SECRET"],
    ["token", "token:"],
    ["shop:100%sure", "shop:100%sure"],
    ["k%C3%A9y:%25", "kéy:%"]
  ])("sends %s of its URL as a header, and only to that provider", ([given, sent]) =>
    Effect.gen(function* () {
      const { url } = yield* provider((calls, response, request, isBatch) =>
        answering(() =>
          results(calls).map((one) => ({ ...one, result: `${request.headers.authorization} ${request.url}` }))
        )(calls, response, request, isBatch)
      )
      const client = yield* clientFor(url.replace("//", `//${given}@`))
      expect((yield* twoCalls(client))[0]).toBe(`Basic ${Buffer.from(sent).toString("base64")} /v2/${key}`)
      expect(client.host).toMatch(/^127\.0\.0\.1:\d+$/)
    }).pipe(Effect.provide(Rpc.layer))
  )

  live("reaches a name with two addresses, one of them unused, over a slow line", function* () {
    const { url } = yield* provider(answering(results))
    yield* resolvingTo("127.0.0.1", "::1")
    yield* slowConnects(300)
    const client = yield* clientFor(url.replace("127.0.0.1", "node.example"))
    expect(yield* twoCalls(client)).toHaveLength(2)
  })

  it.scopedLive.each<[string, Handler, object]>([
    [
      "an answer that is packed",
      (calls, response) => respondPacked(response, JSON.stringify(results(calls))),
      [{}, {}]
    ],
    ["a bomb", (_, response) => respondPacked(response, `[${" ".repeat(64 * 1024 * 1024)}]`), { reason: "too_large" }],
    [
      "what is not packed",
      (_, response) => void response.setHeader("content-encoding", "gzip").end("[]"),
      { reason: "garbage" }
    ]
  ])("asks for gzip, and takes %s", ([, handle, outcome]) =>
    Effect.gen(function* () {
      const client = yield* clientOf((calls, response, request, isBatch) => {
        expect(request.headers["accept-encoding"]).toBe("gzip")
        return handle(calls, response, request, isBatch)
      })
      const answer = yield* Effect.either(twoCalls(client))
      expect(Either.merge(answer)).toMatchObject(outcome)
    }).pipe(Effect.provide(Rpc.layer))
  )

  it.scopedLive.each<[RpcError["reason"], string, Handler]>([
    ["refused", "one error for all", answering(() => ({ id: null, error: { code: -32600, message: "no batches" } }))],
    ["refused", "one error for all, in a list", answering(() => [{ id: null, error: { message: "no batches" } }])],
    ["rate_limited", "too many calls", answering(() => ({ error: { code: -32005, message: "too many" } }))],
    ["state", "words beside the message", answering(() => ({ error: { message: "no", data: "missing trie node" } }))],
    ["garbage", "an answer twice", answering((calls) => [results(calls)[0], results(calls)[0]])],
    ["garbage", "an answer to another call", answering((calls) => [...results(calls), { id: 7, result: "0x1" }])],
    ["garbage", "an answer without a result", answering((calls) => calls.map(({ id }) => ({ id })))],
    ["garbage", "a list of nothing", answering(() => [null])],
    ["garbage", "one result of no call", answering(() => ({ id: 7, result: "0x1" }))],
    ["garbage", "no JSON", (_, response) => response.end("<html>")],
    ["garbage", "half of an answer", (_, response) => response.end('[{"id":1,')],
    ["rate_limited", "HTTP 429", (_, response) => response.writeHead(429).end("block range is too wide")],
    ["http", "HTTP 500", (_, response) => response.writeHead(500).end("oops")],
    ["http", "HTTP 401", (_, response) => response.writeHead(401).end('{"error":{"message":"no key"}}')],
    [
      "unsupported",
      "HTTP 404",
      (_, response) => response.writeHead(404).end('[{"error":{"code":-32601,"message":"no"}}]')
    ],
    ["unsupported", "HTTP 403", (_, response) => response.writeHead(403).end("rpc method is not whitelisted")],
    ["http", "a redirect", (_, response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end()],
    ["unreachable", "a closed connection", (_, response) => response.destroy()],
    ["too_large", "33 MiB", (_, response) => response.end(Buffer.alloc(33 * 1024 * 1024, 32))],
    [
      "too_large",
      "129 KiB where two numbers are asked for",
      (_, response) => response.end(Buffer.alloc(129 * 1024, 32))
    ],
    ["too_large", "more values than two numbers have", answering(() => Array.from({ length: 4_001 }, () => 1))],
    ["garbage", "a result 3,000 deep", nested((depth) => `[{"id":1,"result":${depth}},{"id":2,"result":1}]`)],
    ["garbage", "error.data 5,000 deep", nested((depth) => `[{"id":1,"error":{"message":"no","data":${depth}}}]`)],
    ["garbage", "one error for all, 5,000 deep", nested((depth) => `{"error":${depth}}`)],
    ["http", "HTTP 500, 5,000 deep", nested((depth) => `{"error":{"code":-32000,"data":${depth}}}`, 500)],
    ["http", "HTTP 502 with a page of 1 MiB", (_, response) => response.writeHead(502).end("<p>".repeat(350_000))],
    ["rate_limited", "HTTP 503, deep", nested((depth) => `{"error":{"message":"rate limit","data":${depth}}}`, 503)]
  ])("is %s: %s", ([reason, , handle]) =>
    Effect.gen(function* () {
      const client = yield* clientOf(handle)
      const error = yield* Effect.flip(twoCalls(client))
      expect(error.reason).toBe(reason)
      expect(error.message).toContain(`a, bb at ${client.host} failed (${reason})`)
      expect(error.message).toContain("Remedy: ")
    }).pipe(Effect.provide(Rpc.layer))
  )

  const oneOfTwo = answering((calls) =>
    calls.map(({ id }) => (id === 1 ? { id, result: "0x1" } : { id, error: { message: "missing trie node" } }))
  )

  live("fails a batch with the error of one call, and names that call", function* () {
    const error = yield* Effect.flip(twoCalls(yield* clientOf(oneOfTwo)))
    expect([error.reason, error.method]).toEqual(["state", "bb"])
  })

  live("sendEach keeps the results beside the error of one call", function* () {
    const [one, other] = yield* eachOfTwo(yield* clientOf(oneOfTwo))
    expect(one).toEqual(Either.right("0x1"))
    expect(other?.pipe(Either.flip, Either.getOrThrow)).toMatchObject({ reason: "state", method: "bb" })
  })

  live("reports a call without a response as missing, unless the provider reports an error", function* () {
    const client = yield* clientOf(answering((calls) => results(calls).slice(1)))
    expect(yield* Effect.flip(twoCalls(client))).toMatchObject({ reason: "missing", method: "a" })
    expect((yield* eachOfTwo(client)).map(Either.isRight)).toEqual([false, true])
    const talking = yield* clientOf(answering(() => [{ id: 2, error: { code: 429, message: "later" } }]))
    expect((yield* Effect.flip(twoCalls(talking))).reason).toBe("rate_limited")
  })

  live("learns the limit that an error names, with HTTP 200 and with others", function* () {
    const error = { code: -32614, message: "eth_getLogs is limited to a 10,000 range" }
    for (const status of [200, 413]) {
      for (const body of [{ error }, [{ id: 2, error }]]) {
        const { url } = yield* provider((_, response) => response.writeHead(status).end(JSON.stringify(body)))
        expect(yield* Effect.flip(twoCalls(yield* clientFor(url)))).toMatchObject({
          reason: "range",
          maxBlocks: 10_000
        })
      }
    }
  })

  it.scopedLive.each<[string, (calls: ReadonlyArray<Call>, most: number) => [status: number, body: unknown]]>([
    ["all calls", (_, most) => [500, { error: { code: 31, message: `Batch of more than ${most} requests are not` } }]],
    ["no call", (_, most) => [200, [{ id: null, error: { message: `batch limit ${most} exceeded` } }]]],
    ["the first call", (_, most) => [200, [{ id: 2, error: { message: `batch limit ${most} exceeded` } }]]]
  ])("learns how many calls a batch may have, from an error for %s", ([, refuse]) =>
    Effect.gen(function* () {
      const sizes: Array<number> = []
      const { url } = yield* provider((calls, response) => {
        sizes.push(calls.length)
        const most = sizes.length < 3 && sizes[0] === 10 ? 3 : 2
        const [status, body] = calls.length > most ? refuse(calls, most) : [200, results(calls)]
        response.writeHead(status).end(JSON.stringify(body))
      })
      const client = yield* clientFor(url)
      const calls = ["a", "bb", "ccc", "dddd", "eeeee"].map((method) => ({ method, params: [] }))
      const expected = ["0x1", "0x2", "0x3", "0x4", "0x5"]
      expect(yield* client.send([...calls, ...calls])).toEqual([...expected, ...expected])
      // The second part finds that the limit is lower meanwhile.
      expect(sizes.splice(0)).toEqual([10, 3, 3, 2, 1, 2, 1, 1])
      expect(yield* client.send(calls)).toEqual(expected)
      expect(sizes).toEqual([2, 2, 1])
    }).pipe(Effect.provide(Rpc.layer))
  )

  const refusedFor =
    (most: number, refuse: Handler): Handler =>
    (calls, response, request, isBatch) =>
      (isBatch && calls.length > most ? refuse : answering(results))(calls, response, request, isBatch)
  const withStatus =
    (status: number, body: string): Handler =>
    (_, response) =>
      response.writeHead(status).end(body)
  const inUnknownWords = answering(() => ({ error: { code: -32000, message: "at most three at a time, please" } }))
  const onEach = answering((calls) => calls.map(({ id }) => ({ id, error: { code: -32000, message: "not so many" } })))
  const forNine: ReadonlyArray<number> = [9, 1, 4, 1, 2, 1, 1, 1, 1, 1, 1, 1]

  it.scopedLive.each<[string, number, Handler, sizes: ReadonlyArray<number>]>([
    ["an error for any list", 0, answering(() => ({ id: null, error: { code: -32600, message: "no" } })), forNine],
    ["the same with 400", 0, withStatus(400, '{"id":null,"error":{"code":-32600,"message":"no"}}'), forNine],
    ["an unknown method for any list", 0, answering(() => ({ error: { code: -32601, message: "none" } })), forNine],
    ["403 for two and more", 1, withStatus(403, "Forbidden"), forNine],
    ["413", 1, withStatus(413, "<html>"), forNine],
    ["500", 1, withStatus(500, "oops"), forNine],
    ["one result for all", 1, answering(() => ({ id: 1, result: "0x1" })), forNine],
    ["no JSON", 1, withStatus(200, "<html>"), forNine],
    ["an empty list", 1, answering(() => []), forNine],
    ["429 without a time to wait", 1, withStatus(429, ""), forNine],
    ["unknown words", 3, inUnknownWords, [9, 1, 4, 1, 2, 1, 2, 2]],
    ["unknown words for each call", 3, onEach, [9, 1, 4, 1, 2, 1, 2, 2]],
    [
      "unknown words for the first call",
      3,
      answering(([first]) => [{ id: first?.id, error: { code: 1, message: "no" } }]),
      [9, 1, 4, 1, 2, 1, 2, 2]
    ],
    [
      "a limit that is not the real one",
      2,
      answering(() => ({ error: { message: "batch limit 9 exceeded" } })),
      [9, 1, 4, 1, 2, 1, 2, 2]
    ]
  ])("halves a batch that gets %s, down to what the provider takes, and remembers it", ([, most, refuse, expected]) =>
    Effect.gen(function* () {
      const sizes: Array<number> = []
      const client = yield* clientOf((calls, ...rest) => {
        sizes.push(calls.length)
        refusedFor(most, refuse)(calls, ...rest)
      })
      const calls = Array.from({ length: 9 }, (_, i) => ({ method: "m".repeat(i + 1), params: [] }))
      const inOrder = calls.map((_, i) => `0x${i + 1}`)
      expect(yield* client.send(calls)).toEqual(inOrder)
      expect(sizes.splice(0)).toEqual(expected)
      expect(yield* client.send(calls)).toEqual(inOrder)
      expect(sizes.every((size) => size <= Math.max(1, most))).toBe(true)
      expect(yield* client.batchLimit ?? Effect.void).toBe(Math.max(1, Math.min(2, most)))
    }).pipe(Effect.provide(Rpc.layer))
  )

  live("sends four calls at once to a provider that takes no batches", function* () {
    const waiting: Array<() => void> = []
    let isKnown = false
    const client = yield* clientOf((...request) => {
      const answer = () => refusedFor(1, withStatus(403, ""))(...request)
      if (!isKnown) return answer()
      waiting.push(answer)
      if (waiting.length === 4) for (const each of waiting.splice(0)) each()
    })
    const calls = Arr.replicate({ method: "a", params: [] }, 8)
    yield* client.send(calls)
    isKnown = true
    expect(yield* client.send(calls)).toEqual(calls.map(() => "0x1"))
  })

  live("sends one call alone to a provider that refuses all, and none where it asks to wait", function* () {
    for (const [status, headers, requests] of [
      [500, {}, 2],
      [403, {}, 2],
      [429, {}, 2],
      [429, { "retry-after": "0" }, 1],
      [503, { "retry-after": "1" }, 1]
    ] as const) {
      const client = yield* clientOf((_, response) => response.writeHead(status, headers).end())
      yield* Effect.flip(twoCalls(client))
      expect(client.counters.batches).toBe(requests)
    }
  })

  live("sends the one call of a batch that exceeds a rate again, and uses the other results", function* () {
    for (const error of [
      { code: 429, message: "later" },
      { code: -32005, message: "no more" }
    ]) {
      const sizes: Array<number> = []
      const client = yield* clientOf((calls, ...rest) => {
        sizes.push(calls.length)
        const isFirst = sizes.length === 1
        answering(() => results(calls).map((one) => (isFirst && one.id === 1 ? { id: 1, error } : one)))(calls, ...rest)
      })
      expect(yield* twoCalls(client)).toEqual(["0x1", "0x2"])
      expect(sizes).toEqual([2, 1])
      expect(yield* client.batchLimit ?? Effect.void).toBe(Number.POSITIVE_INFINITY)
    }
  })

  it.scoped("tries a longer batch after an hour", () =>
    Effect.gen(function* () {
      const sizes: Array<number> = []
      const client = yield* clientOf((calls, ...rest) => {
        sizes.push(calls.length)
        refusedFor(3, withStatus(403, ""))(calls, ...rest)
      })
      const calls = Arr.replicate({ method: "a", params: [] }, 4)
      for (const [minutes, expected] of [
        [0, [4, 1, 2, 1]],
        [59, [2, 2]],
        [1, [4, 1, 2, 1]]
      ] as const) {
        yield* TestClock.adjust(`${minutes} minutes`)
        yield* client.send(calls)
        expect(sizes.splice(0)).toEqual(expected)
      }
    }).pipe(Effect.provide(Rpc.layer))
  )

  it.scopedLive.each<[number, string | undefined, number | undefined]>([
    [429, "7", 7000],
    [503, "120", 120_000],
    [429, "Thu, 01 Jan 1970 00:00:00 GMT", 0],
    [429, "soon", undefined],
    [429, undefined, undefined],
    [500, "7", undefined]
  ])("HTTP %i with Retry-After %s asks for %o ms", ([status, header, expected]) =>
    Effect.gen(function* () {
      const { url } = yield* provider((_, response) =>
        response.writeHead(status, header === undefined ? {} : { "retry-after": header }).end()
      )
      const error = yield* Effect.flip(twoCalls(yield* clientFor(url)))
      expect(error.reason).toBe(status === 429 ? "rate_limited" : "http")
      expect(error.retryAfter).toBe(expected)
    }).pipe(Effect.provide(Rpc.layer))
  )

  live("reads a date in Retry-After", function* () {
    const later = DateTime.add(yield* DateTime.now, { seconds: 60 })
    const { url } = yield* provider((_, response) =>
      response.writeHead(503, { "retry-after": DateTime.toDateUtc(later).toUTCString() }).end()
    )
    const { retryAfter } = yield* Effect.flip(twoCalls(yield* clientFor(url)))
    // The date has whole seconds.
    expect(retryAfter).toBeGreaterThan(50_000)
    expect(retryAfter).toBeLessThanOrEqual(60_000)
  })

  live("counts calls, batches and bytes, of failures too", function* () {
    const bodies: Array<[sent: number, received: number]> = []
    const { url } = yield* provider((calls, response, request) => {
      const body = bodies.length === 0 ? JSON.stringify(results(calls)) : "höh?"
      bodies.push([Number(request.headers["content-length"]), Buffer.byteLength(body)])
      response.writeHead(bodies.length === 1 ? 200 : 500).end(body)
    })
    const client = yield* clientFor(url)
    expect(client.counters).toEqual({ calls: 0, batches: 0, sent: 0, received: 0 })
    yield* twoCalls(client)
    yield* Effect.flip(client.sendEach([{ method: "c", params: ["ü"] }]))
    const sum = (which: 0 | 1) => bodies.reduce((all, body) => all + body[which], 0)
    expect(client.counters).toEqual({ calls: 3, batches: 2, sent: sum(0), received: sum(1) })
    expect(sum(0)).toBeGreaterThan(100)
  })
})
