import { writeFileSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { join } from "node:path"
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Chunk, Clock, DateTime, Deferred, Effect, Fiber, Option, TestClock } from "effect"
import { eventLoopTurn } from "../../../src/lib/waiting.ts"
import { clientWith } from "../../lib/deliveryClient.ts"
import { listenHere } from "../../lib/loopback.ts"
import { needs } from "../../lib/needs.ts"
import { start } from "../../lib/processes.ts"
import { type Answer, against, authority, head, identity, says, startRawReceiver } from "../../lib/rawReceiver.ts"
import { clockTest, liveTest } from "../../lib/scopedTest.ts"
import { temporaryFolder } from "../../lib/store.ts"

/** A TCP server with a handler of each connection, and a client that may call it. */
const againstTcp = (accept: (socket: Socket) => void) =>
  Effect.gen(function* () {
    const dialled = yield* Deferred.make<void>()
    const left = yield* Deferred.make<void>()
    const server = createServer((socket) => {
      socket.on("error", () => undefined)
      // Only a reader notices the end.
      socket.resume().once("close", () => Deferred.unsafeDone(left, Effect.void))
      Deferred.unsafeDone(dialled, Effect.void)
      accept(socket)
    })
    const { port } = yield* listenHere(server)
    const client = yield* clientWith("")
    const url = `https://127.0.0.1:${port}/`
    const post = client.post({ url, headers: {}, body: Buffer.from("{}") })
    return { post, dialled: Deferred.await(dialled), left: Deferred.await(left) }
  })

it.scopedLive.each<[string, (socket: Socket) => void, string]>([
  ["plain HTTP", (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), "tls"],
  ["another protocol", (socket) => socket.write("220 mail.example ESMTP\r\n"), "tls"],
  ["an end", (socket) => socket.end(), "connection reset"],
  ["a reset", (socket) => socket.once("data", () => socket.resetAndDestroy()), "connection reset"],
  ["an alert", (socket) => socket.end(Buffer.from("15030300020228", "hex")), "tls"]
])("in place of a handshake %s", ([, accept, error]) =>
  Effect.gen(function* () {
    const { post } = yield* againstTcp(accept)
    expect(yield* post).toMatchObject({ error })
  })
)

const { default: selfsigned } = await import("selfsigned")
const rsa = await selfsigned.generate([{ name: "commonName", value: "127.0.0.1" }])
const ofRsa: TlsOptions = { key: rsa.private, cert: rsa.cert, maxVersion: "TLSv1.2" }

it.scopedLive.each<[string, TlsOptions]>([
  ["TLS 1.1 at most", { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" }],
  ["HTTP/2 only", { ALPNProtocols: ["h2"] }],
  ["certificates of clients", { requestCert: true, rejectUnauthorized: true, maxVersion: "TLSv1.2" }],
  ["key exchanges over finite fields", { ecdhCurve: "ffdhe2048" }],
  ["the same of TLS 1.2", { ...ofRsa, ciphers: "DHE-RSA-AES128-GCM-SHA256", dhparam: "auto" }]
])("a receiver that knows %s gets nothing", ([, options]) =>
  Effect.gen(function* () {
    const { connections, post } = yield* against(says(head(204)), options)
    expect(yield* post).toMatchObject({ error: "tls" })
    expect(connections()).toBe(0)
  })
)

liveTest("a receiver cannot begin the handshake again and again", function* () {
  const begins: Answer = ({ socket }) => void socket.renegotiate({}, (error) => socket.end(head(error ? 500 : 204)))
  const { post } = yield* against(begins, { maxVersion: "TLSv1.2" })
  expect(yield* post).toMatchObject({ error: "invalid response" })
})

liveTest("a connection is closed whose request was answered before it was read", function* () {
  const arrived = yield* Deferred.make<TLSSocket>()
  const { certificate: cert, key } = identity
  const server = createTlsServer({ key, cert }, (socket) => {
    socket.on("error", () => undefined).write(head(200, "content-length: 0"))
    Deferred.unsafeDone(arrived, Effect.succeed(socket))
  })
  const { port } = yield* listenHere(server)
  const caFile = join(yield* temporaryFolder, "ca.pem")
  writeFileSync(caFile, authority.certificate)
  const client = yield* clientWith(caFile)
  const body = Buffer.alloc(32 * 1024 * 1024)
  expect(yield* client.post({ url: `https://127.0.0.1:${port}/`, headers: {}, body })).toMatchObject({ status: 200 })
  const socket = yield* Deferred.await(arrived)
  yield* Effect.async<void>((resume) => {
    const end = () => resume(Effect.void)
    // Of the whole body, the connection goes on.
    socket.on("data", () => void (socket.bytesRead > body.length && end())).once("close", end)
  })
  expect(socket.bytesRead).toBeLessThan(body.length)
})

/** Python's TLS sends as many session tickets as it is told. */
const pouring = `
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
context.num_tickets = 1000
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection = context.wrap_socket(listener.accept()[0], server_side=True)
connection.recv(1000)
connection.sendall(b"HTTP/1.1 204 Said\\r\\n\\r\\n")
connection.recv(1000)`

describe("a receiver that pours session tickets", () => {
  needs("python3")
  liveTest("is cut off", function* () {
    const folder = yield* temporaryFolder
    const [pem, caFile] = [join(folder, "identity.pem"), join(folder, "ca.pem")]
    writeFileSync(caFile, authority.certificate)
    writeFileSync(pem, `${identity.key}\n${identity.certificate}`)
    const python = yield* start("python3", ["-c", pouring, pem])
    const port = yield* python.line(/^\d+$/)
    const client = yield* clientWith(caFile)
    const post = client.post({ url: `https://127.0.0.1:${port}/`, headers: {}, body: Buffer.from("{}") })
    expect(yield* post).toMatchObject({ error: "invalid response" })
  })
})

it.scopedLive.each<[string, { past: boolean; ofOurs: boolean; error: string }]>([
  ["that has expired", { past: true, ofOurs: true, error: "tls: certificate has expired" }],
  ["that nobody has signed but itself", { past: false, ofOurs: false, error: "tls: certificate is self-signed" }]
])("a certificate %s is not a receiver's, and is named", ([, { error, ofOurs, past }]) =>
  Effect.gen(function* () {
    const now = yield* DateTime.now
    const made = yield* Effect.promise(() =>
      selfsigned.generate([{ name: "commonName", value: "127.0.0.1" }], {
        keyType: "ec",
        curve: "P-256",
        algorithm: "sha256",
        notBeforeDate: DateTime.toDate(DateTime.subtract(now, { days: 10 })),
        notAfterDate: DateTime.toDate(past ? DateTime.subtract(now, { days: 1 }) : DateTime.add(now, { days: 1 })),
        extensions: [
          { name: "basicConstraints", cA: ofOurs, critical: true },
          { name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }
        ]
      })
    )
    const certified = { key: made.private, certificate: made.cert }
    const { connections, port } = yield* startRawReceiver(certified, says(head(204)))
    const caFile = join(yield* temporaryFolder, "ca.pem")
    writeFileSync(caFile, made.cert)
    const client = yield* clientWith(ofOurs ? caFile : "")
    const url = `https://127.0.0.1:${port}/`
    expect(yield* client.post({ url, headers: {}, body: Buffer.from("{}") })).toMatchObject({ error })
    expect(connections()).toBe(0)
  })
)

clockTest("an attempt that is interrupted in its handshake leaves no connection", function* () {
  const { dialled, left, post } = yield* againstTcp(() => undefined)
  const fiber = yield* Effect.fork(post)
  yield* dialled
  yield* Fiber.interrupt(fiber)
  yield* left
})

clockTest("headers that drip are cut off after 30 seconds, however much has arrived", function* () {
  const { post, take } = yield* against(says("HTTP/1.1 200 OK\r\n"))
  const fiber = yield* Effect.fork(post)
  const { socket } = yield* take
  for (let second = 1; second < 30; second++) {
    yield* TestClock.adjust("1 second")
    socket.write(`x-drip: ${second}\r\n`)
  }
  yield* TestClock.adjust(999)
  expect(yield* Fiber.poll(fiber)).toEqual(Option.none())
  yield* TestClock.adjust(1)
  expect(yield* Fiber.join(fiber)).toMatchObject({ error: "timeout" })
})

clockTest("no status in 30 seconds is too late over kept connections, too, for each by its own time", function* () {
  const { connections, post, take } = yield* against(() => undefined)
  const kept = (count: number) =>
    Effect.gen(function* () {
      const posts = yield* Effect.fork(Effect.replicateEffect(post, count, { concurrency: count }))
      for (let i = 0; i < count; i++) (yield* take).socket.write(head(204))
      yield* Fiber.join(posts)
    })
  const hanging = Effect.tap(Effect.fork(post), () => take)
  const isOver = (fiber: Fiber.Fiber<unknown>) =>
    Effect.zipRight(eventLoopTurn, Effect.map(Fiber.poll(fiber), Option.isSome))
  yield* kept(2)
  const first = yield* hanging
  yield* TestClock.adjust("10 seconds")
  const second = yield* hanging
  yield* TestClock.adjust(19_999)
  expect(yield* isOver(first)).toBe(false)
  yield* TestClock.adjust(1)
  expect(yield* Fiber.join(first)).toMatchObject({ error: "timeout" })
  yield* TestClock.adjust(9_999)
  expect(yield* isOver(second)).toBe(false)
  yield* TestClock.adjust(1)
  expect(yield* Fiber.join(second)).toMatchObject({ error: "timeout" })
  expect(connections()).toBe(2)
  // None waits now; and one that has had its status is left alone.
  yield* kept(1)
  const third = yield* hanging
  yield* TestClock.adjust("30 seconds")
  expect(yield* Fiber.join(third)).toMatchObject({ error: "timeout" })
  expect(connections()).toBe(3)
})

/** A request over a connection that is kept, and the receiver's side of it. */
const overKept = Effect.gen(function* () {
  const { post, take } = yield* against(() => undefined)
  const first = yield* Effect.fork(post)
  const { socket } = yield* take
  socket.write(head(204))
  yield* Fiber.join(first)
  const fiber = yield* Effect.fork(post)
  return { fiber, take, request: yield* take }
})

clockTest("a status over a kept connection leaves the body its time, beyond the 30 seconds", function* () {
  const { fiber, request } = yield* overKept
  yield* TestClock.adjust("28 seconds")
  request.socket.write(`${head(500, "content-length: 4")}no`)
  const waits = Effect.zipRight(eventLoopTurn, TestClock.sleeps())
  yield* Effect.repeat(waits, { until: Chunk.contains(33_000) })
  yield* TestClock.adjust("3 seconds")
  request.socket.write("pe")
  expect(yield* Fiber.join(fiber)).toMatchObject({ status: 500, bodyStart: "nope" })
})

clockTest("what is sent again, since its kept connection was closed, has no new 30 seconds", function* () {
  const { fiber, request, take } = yield* overKept
  yield* TestClock.adjust("20 seconds")
  request.reset()
  yield* take
  yield* TestClock.adjust("10 seconds")
  yield* eventLoopTurn
  expect(yield* Fiber.poll(fiber)).not.toEqual(Option.none())
  expect(yield* Fiber.join(fiber)).toMatchObject({ error: "timeout" })
})

clockTest("a body that goes on dripping is dropped after 5 seconds; its status stands", function* () {
  const { post, take } = yield* against(says(head(202), "d"))
  const fiber = yield* Effect.fork(post)
  const { socket } = yield* take
  const drip = Effect.zipRight(
    TestClock.adjust("1 second"),
    Effect.sync(() => socket.write("d"))
  )
  // When the head arrives is the socket's secret: the clock moves on until the body's time is over.
  const outcome = yield* Effect.raceFirst(Fiber.join(fiber), Effect.forever(drip))
  expect(outcome).toMatchObject({ status: 202, bodyStart: expect.stringMatching(/^d*$/) })
  expect(yield* Clock.currentTimeMillis).toBeLessThan(30_000)
})
