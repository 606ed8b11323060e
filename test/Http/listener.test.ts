import { describe, expect } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Option, Scope, Stream, TestClock } from "effect"
import { type KeptListener, serveHttp } from "../../src/Http/listener.ts"
import type { Respond } from "../../src/Http/respond.ts"
import { Patience } from "../../src/Telemetry/patience.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { clockTest, liveTest, liveTestOn } from "../lib/scopedTest.ts"
import { dial } from "../lib/socket.ts"
import { answered, anyPort, connected, empty, get, lastError, saying, statuses, tell } from "./serving.ts"

describe("request bodies", () => {
  liveTest("whose Content-Length is over the limit are refused unread, and the connection stays open", function* () {
    const client = yield* connected(tell)
    const length = 64 * 1024 + 1
    client.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n`)
    yield* client.received(/\{"body":"too large"\}$/)
    client.write("x".repeat(length))
    client.write(get("/"))
    yield* client.received(/\{"body":"too large"\}HTTP\/1.1 200 OK[\s\S]*\{"body":""\}$/)
  })

  liveTest("in chunks are refused when they pass the limit, and the connection stays open", function* () {
    const client = yield* connected(tell)
    const chunk = `1000\r\n${"x".repeat(4096)}\r\n`
    client.write(`POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(17)}`)
    yield* client.received(/\{"body":"too large"\}$/)
    client.write(`${chunk.repeat(4)}0\r\n\r\n${get("/")}`)
    yield* client.received(/\{"body":"too large"\}HTTP\/1.1 200 OK[\s\S]*\{"body":""\}$/)
  })

  liveTest("at the limit arrive whole, however they are split", function* () {
    const client = yield* connected(tell)
    const body = "é".repeat(32 * 1024)
    client.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${64 * 1024}\r\n\r\n`)
    const bytes = Buffer.from(body)
    client.write(bytes.subarray(0, 1001))
    client.write(bytes.subarray(1001))
    const text = yield* client.received(/"\}$/)
    expect(Buffer.from(text, "latin1").toString()).toContain(JSON.stringify({ body }))
  })

  liveTest("get 100 Continue if the client expects it, and other expectations are ignored", function* () {
    const client = yield* connected(tell)
    client.write("POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
    yield* client.received(/^HTTP\/1.1 100 Continue\r\n\r\n$/)
    client.write("ab")
    yield* client.received(/\{"body":"ab"\}$/)
    client.write("POST / HTTP/1.1\r\nhost: x\r\nexpect: 200-ok\r\ncontent-length: 2\r\n\r\ncd")
    yield* client.received(/\{"body":"cd"\}$/)
  })
})

describe("a client that disconnects", () => {
  liveTest("during its request interrupts the work for it, and nothing else", function* () {
    const started = yield* Deferred.make<void>()
    const ended = yield* Deferred.make<void>()
    const forever: Respond = (request) =>
      request.url === "/"
        ? tell(request, Effect.succeed(Buffer.alloc(0)), "")
        : Effect.zipRight(Deferred.succeed(started, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Deferred.succeed(ended, undefined))
          )
    const address = yield* serveHttp(forever, anyPort)
    const client = yield* saying(dial(address), get("/wait"))
    yield* Deferred.await(started)
    client.destroy()
    yield* Deferred.await(ended)
    yield* answered(dial(address), get("/"), empty)
  })

  liveTest("before its body has arrived starts no work on it", function* () {
    let received = 0
    const address = yield* serveHttp((request, body, id) => {
      const counted = Effect.tap(body, () => {
        received += 1
      })
      return tell(request, counted, id)
    }, anyPort)
    const client = yield* saying(dial(address), "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    client.destroy()
    yield* answered(dial(address), get("/"), empty)
    expect(received).toBe(1)
  })
})

/**
 * A server whose requests, except those to /, are answered when the test says so, and that ends as the daemon does:
 * by interruption. A response to /stream has no end.
 */
const closable = Effect.gen(function* () {
  const started = yield* Deferred.make<void>()
  const go = yield* Deferred.make<void>()
  const listening = yield* Deferred.make<
    Effect.Effect.Success<ReturnType<typeof serveHttp>>,
    Effect.Effect.Error<ReturnType<typeof serveHttp>>
  >()
  const respond: Respond = (request, body, id) =>
    request.url === "/"
      ? tell(request, body, id)
      : Effect.zipRight(Deferred.succeed(started, undefined), Deferred.await(go)).pipe(
          Effect.zipRight(tell(request, body, id)),
          Effect.map((reply) => (request.url === "/stream" ? { ...reply, rest: Stream.never } : reply))
        )
  const daemon = yield* serveHttp(respond, anyPort).pipe(
    Effect.intoDeferred(listening),
    Effect.zipRight(Effect.never),
    Effect.scoped,
    Effect.fork
  )
  return { address: yield* Deferred.await(listening), started, go, close: Fiber.interrupt(daemon) }
})

/** The same, with a request in progress. */
const closableAt = (request: string) =>
  Effect.gen(function* () {
    const server = yield* closable
    const busy = yield* saying(dial(server.address), request)
    yield* Deferred.await(server.started)
    return { ...server, busy }
  })
const closableAtWork = closableAt(get("/wait"))

describe("at a shutdown", () => {
  liveTest("requests in progress finish, open connections get 503, new connections are not accepted", function* () {
    const { address, busy, close, go } = yield* closableAtWork
    const idle = yield* answered(dial(address), get("/"), empty)

    const closing = yield* Effect.fork(close)
    yield* Effect.yieldNow()
    expect(Exit.isFailure(yield* Effect.exit(dial(address)))).toBe(true)
    idle.write(get("/"))
    const refused = yield* idle.closed
    expect(refused).toMatch(
      /HTTP\/1.1 503 Service Unavailable\r\n[\s\S]*retry-after: 5\r\n[\s\S]*connection: close\r\n/
    )
    expect(lastError(refused)).toMatchObject({ code: "SHUTTING_DOWN" })

    expect(Exit.isExit(yield* Fiber.poll(closing))).toBe(false)
    yield* Deferred.succeed(go, undefined)
    expect(yield* busy.closed).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*connection: close\r\n[\s\S]*\{"body":""\}$/)
    yield* Fiber.join(closing)
  })

  clockTest("a client that sends another request after its last response gets 503, and is not cut off", function* () {
    const { address, busy, close, go } = yield* closableAtWork
    const idle = yield* dial(address)
    const closing = yield* Effect.fork(close)
    yield* TestClock.adjust("100 millis")
    yield* Deferred.succeed(go, undefined)
    yield* busy.closed
    idle.write(get("/"))
    expect(yield* idle.closed).toMatch(/^HTTP\/1.1 503 /)
    yield* TestClock.adjust("100 millis")
    yield* Fiber.join(closing)
  })

  liveTest("a request whose work was interrupted gets 503", function* () {
    const client = yield* saying(
      connected(() => Effect.interrupt),
      get("/")
    )
    expect(lastError(yield* client.received(/\}$/))).toMatchObject({ code: "SHUTTING_DOWN" })
  })

  liveTest("a request for an endless stream gets 503 and does not delay it", function* () {
    const { address, busy, close, go } = yield* closableAt(get("/stream"))
    const idle = yield* answered(dial(address), get("/"), empty)
    const closing = yield* Effect.fork(close)
    yield* Effect.yieldNow()
    idle.write(get("/"))
    yield* idle.closed
    yield* Deferred.succeed(go, undefined)
    expect(yield* busy.received(/^HTTP\/1.1 [0-9]+ /)).toMatch(/^HTTP\/1.1 503 /)
    yield* Fiber.join(closing)
  })

  liveTest("idle connections do not delay it", function* () {
    const { address, close } = yield* closable
    const silent = yield* dial(address)
    const halfway = yield* saying(dial(address), "GET / HTTP/1.1\r\nhost")
    yield* close
    expect([yield* silent.closed, yield* halfway.closed]).toEqual(["", ""])
  })

  clockTest("a request that does not finish is cut off after 20 seconds", function* () {
    const { busy, close } = yield* closableAtWork
    const closing = yield* Effect.fork(close)
    yield* TestClock.adjust("19999 millis")
    expect(Exit.isExit(yield* Fiber.poll(closing))).toBe(false)
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(closing)
    expect(yield* busy.closed).toBe("")
  })
})

liveTestOn(Workers.layer)("while a port is taken the listener is not ready, and says which", function* () {
  const { health } = yield* Workers
  const taken = yield* serveHttp(tell, anyPort)
  expect(yield* health).toEqual([{ name: "listener", ready: true }])
  yield* Effect.flip(Effect.provideService(serveHttp(tell, taken), Patience, Duration.zero))
  expect(yield* health).toEqual([
    { name: "listener", ready: false, reason: expect.stringContaining(`127.0.0.1:${taken.port}: the port is taken`) }
  ])
})

clockTest(
  "at a reload, which everybody waits for, a body that does not arrive is waited for two seconds",
  function* () {
    const begun = yield* Deferred.make<void>()
    const kept: KeptListener = { isReloading: false }
    const former = yield* Scope.make()
    const respond: Respond = (...request) => Effect.zipRight(Deferred.succeed(begun, undefined), tell(...request))
    const address = yield* Scope.extend(serveHttp(respond, anyPort, {}, kept), former)
    const slow = yield* saying(dial(address), "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\na")
    yield* Deferred.await(begun)
    kept.isReloading = true
    const ending = yield* Effect.fork(Scope.close(former, Exit.void))
    yield* TestClock.adjust("1900 millis")
    expect(yield* Fiber.poll(ending)).toEqual(Option.none())
    yield* TestClock.adjust("1 second")
    yield* slow.received(/^HTTP\/1.1 503 /)
    yield* Fiber.join(ending)
    const next = yield* Scope.make()
    yield* Scope.extend(kept.open?.(tell) ?? Effect.void, next)
    yield* answered(dial(address), get("/"), empty)
    const closing = yield* Effect.fork(Scope.close(next, Exit.void))
    yield* TestClock.adjust("20 seconds")
    yield* Fiber.join(closing)
  }
)

clockTest("a stream that would begin at a reload is not begun: its client is told to ask again", function* () {
  const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const kept: KeptListener = { isReloading: false }
  const former = yield* Scope.make()
  const respond: Respond = () =>
    Deferred.succeed(begun, undefined).pipe(
      Effect.zipRight(Deferred.await(go)),
      Effect.as({ status: 200, headers: {}, text: "", rest: Stream.never })
    )
  const address = yield* Scope.extend(serveHttp(respond, anyPort, {}, kept), former)
  const client = yield* saying(dial(address), get("/"))
  yield* Deferred.await(begun)
  kept.isReloading = true
  const ending = yield* Effect.fork(Scope.close(former, Exit.void))
  yield* TestClock.adjust("1 second")
  yield* Deferred.succeed(go, undefined)
  expect(statuses(yield* client.received(/^HTTP\/1.1 \d+ /))).toEqual([503])
  yield* Fiber.join(ending)
})
