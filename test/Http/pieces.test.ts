import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream, TestClock } from "effect"
import { serveHttp } from "../../src/Http/listener.ts"
import type { Respond } from "../../src/Http/respond.ts"
import { eventLoopTurn } from "../../src/Sql/eventLoopTurn.ts"
import { dial } from "../lib/socket.ts"

const anyPort = { host: "127.0.0.1", port: 0 }

const get = (path: string, method = "GET") => `${method} ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

const piece = "x".repeat(64 * 1024)
/** Far more than the sockets between two of them hold. */
const tooMany = 1_000

/** At /stream, a long answer in pieces, then nothing for ever; elsewhere a short one. */
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

describe("an answer in pieces", () => {
  it.scopedLive("waits for a client that does not read, holds up no other, and ends with it", () =>
    Effect.gen(function* () {
      const { ended, made, respond } = yield* streaming(tooMany)
      const address = yield* serveHttp(respond, anyPort, { answerTimeout: 300 })
      const slow = yield* dial(address)
      slow.write(get("/stream"))
      yield* slow.received(/200 OK/)
      slow.pause()
      const other = yield* dial(address)
      for (let i = 1; i <= 3; i++) {
        other.write(get("/"))
        yield* other.received(new RegExp(`(HTTP/1.1 200[\\s\\S]*short){${i}}`))
      }
      // Dropped, since nothing goes to it any more.
      yield* Deferred.await(ended)
      expect(made()).toBeLessThan(tooMany / 2)
    })
  )

  it.scoped("drops a client that has not taken a piece for 30 seconds, whatever it takes of it meanwhile", () =>
    Effect.gen(function* () {
      const { ended, made, respond } = yield* streaming(tooMany)
      const slow = yield* dial(yield* serveHttp(respond, anyPort))
      slow.write(get("/stream"))
      yield* slow.received(/200 OK/)
      slow.pause()
      yield* TestClock.adjust("29 seconds")
      expect(yield* Deferred.isDone(ended)).toBe(false)
      // The sockets between the two may take some more before they are full, in their own time.
      while (!(yield* Deferred.isDone(ended))) yield* Effect.zipRight(eventLoopTurn, TestClock.adjust("30 seconds"))
      expect(made()).toBeLessThan(tooMany / 2)
    })
  )

  it.scopedLive("comes whole to a client that reads, and ends with its connection", () =>
    Effect.gen(function* () {
      const { all, ended, made, respond } = yield* streaming(50)
      const client = yield* dial(yield* serveHttp(respond, anyPort))
      client.write(get("/stream"))
      yield* client.received(/200 OK/)
      yield* all
      expect(made()).toBe(50)
      client.destroy()
      yield* Deferred.await(ended)
    })
  )

  it.scopedLive("gives others their turn between its pieces, also to a client that takes all at once", () =>
    Effect.gen(function* () {
      const { all, respond } = yield* streaming(200)
      let turns = 0
      const count = () => {
        turns += 1
        next = setImmediate(count)
      }
      let next = setImmediate(count)
      yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(next)))
      const client = yield* dial(yield* serveHttp(respond, anyPort))
      turns = 0
      client.write(get("/stream"))
      yield* all
      expect(turns).toBeGreaterThanOrEqual(200)
    })
  )

  it.scopedLive("is only announced to HEAD, and the connection lives on", () =>
    Effect.gen(function* () {
      const { made, respond } = yield* streaming(50)
      const client = yield* dial(yield* serveHttp(respond, anyPort))
      client.write(get("/stream", "HEAD"))
      client.write(get("/"))
      yield* client.received(/^HTTP\/1.1 200 OK[\s\S]*\r\n\r\nHTTP\/1.1 200 OK[\s\S]*short$/)
      expect(made()).toBe(0)
    })
  )

  it.scopedLive("ends with its connection also behind another one on it, which has not ended", () =>
    Effect.gen(function* () {
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
      const client = yield* dial(yield* serveHttp(respond, anyPort))
      client.write(get("/stream").repeat(5))
      yield* Deferred.await(begun)
      client.destroy()
      yield* Deferred.await(ended)
    })
  )
})

it.scoped(
  "an answer that its client has not taken whole after 30 seconds is given up, whatever it has taken of it",
  () =>
    Effect.gen(function* () {
      const text = "x".repeat(64 * 1024 * 1024)
      const respond: Respond = () => Effect.succeed({ status: 200, headers: {}, text })
      const slow = yield* dial(yield* serveHttp(respond, anyPort))
      slow.write(get("/"))
      yield* slow.received(/200 OK/)
      slow.pause()
      const closed = yield* Effect.fork(slow.closed)
      yield* TestClock.adjust("30 seconds")
      slow.resume()
      expect((yield* Fiber.join(closed)).length).toBeLessThan(text.length)
    })
)

it.scoped(
  "an answer that its client has taken is unread no more: it is given the next one on the same connection",
  () =>
    Effect.gen(function* () {
      const text = `${"x".repeat(16 * 1024 * 1024)}taken`
      const respond: Respond = () => Effect.succeed({ status: 200, headers: {}, text })
      const client = yield* dial(yield* serveHttp(respond, anyPort, { unreadPerClient: 0 }))
      client.write(get("/"))
      yield* client.received(/taken$/)
      client.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
      expect((yield* client.closed).length).toBeGreaterThan(2 * text.length)
    })
)

it.scoped("answers that one client leaves unread are bounded in bytes, and cost no other client anything", () =>
  Effect.gen(function* () {
    const text = "x".repeat(64 * 1024 * 1024)
    const respond: Respond = ({ url }) =>
      Effect.succeed({ status: 200, headers: {}, text: url === "/long" ? text : "short" })
    const address = yield* serveHttp(respond, anyPort)
    const unread = yield* Effect.replicateEffect(dial(address), 2)
    for (const client of unread) {
      client.write(get("/long"))
      yield* client.received(/200 OK/)
      client.pause()
    }
    const third = yield* dial(address)
    third.write(get("/long"))
    expect((yield* third.closed).length).toBeLessThan(text.length)
    const short = yield* dial(address)
    short.write(get("/"))
    yield* short.received(/short/)
  })
)
