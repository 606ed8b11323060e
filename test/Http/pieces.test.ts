import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger, Stream, TestClock } from "effect"
import { serveHttp } from "../../src/Http/listener.ts"
import type { Respond } from "../../src/Http/respond.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { clockTest, liveTest, scopedTest } from "../lib/scopedTest.ts"
import { acceptedSockets, dial } from "../lib/socket.ts"
import { answered, anyPort, connected, get, saying, statuses } from "./serving.ts"

const piece = "x".repeat(64 * 1024)
/** Far more bytes than the socket buffers hold. */
const tooMany = 1_000

/** /stream returns a long response in pieces that never ends; other paths a short one. */
const streaming = (pieces: number) =>
  Effect.gen(function* () {
    const all = yield* Deferred.make<void>()
    const ended = yield* Deferred.make<void>()
    let made = 0
    const rest = Stream.repeatEffect(Effect.sync(() => ++made)).pipe(
      Stream.take(pieces),
      Stream.map(() => piece),
      Stream.concat(Stream.drain(Stream.fromEffect(Deferred.succeed(all, undefined)))),
      Stream.concat(Stream.never),
      Stream.ensuring(Deferred.succeed(ended, undefined))
    )
    const respond: Respond = ({ url }) =>
      Effect.succeed({ status: 200, headers: {}, ...(url === "/stream" ? { text: "", rest } : { text: "short" }) })
    return { respond, all: Deferred.await(all), ended, made: () => made }
  })

describe("a streamed response", () => {
  liveTest("waits for a client that does not read, delays no other client, and ends with its connection", function* () {
    const { ended, made, respond } = yield* streaming(tooMany)
    const address = yield* serveHttp(respond, anyPort, { answerTimeout: 300 })
    const slow = yield* answered(dial(address), get("/stream"), /200 OK/)
    slow.pause()
    const other = yield* dial(address)
    for (let i = 1; i <= 3; i++) {
      other.write(get("/"))
      yield* other.received(new RegExp(`(HTTP/1.1 200[\\s\\S]*short){${i}}`))
    }
    // Dropped without a write.
    yield* Deferred.await(ended)
    expect(made()).toBeLessThan(tooMany / 2)
  })

  clockTest(
    "drops a client that has not read a whole piece for 30 seconds, even if it reads parts of it",
    function* () {
      const { ended, made, respond } = yield* streaming(tooMany)
      const slow = yield* answered(connected(respond), get("/stream"), /200 OK/)
      slow.pause()
      yield* TestClock.adjust("29 seconds")
      expect(yield* Deferred.isDone(ended)).toBe(false)
      // The socket buffers may take some more bytes before they are full.
      while (!(yield* Deferred.isDone(ended))) yield* Effect.zipRight(eventLoopTurn, TestClock.adjust("30 seconds"))
      expect(made()).toBeLessThan(tooMany / 2)
    }
  )

  liveTest("arrives whole at a client that reads, with other work between its pieces, and ends with it", function* () {
    const { all, ended, made, respond } = yield* streaming(200)
    let turns = 0
    const count = () => {
      turns += 1
      next = setImmediate(count)
    }
    let next = setImmediate(count)
    yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(next)))
    const client = yield* connected(respond)
    turns = 0
    client.write(get("/stream"))
    yield* all
    expect(made()).toBe(200)
    expect(turns).toBeGreaterThanOrEqual(200)
    client.destroy()
    yield* Deferred.await(ended)
  })

  liveTest("has only headers for HEAD, and the connection stays open", function* () {
    const { made, respond } = yield* streaming(50)
    const client = yield* saying(connected(respond), get("/stream", "HEAD"))
    client.write(get("/"))
    yield* client.received(/^HTTP\/1.1 200 OK[\s\S]*\r\n\r\nHTTP\/1.1 200 OK[\s\S]*short$/)
    expect(made()).toBe(0)
  })

  liveTest("ends with its connection also if it is queued behind an unfinished response", function* () {
    let open = 0
    const begun = yield* Deferred.make<void>()
    const ended = yield* Deferred.make<void>()
    const respond: Respond = () =>
      Effect.sync(() => {
        open += 1
        if (open === 5) Deferred.unsafeDone(begun, Effect.void)
        const rest = Stream.never.pipe(
          Stream.ensuring(
            Effect.suspend(() => {
              open -= 1
              return open === 0 ? Deferred.succeed(ended, undefined) : Effect.void
            })
          )
        )
        return { status: 200, headers: {}, text: "", rest }
      })
    const client = yield* saying(connected(respond), get("/stream").repeat(5))
    yield* Deferred.await(begun)
    client.destroy()
    yield* Deferred.await(ended)
  })
})

clockTest(
  "a response that its client has not read whole after 30 seconds is dropped, even if it has read a part",
  function* () {
    const text = "x".repeat(64 * 1024 * 1024)
    const respond: Respond = () => Effect.succeed({ status: 200, headers: {}, text })
    const slow = yield* answered(connected(respond, { unread: 8 * text.length }), get("/"), /200 OK/)
    slow.pause()
    const closed = yield* Effect.fork(slow.closed)
    yield* TestClock.adjust("30 seconds")
    slow.resume()
    expect((yield* Fiber.join(closed)).length).toBeLessThan(text.length)
  }
)

clockTest("a client that has read a response gets the next one on the same connection", function* () {
  const text = `${"x".repeat(16 * 1024 * 1024)}taken`
  const respond: Respond = () => Effect.succeed({ status: 200, headers: {}, text })
  const client = yield* answered(connected(respond, { unread: 8 * 17 * 1024 * 1024 }), get("/"), /taken$/)
  client.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
  expect((yield* client.closed).length).toBeGreaterThan(2 * text.length)
})

clockTest("unread responses of one client are limited in bytes, without effect on other clients", function* () {
  const text = "x".repeat(64 * 1024 * 1024)
  const respond: Respond = ({ url }) =>
    Effect.succeed({ status: 200, headers: {}, text: url === "/long" ? text : "short" })
  // Room for two of one client.
  const address = yield* serveHttp(respond, anyPort, { unread: 20 * text.length })
  for (let i = 0; i < 2; i++) {
    const client = yield* answered(dial(address), get("/long"), /200 OK/)
    client.pause()
  }
  const third = yield* saying(dial(address), get("/long"))
  expect((yield* third.closed).length).toBeLessThan(text.length)
  yield* answered(dial(address), get("/"), /short/)
})

liveTest("replies that wait behind another one take room until their connection closes, and no longer", function* () {
  const go = yield* Deferred.make<void>()
  const answer = { status: 200, headers: {}, text: `${"x".repeat(8 * 1024)}end` }
  const respond: Respond = ({ url }) => Effect.as(url === "/wait" ? Deferred.await(go) : Effect.void, answer)
  // Room for one, of one client.
  const address = yield* serveHttp(respond, anyPort, { unread: 10 * 9 * 1024 })
  const both = saying(dial(address), get("/wait") + get("/"))
  const sockets = yield* acceptedSockets
  for (let i = 1; i < 5; i++) {
    const client = yield* both
    yield* Effect.repeat(eventLoopTurn, { until: () => (sockets[i - 1]?.bytesRead ?? 0) > 0 })
    yield* Effect.repeatN(eventLoopTurn, 20)
    client.destroy()
    yield* Effect.repeat(eventLoopTurn, { until: () => sockets.every(({ closed }) => closed) })
  }
  const last = yield* both
  yield* Effect.repeat(eventLoopTurn, { until: () => (sockets[4]?.bytesRead ?? 0) > 0 })
  yield* Effect.repeatN(eventLoopTurn, 20)
  yield* Deferred.succeed(go, undefined)
  expect(statuses(yield* last.received(/end[\s\S]*end$/))).toEqual([200, 200])
})

scopedTest(Logger.remove(Logger.defaultLogger))(
  "a streamed file that breaks off is cut off, so that a part cannot pass for the whole; an event stream ends",
  function* () {
    const rest = Stream.concat(Stream.make("first half,"), Stream.die("the store is gone"))
    const bodyOf = (type: string) =>
      Effect.gen(function* () {
        const headers = { "content-type": type, connection: "close" }
        const client = yield* connected(() => Effect.succeed({ status: 200, headers, text: "", rest }))
        client.write(get("/"))
        return yield* client.closed
      })
    // The last chunk of a whole body has the length zero.
    const whole = /first half,\r\n0\r\n\r\n$/
    expect(yield* bodyOf("text/csv")).toMatch(/first half,(\r\n)?$/)
    expect(yield* bodyOf("text/event-stream")).toMatch(whole)
  }
)
