import { readFileSync } from "node:fs"
import { Worker } from "node:worker_threads"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { vi } from "vitest"
import { Connections } from "../../src/Http/connections.ts"
import { serveHttp } from "../../src/Http/listener.ts"
import type { Respond } from "../../src/Http/respond.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { dial } from "../lib/socket.ts"
import { answered, anyPort, connected, empty, get, lastError, saying, statuses, tell, untilClosed } from "./serving.ts"

/** Responds like `tell` to what has arrived whole; requests to /wait are answered when the test says so. */
const waiting = Effect.gen(function* () {
  const go = yield* Deferred.make<void>()
  const asked: Array<string | undefined> = []
  const respond: Respond = (request, body, id) =>
    Effect.flatMap(body, (received) => {
      asked.push(request.url)
      const reply = tell(request, Effect.succeed(received), id)
      return request.url === "/wait" ? Effect.zipRight(Deferred.await(go), reply) : reply
    })
  return { respond, asked, go: Deferred.succeed(go, undefined) }
})

/** Short, and long enough for what a busy machine sends at once. */
const soon = { connectionsCheckingInterval: 10, headersTimeout: 500, requestTimeout: 1_000 }

describe("where all connections are in use, a new one", () => {
  liveTest("takes the place of unfinished requests, never of one in progress; then it is refused", function* () {
    const { go, respond } = yield* waiting
    const address = yield* serveHttp(respond, anyPort, { total: 2 })
    const slow = yield* saying(dial(address), "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    const beBusy = Effect.gen(function* () {
      const client = yield* answered(dial(address), `${get("/")}${get("/wait")}`, empty)
      return client
    })
    const busy = [yield* beBusy, yield* beBusy]
    expect(yield* slow.closed).toBe("")

    const text = yield* untilClosed(dial(address), get("/"))
    expect(text).toMatch(/^HTTP\/1.1 503 Service Unavailable\r\n[\s\S]*retry-after: 1\r\n[\s\S]*connection: close\r\n/)
    expect(lastError(text)).toMatchObject({ code: "TOO_MANY_CONNECTIONS" })
    expect(statuses(text)).toEqual([503])

    yield* go
    for (const client of busy) yield* client.received(/"\}HTTP[\s\S]*\{"body":""\}$/)
  })

  liveTest("takes the place of one whose client does not read its reply", function* () {
    const text = "x".repeat(64 * 1024 * 1024)
    const address = yield* serveHttp(() => Effect.succeed({ status: 200, headers: {}, text }), anyPort, {
      total: 1,
      unread: 1024 ** 3
    })
    const lazy = yield* answered(dial(address), get("/"), /200 OK/)
    lazy.pause()
    yield* answered(dial(address), get("/"), /^HTTP\/1.1 200 /)
  })

  liveTest("takes the place of one whose client does not read the end of a stream", function* () {
    const ended = yield* Deferred.make<void>()
    const respond: Respond = ({ socket, url }) => {
      // It ends once the system takes no more, before as much is left that it would wait for its client.
      const rest = Stream.make("x".repeat(4096)).pipe(
        Stream.forever,
        Stream.takeUntil(() => socket.writableLength > 0),
        Stream.ensuring(Deferred.succeed(ended, undefined))
      )
      return Effect.succeed({ status: 200, headers: {}, text: "", ...(url === "/stream" ? { rest } : {}) })
    }
    const address = yield* serveHttp(respond, anyPort, { total: 1 })
    const lazy = yield* answered(dial(address), get("/stream"), /200 OK/)
    lazy.pause()
    yield* Deferred.await(ended)
    yield* Effect.repeatN(eventLoopTurn, 50)
    yield* answered(dial(address), get("/"), /^HTTP\/1.1 200 /)
  })

  liveTest("takes the place of an idle one before one whose request is arriving", function* () {
    const address = yield* serveHttp(tell, anyPort, { total: 2 })
    const sender = yield* answered(dial(address), get("/"), empty)
    const idle = yield* answered(dial(address), get("/"), empty)
    sender.write("POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
    yield* sender.received(/100 Continue/)
    yield* dial(address)
    expect(statuses(yield* idle.closed)).toEqual([200])
    sender.write("ab")
    yield* sender.received(/\{"body":"ab"\}$/)
  })
  liveTest("takes the place of one that has asked for nothing before one that had a reply", function* () {
    const address = yield* serveHttp(tell, anyPort, { total: 2 })
    const known = yield* answered(dial(address), get("/"), empty)
    const silent = yield* dial(address)
    yield* answered(dial(address), get("/"), empty)
    expect(yield* silent.closed).toBe("")
    yield* answered(Effect.succeed(known), get("/"), /HTTP[\s\S]*HTTP[\s\S]*\{"body":""\}$/)
  })
})

describe("data that does not arrive in time", () => {
  it.scopedLive.each([
    ["nothing", ""],
    ["headers", "GET / HTTP/1.1\r\nhost: x\r\n"],
    ["a body", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n{"],
    ["chunks", "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n"]
  ] as const)("%s: 408", ([, said]) =>
    Effect.gen(function* () {
      const { asked, respond } = yield* waiting
      const text = yield* untilClosed(connected(respond, soon), said)
      expect(statuses(text)).toEqual([408])
      expect(lastError(text)).toEqual({ code: "REQUEST_TIMEOUT", message: "The request did not arrive in time." })
      expect(asked).toEqual([])
    })
  )

  liveTest("the rest of a refused body gets no second response, which would be taken for the next one", function* () {
    const client = yield* connected(tell, soon)
    client.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{")
    const text = yield* client.closed
    expect(text).toMatch(/\{"body":"too large"\}$/)
    expect(statuses(text)).toEqual([200])
  })
})

describe("on one connection", () => {
  liveTest("malformed bytes are refused after the outstanding responses", function* () {
    const { go, respond } = yield* waiting
    const address = yield* serveHttp(respond, anyPort, soon)
    const client = yield* answered(dial(address), `${get("/")}${get("/wait")}NONSENSE\r\n\r\n`, empty)
    client.write(get("/"))
    // Also after the server's time limit for the malformed bytes.
    const silent = yield* dial(address)
    expect(statuses(yield* silent.closed)).toEqual([408])
    yield* go
    const text = yield* client.closed
    expect(statuses(text)).toEqual([200, 200, 400])
    expect(lastError(text)).toMatchObject({ code: "BAD_REQUEST" })
  })

  liveTest("bytes after the last request are ignored", function* () {
    const { asked, go, respond } = yield* waiting
    const client = yield* connected(respond)
    client.write(`${get("/")}GET /wait HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n${get("/late")}`)
    yield* client.received(empty)
    yield* go
    expect(statuses(yield* client.closed)).toEqual([200, 200])
    expect(asked).toEqual(["/", "/wait"])
  })

  liveTest("of many pipelined requests 32 are answered, and the rest is not read", function* () {
    const { asked, go, respond } = yield* waiting
    const client = yield* answered(connected(respond), `${get("/")}${get("/wait").repeat(500)}`, empty)
    yield* go
    const text = yield* client.closed
    expect(statuses(text)).toEqual([...Array.from({ length: asked.length }, () => 200), 400])
    expect(asked.length).toBeGreaterThanOrEqual(32)
    expect(asked.length).toBeLessThanOrEqual(33)
    expect(lastError(text).message).toContain("Too many requests came on this connection")
  })
})

const malformed = "This is not a well-formed HTTP request."
const chunked = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"

it.scopedLive.each([
  ["NONSENSE\r\n\r\n", 400, "BAD_REQUEST", malformed],
  [`${chunked}zz\r\n`, 400, "BAD_REQUEST", malformed],
  [get("example.com:443", "CONNECT"), 400, "BAD_REQUEST", "This server is not a proxy: it takes no CONNECT."],
  [`GET / HTTP/1.1\r\nx: ${"x".repeat(1024 * 1024)}`, 431, "HEADERS_TOO_LARGE", "The request's headers are too large."],
  [`${chunked}1;${"x".repeat(20_000)}`, 413, "PAYLOAD_TOO_LARGE", "The extensions of the body's chunks are too large."]
] as const)("a request that Node itself refuses gets a JSON body: %.60j: %i", ([request, status, code, message]) =>
  Effect.gen(function* () {
    const text = yield* untilClosed(connected(tell), request)
    expect(statuses(text)).toEqual([status])
    expect(text).toMatch(/content-type: application\/json\r\n[\s\S]*connection: close\r\n/)
    expect(lastError(text)).toEqual({ code, message })
  })
)

/** Opens connections, resets them if asked to, and wakes the waiting thread once all are through. */
const dialling = `
  const { connect } = require("node:net")
  const { isReset, port, progress, wanted } = require("node:worker_threads").workerData
  const through = () => {
    if (Atomics.add(progress, 0, 1) === wanted - 1) Atomics.notify(progress, 0)
  }
  for (let i = 0; i < wanted; i++) {
    const socket = connect(port, "127.0.0.1")
    socket.on("error", () => undefined)
    if (isReset) socket.on("connect", () => socket.resetAndDestroy()).on("close", through)
    else socket.on("connect", through)
  }`

/** How many connections come through to a server that accepts none meanwhile: its event loop stands still. */
const throughTo = (port: number, wanted: number, isReset: boolean) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const progress = new Int32Array(new SharedArrayBuffer(4))
      const thread = new Worker(dialling, { eval: true, workerData: { isReset, port, progress, wanted } })
      return { progress, thread }
    }),
    ({ progress }) =>
      Effect.sync(() => {
        for (let through = 0; through < wanted; through = Atomics.load(progress, 0)) {
          // A client that is turned away asks again, and is turned away again.
          if (Atomics.wait(progress, 0, through, 5_000) === "timed-out" && Atomics.load(progress, 0) === through) break
        }
        return Atomics.load(progress, 0)
      }),
    ({ thread }) => Effect.promise(() => thread.terminate())
  )

/** What the system lets wait at most. */
const longest = Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8"))

describe("connections that come while the event loop is busy", () => {
  liveTest("wait for their turn, more of them than Node would keep", function* () {
    const { port } = yield* serveHttp(tell, anyPort)
    const wanted = Math.min(2_000, longest)
    expect(yield* throughTo(port, wanted, false)).toBe(wanted)
  })

  liveTest("and are reset before they are accepted occupy no slot and no parser", function* () {
    const admitted = vi.spyOn(Connections.prototype, "admit")
    yield* Effect.addFinalizer(() => Effect.sync(() => admitted.mockRestore()))
    const { port } = yield* serveHttp(tell, anyPort)
    expect(yield* throughTo(port, 100, true)).toBe(100)
    const connection = yield* saying(dial({ host: "127.0.0.1", port }), get("/"))
    expect(statuses(yield* connection.received(empty))).toEqual([200])
    expect(admitted).toHaveBeenCalledTimes(1)
  })
})
