import type { Socket } from "node:net"
import { getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { serveHttp } from "../../src/Http/listener.ts"
import type { Respond } from "../../src/Http/respond.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"
import { acceptedSockets, dial } from "../lib/socket.ts"
import { answered, anyPort, connected, empty, get, lastError, saying, statuses, tell, untilClosed } from "./serving.ts"

/** Collects garbage; then bytes of the heap and of what it refers to. */
const memory = () => {
  setFlagsFromString("--expose-gc")
  const collect: () => void = runInNewContext("gc")
  // The memory of buffers is given back after a collection, and at the latest by the next one.
  collect()
  collect()
  const { external_memory, used_heap_size } = getHeapStatistics()
  return external_memory + used_heap_size
}

const post = (rest: string) => `POST / HTTP/1.1\r\nhost: x\r\n${rest}\r\n\r\n`
const inChunks = post("transfer-encoding: chunked")
const chunks = (count: number) => "1\r\nx\r\n".repeat(count)

const clients = 50

const behindProxy = testApp({ server: { ...testSettings("").server, trustedProxies: ["127.0.0.1/32"] } })

/** Refuses without asking for the body, at once or after a time that does not end. */
const refusing =
  (wait: Effect.Effect<void>): Respond =>
  (_request, _body, _id, hold = (wait) => wait) =>
    Effect.as(hold(wait), { status: 401, headers: {}, text: "{}" })

/** What a server keeps of bodies that have arrived but for their ends, in bytes of each. */
const keptOf = (respond: Respond, said: string) =>
  Effect.gen(function* () {
    const read: Array<Socket> = []
    const noting: Respond = (request, body, id, hold) => {
      read.push(request.socket)
      return respond(request, body, id, hold)
    }
    const address = yield* serveHttp(noting, anyPort, { drainTimeout: 10 })
    const before = memory()
    for (let i = 0; i < clients; i++) (yield* dial(address)).write(said)
    const isRead = () => read.length === clients && read.every(({ bytesRead }) => bytesRead >= said.length)
    yield* Effect.repeat(eventLoopTurn, { until: isRead })
    return (memory() - before) / clients
  })

describe("a body that does not end", () => {
  liveTest("takes memory by its bytes, in however many pieces it comes", function* () {
    const wanting: Respond = (_, body) => Effect.zipRight(body, Effect.never)
    expect(yield* keptOf(wanting, inChunks + chunks(500))).toBeLessThan(32 * 1024)
  })

  liveTest("is not kept where it is not asked for", function* () {
    const said = `${post("content-length: 65536")}${"x".repeat(65_000)}`
    expect(yield* keptOf(refusing(Effect.never), said)).toBeLessThan(32 * 1024)
  })

  liveTest("in hundreds of small pieces is refused, whether it is asked for, delayed or answered", function* () {
    for (const respond of [tell, refusing(Effect.never)]) {
      const text = yield* untilClosed(connected(respond), inChunks + chunks(1_000))
      expect(text).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/)
      expect(lastError(text)).toMatchObject({ code: "BAD_REQUEST", message: expect.stringContaining("small pieces") })
    }
    const answered = yield* connected(() => Effect.succeed({ status: 401, headers: {}, text: "{}" }))
    answered.write(inChunks)
    yield* answered.received(/401[\s\S]*\{\}$/)
    answered.write(chunks(1_000))
    expect(yield* answered.closed).toMatch(/^HTTP\/1.1 401 [\s\S]*\{\}$/)
  })

  liveTest("is not parsed further once it is refused, and read as far as an honest client sends", function* () {
    let pieces = 0
    let read = () => 0
    const client = yield* connected((request, body, id) => {
      read = () => request.socket.bytesRead
      const push = request.push.bind(request)
      request.push = (piece, encoding) => {
        pieces += 1
        return push(piece, encoding)
      }
      return tell(request, body, id)
    })
    client.write(inChunks + chunks(500_000))
    expect(yield* client.closed).toMatch(/^HTTP\/1.1 400 /)
    // A slice of 1 KiB has 170 more.
    expect(pieces).toBeGreaterThan(512)
    expect(pieces).toBeLessThan(700)
    expect(read()).toBeLessThan(512 * 1024)
  })

  const megabytes = 4 * 1024 * 1024
  const endless = (begin: string, unit: string) => begin + unit.repeat(megabytes / unit.length)
  const tooLarge = /^HTTP\/1.1 200 [^{]*\{"body":"too large"\}$/
  const refused = /^HTTP\/1.1 431 /

  const kinds = [
    ["a body that is too large by its length", endless(post(`content-length: ${2 * megabytes}`), "x"), tooLarge],
    ["chunks of a good size", endless(inChunks, `80\r\n${"x".repeat(128)}\r\n`), /^HTTP\/1.1 413 /],
    ["zeros before the length of a chunk", endless(inChunks, "0"), refused],
    ["an extension of a chunk", endless(`${inChunks}1;`, "x"), /^HTTP\/1.1 413 /],
    ["trailers", endless(`${inChunks}0\r\n`, "a:\r\n"), refused],
    ["headers", endless("GET / HTTP/1.1\r\nhost: x\r\n", "a:\r\n"), refused],
    ["blank lines before a request", endless("", "\r\n"), refused],
    ["blank lines after a reply", endless(get("/"), "\r\n"), /^HTTP\/1.1 200 [^{]*\{"body":""\}(HTTP\/1.1 431 .*)?$/s]
  ] as const

  liveTest("of any kind is read no further than it may be used", function* () {
    const sockets = yield* acceptedSockets
    // Each at a server of its own, all at once: a server goes on reading for a second.
    const sendAll = Effect.forEach(kinds, ([, said]) => untilClosed(connected(tell), said), {
      concurrency: "unbounded"
    })
    for (const [n, text] of (yield* sendAll).entries()) expect(text, kinds[n]?.[0]).toMatch(kinds[n]?.[2] ?? "")
    expect(sockets.map(({ bytesRead }) => bytesRead < 512 * 1024)).toEqual(kinds.map(() => true))
  })

  liveTest("leaves nothing behind at a connection that stays open", function* () {
    const address = yield* serveHttp(tell, anyPort)
    const send = Effect.gen(function* () {
      yield* answered(dial(address), `${inChunks}0\r\n${"a:\r\n".repeat(4_000)}\r\n`, empty)
    })
    // The memory of a process's first connections is not counted.
    yield* Effect.repeatN(send, clients - 1)
    const before = memory()
    yield* Effect.repeatN(send, clients - 1)
    expect((memory() - before) / clients).toBeLessThan(20 * 1024)
  })

  liveTest("counts together with others that have no reply", function* () {
    let asked = 0
    const client = yield* connected((request, body, id) => {
      asked += 1
      return tell(request, body, id)
    })
    client.write(`${inChunks}${chunks(100)}0\r\n\r\n`.repeat(20))
    const text = yield* client.closed
    expect(asked).toBe(6)
    expect(lastError(text)).toMatchObject({ code: "BAD_REQUEST", message: expect.stringContaining("small pieces") })
  })

  liveTest("is refused where there is no room for it, and accepted when the others have gone", function* () {
    const address = yield* serveHttp(tell, anyPort, { bodies: 8 * 1024 })
    const half = `${post("content-length: 1000")}${"x".repeat(500)}`
    const other = yield* saying(dial(address), half)
    yield* answered(dial(address), get("/"), empty)
    const text = yield* untilClosed(dial(address), half)
    expect(text).toMatch(/^HTTP\/1.1 503 [\s\S]*retry-after: 1\r\n/)
    expect(lastError(text)).toMatchObject({ code: "TOO_MANY_CONNECTIONS" })
    other.write("x".repeat(500))
    yield* other.received(/"\}$/)
    other.write(`${half}${"x".repeat(500)}`)
    yield* other.received(/"\}HTTP[\s\S]*"\}$/)
  })

  liveTest("gives back all the room that it took, piece by piece", function* () {
    const address = yield* serveHttp(tell, anyPort, { bodies: 40 * 1024 })
    for (let i = 0; i < 5; i++) {
      const client = yield* saying(
        dial(address),
        `${inChunks}3e8\r\n${"x".repeat(1000)}\r\n64\r\n${"x".repeat(100)}\r\n0\r\n\r\n`
      )
      expect(statuses(yield* client.received(/\}$/))).toEqual([200])
    }
  })

  it.scopedLive.each([
    [16, 503],
    [20, 200]
  ] as const)("takes room for the memory that it has, which doubles: of %d KiB: %d", ([room, status]) =>
    Effect.gen(function* () {
      const client = yield* connected(tell, { bodies: room * 1024 })
      client.write(`${inChunks}3e8\r\n${"x".repeat(1000)}\r\n64\r\n${"x".repeat(100)}\r\n0\r\n\r\n`)
      expect(yield* client.received(/\}$/)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    })
  )
})

liveTest("a client that ends its side after a refused request gets the refusal", function* () {
  const address = yield* serveHttp(tell, anyPort)
  const client = yield* dial(address)
  client.write("EHLO localhost\r\n")
  client.end()
  yield* client.received(/^HTTP\/1.1 400 /)
})

clockTest("a refused connection buffers nothing of what it goes on to send", function* () {
  const sockets = yield* acceptedSockets
  const address = yield* serveHttp(tell, anyPort)
  const before = memory()
  const said = inChunks + chunks(35_000)
  for (let i = 0; i < clients; i++) (yield* dial(address)).write(said)
  // Until each has had a second to read its refusal, of which none passes here.
  const isRead = () => sockets.length === clients && sockets.every(({ bytesRead }) => bytesRead >= 128 * 1024)
  yield* Effect.repeat(eventLoopTurn, { until: isRead })
  yield* Effect.repeatN(eventLoopTurn, 100)
  expect(sockets.every(({ bytesRead }) => bytesRead < 384 * 1024)).toBe(true)
  // Both ends of a connection are here.
  expect((memory() - before) / clients).toBeLessThan(64 * 1024)
  yield* TestClock.adjust("10 seconds")
})

describe("bodies that come through a proxy", () => {
  it.scopedLive("count for the clients behind it", () =>
    Effect.gen(function* () {
      const { host, port } = yield* TestApi
      const form = (client: string) =>
        `POST /portal/sign-in HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${client}\r\ncontent-length: 60000\r\n\r\n${"x".repeat(50_000)}`
      const stranger = Array.from({ length: 80 }, () => form("203.0.113.9"))
      const connections = yield* Effect.forEach(stranger, (said) =>
        Effect.tap(dial({ host, port }), (connection) => Effect.sync(() => connection.write(said)))
      )
      yield* Effect.raceAll(connections.map(({ received }) => received(/^HTTP\/1.1 503 [\s\S]*TOO_MANY_CONNECTIONS/)))
      yield* answered(dial({ host, port }), `${form("203.0.113.10")}${"x".repeat(10_000)}`, /^HTTP\/1.1 4(?!29)\d\d /)
      // The connections end first: a shutdown waits for what they have begun to say.
    }).pipe(Effect.scoped, Effect.provide(behindProxy))
  )
})

describe("a request", () => {
  liveTest("is refused before its body arrives, and the connection goes on once it is through", function* () {
    const client = yield* connected((request, body, id) =>
      request.method === "POST" ? Effect.succeed({ status: 403, headers: {}, text: "{}" }) : tell(request, body, id)
    )
    client.write(post("content-length: 3"))
    yield* client.received(/403 [\s\S]*\{\}$/)
    client.write(`abc${get("/")}`)
    yield* client.received(empty)
  })

  it.scopedLive.each([101, 1_100])("with %d headers is refused, whatever would be hidden behind them", (count) =>
    Effect.gen(function* () {
      const client = yield* saying(connected(tell), `GET / HTTP/1.1\r\nhost: x\r\n${"x-b: \r\n".repeat(count - 1)}\r\n`)
      const text = yield* client.closed
      expect(text).toMatch(/^HTTP\/1.1 431 /)
      expect(lastError(text)).toMatchObject({ code: "HEADERS_TOO_LARGE" })
    })
  )

  it.scopedLive.each(["HTTP/0.9", "HTTP/2.0", "HTTP/1.2"])("of version %s is refused", (version) =>
    Effect.gen(function* () {
      const text = yield* untilClosed(connected(tell), `GET / ${version}\r\nhost: x\r\n\r\n`)
      expect(text).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/)
      expect(lastError(text)).toMatchObject({ code: "BAD_REQUEST" })
    })
  )
})
