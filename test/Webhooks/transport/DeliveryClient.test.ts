import { writeFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { expect, it, vi } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Stream, TestClock } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import { makeAuthority } from "../../../src/Sandbox/Authority.ts"
import { type Behaviour, endless, type ReceiverOptions, startReceiver } from "../../../src/Sandbox/Receiver.ts"
import { NameNotResolved, Resolver } from "../../../src/Webhooks/transport/Resolver.ts"
import { answering, clientWith } from "../../lib/deliveryClient.ts"
import { temporaryFolder } from "../../lib/store.ts"

/** A receiver on this machine and a client that trusts it and may call 127.0.0.1. */
const receiving = (
  options: Omit<ReceiverOptions, "caFile"> = {},
  resolver: Layer.Layer<Resolver> = answering(["127.0.0.1"]),
  allowTargets: ReadonlyArray<string> = ["127.0.0.1/32"]
) =>
  Effect.gen(function* () {
    const caFile = join(yield* temporaryFolder, "ca.pem")
    const receiver = yield* startReceiver({ ...options, caFile })
    const client = yield* clientWith(caFile, resolver, allowTargets)
    return { receiver, post: (url: string) => client.post({ url, headers: {}, body: Buffer.from("{}") }), client }
  }).pipe(Effect.provide(NodeFileSystem.layer))

it.scopedLive("posts the exact bytes with its own headers and those given", () =>
  Effect.gen(function* () {
    const { receiver, client } = yield* receiving()
    const body = Buffer.from('{"note":"ünïcödé 💶"}\n')
    const outcome = yield* client.post({
      url: `${receiver.url}/hook%20a?b=c#d`,
      headers: { "x-service-signature": "abc", "webhook-id": "evt_1" },
      body
    })
    expect(outcome).toMatchObject({ status: 204, bodyStart: "" })
    const request = yield* receiver.take
    expect(request.method).toBe("POST")
    expect(request.path).toBe("/hook%20a?b=c")
    expect(Buffer.compare(request.body, body)).toBe(0)
    expect(request.headers).toEqual({
      host: new URL(receiver.url).host,
      connection: "keep-alive",
      "content-type": "application/json",
      "content-length": String(body.length),
      "user-agent": `tilld/${packageJson.version}`,
      "accept-encoding": "identity",
      "x-service-signature": "abc",
      "webhook-id": "evt_1"
    })
  })
)

const answers: ReadonlyArray<[string, Behaviour, object]> = [
  ["200 with a body", () => ({ status: 200, body: "thanks" }), { status: 200, bodyStart: "thanks" }],
  ["299", () => 299, { status: 299, bodyStart: "" }],
  [
    "500 with a reason",
    () => ({ status: 500, body: "database is down" }),
    { status: 500, bodyStart: "database is down" }
  ],
  ["a long body, cut", () => ({ status: 400, body: "é".repeat(5_000) }), { status: 400, bodyStart: "é".repeat(512) }],
  [
    "a redirect, which is not followed",
    () => ({ status: 307, headers: { location: "/other" } }),
    { status: 307, bodyStart: "" }
  ],
  ["a connection that is cut", () => "hang up" as const, { error: "connection closed" }],
  [
    "headers without end",
    () => ({ status: 200, headers: { "x-long": "x".repeat(100_000) } }),
    { error: "invalid response" }
  ]
]

it.scopedLive.each(answers)("%s", ([, behaviour, outcome]) =>
  Effect.gen(function* () {
    const { receiver, post } = yield* receiving({ behaviour })
    expect(yield* post(receiver.url)).toMatchObject(outcome)
    expect(yield* receiver.all).toHaveLength(1)
  })
)

// Not a tick of the clock: it is the bytes that end it.
it.scoped("a body without end is delivered, and dropped", () =>
  Effect.gen(function* () {
    const left = yield* Deferred.make<void>()
    const body = Stream.ensuring(endless, Deferred.succeed(left, undefined))
    const { receiver, post } = yield* receiving({ behaviour: () => ({ status: 200, body }) })
    expect(yield* post(receiver.url)).toMatchObject({ status: 200, bodyStart: "\0".repeat(1024) })
    yield* Deferred.await(left)
  })
)

/** A bare HTTPS server that tells connections apart; each answer is the connection's number. */
const bareServer = (refuse: (connection: number, request: number) => boolean = () => false) =>
  Effect.gen(function* () {
    const authority = yield* makeAuthority
    const { key, certificate } = yield* authority.issue(["127.0.0.1"])
    const numbers = new WeakMap<object, { readonly connection: number; requests: number }>()
    let connections = 0
    const server = yield* Effect.acquireRelease(
      Effect.sync(() =>
        createServer({ key, cert: certificate }, (request, response) => {
          const number = numbers.get(request.socket) ?? { connection: ++connections, requests: 0 }
          numbers.set(request.socket, number)
          number.requests++
          if (refuse(number.connection, number.requests)) return request.socket.destroy()
          return request.resume().once("end", () => response.end(String(number.connection)))
        })
      ),
      (running) => Effect.sync(() => running.close().closeAllConnections())
    )
    const port = yield* Effect.async<number>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)))
    })
    const caFile = join(yield* temporaryFolder, "ca.pem")
    writeFileSync(caFile, authority.certificate)
    const client = yield* clientWith(caFile)
    const post = client.post({ url: `https://127.0.0.1:${port}/`, headers: {}, body: Buffer.from("{}") })
    return { post: Effect.map(post, ({ bodyStart, error }) => bodyStart ?? error) }
  })

it.scopedLive("one connection serves many requests; a request at the same time opens another", () =>
  Effect.gen(function* () {
    const { post } = yield* bareServer()
    for (let i = 0; i < 5; i++) expect(yield* post).toBe("1")
    const both = yield* Effect.all([post, post], { concurrency: "unbounded" })
    expect(both.sort()).toEqual(["1", "2"])
  })
)

it.scopedLive("a kept connection that its receiver closes is replaced within the attempt, once", () =>
  Effect.gen(function* () {
    const { post } = yield* bareServer((connection, request) => connection < 3 && request === 2)
    expect(yield* post).toBe("1")
    expect(yield* post).toBe("2")
    const { post: always } = yield* bareServer((connection, request) => connection > 1 || request > 1)
    expect(yield* always).toBe("1")
    expect(yield* always).toBe("connection closed")
  })
)

it.scopedLive("a connection is pinned to the addresses that were checked", () =>
  Effect.gen(function* () {
    // The name answers with the receiver's address once, and with an inside one ever after.
    const { receiver, post } = yield* receiving(
      { certifiedFor: ["shop.example"], behaviour: () => ({ status: 204, headers: { connection: "close" } }) },
      answering(["127.0.0.1"], ["10.0.0.7"], ["127.0.0.1", "10.0.0.7"])
    )
    const url = `https://shop.example:${receiver.port}/`
    expect(yield* post(url)).toMatchObject({ status: 204, bodyStart: "" })
    expect(yield* post(url)).toMatchObject({ error: "target refused" })
    expect(yield* post(url)).toMatchObject({ error: "target refused" })
    expect(yield* receiver.all).toHaveLength(1)
  })
)

it.scopedLive("the next address is tried where one does not answer", () =>
  Effect.gen(function* () {
    const addresses = answering(["127.0.0.2", "127.0.0.1"])
    const { receiver, post } = yield* receiving({ certifiedFor: ["shop.example"] }, addresses, ["127.0.0.0/8"])
    expect(yield* post(`https://shop.example:${receiver.port}/`)).toMatchObject({ status: 204, bodyStart: "" })
  })
)

it.scopedLive("an outcome has the address that was dialled, or all that were tried", () =>
  Effect.gen(function* () {
    const { receiver, post } = yield* receiving({}, answering(["127.0.0.1"]), ["127.0.0.0/8"])
    // Of a kept connection too.
    for (let i = 0; i < 2; i++) expect(yield* post(receiver.url)).toMatchObject({ status: 204, address: "127.0.0.1" })
    expect(yield* post("https://localhost:1/")).toMatchObject({ error: "connection refused", address: "127.0.0.1" })
    const { post: either } = yield* receiving({}, answering(["127.0.0.2", "127.0.0.1"]), ["127.0.0.0/8"])
    expect(yield* either("https://shop.example:1/")).toEqual({
      error: "connection refused",
      address: "127.0.0.2 127.0.0.1"
    })
    expect(yield* post("https://10.0.0.7/")).toEqual({ error: "target refused" })
  })
)

it.scopedLive("a certificate for another name, or of an unknown authority, is refused", () =>
  Effect.gen(function* () {
    const { receiver, post } = yield* receiving({ certifiedFor: ["shop.example"] })
    expect(yield* post(`https://other.example:${receiver.port}/`)).toMatchObject({ error: "tls" })
    expect(yield* post(`https://shop.example:${receiver.port}/`)).toMatchObject({ status: 204, bodyStart: "" })
    const stranger = yield* clientWith("")
    const url = `https://shop.example:${receiver.port}/`
    expect(yield* stranger.post({ url, headers: {}, body: Buffer.from("{}") })).toMatchObject({ error: "tls" })
  })
)

it.scopedLive("no environment variable turns off the check of certificates", () =>
  Effect.gen(function* () {
    yield* Effect.acquireRelease(
      Effect.sync(() => vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0")),
      () => Effect.sync(() => vi.unstubAllEnvs())
    )
    const { receiver } = yield* receiving({ certifiedFor: ["shop.example"] })
    const url = `https://shop.example:${receiver.port}/`
    const stranger = yield* clientWith("")
    expect(yield* stranger.post({ url, headers: {}, body: Buffer.from("{}") })).toMatchObject({ error: "tls" })
  })
)

it.scopedLive("unreachable and refused targets have an error class", () =>
  Effect.gen(function* () {
    const { post } = yield* receiving(
      {},
      Layer.succeed(Resolver, { resolve: () => new NameNotResolved({ reason: "ENOTFOUND" }) })
    )
    expect(yield* post("https://127.0.0.1:1/")).toMatchObject({ error: "connection refused" })
    expect(yield* post("https://shop.example/")).toMatchObject({ error: "name not resolved" })
    expect(yield* post("https://10.0.0.7/")).toMatchObject({ error: "target refused" })
    expect(yield* post("http://127.0.0.1:1/")).toMatchObject({ error: "target refused" })
  })
)

// Sockets do not follow the test clock, deadlines do: the clock is moved once the request has arrived.
it.scoped("30 seconds to the status, and not one more", () =>
  Effect.gen(function* () {
    const { receiver, post } = yield* receiving({ behaviour: () => Effect.never })
    const first = yield* Effect.fork(post(receiver.url))
    yield* receiver.take
    yield* TestClock.adjust("10 seconds")
    const second = yield* Effect.fork(post(receiver.url))
    yield* receiver.take
    yield* TestClock.adjust(19_999)
    expect(yield* Fiber.poll(first)).toEqual(Option.none())
    yield* TestClock.adjust(1)
    expect(yield* Fiber.join(first)).toMatchObject({ error: "timeout" })
    yield* TestClock.adjust(9_999)
    expect(yield* Fiber.poll(second)).toEqual(Option.none())
    yield* TestClock.adjust(1)
    expect(yield* Fiber.join(second)).toMatchObject({ error: "timeout" })
  })
)

it.scoped("the deadline includes the name look-up", () =>
  Effect.gen(function* () {
    const asked = yield* Deferred.make<void>()
    const resolve = () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never)
    const { post } = yield* receiving({}, Layer.succeed(Resolver, { resolve }))
    const fiber = yield* Effect.fork(post("https://shop.example/"))
    yield* Deferred.await(asked)
    yield* TestClock.adjust("30 seconds")
    expect(yield* Fiber.join(fiber)).toMatchObject({ error: "timeout" })
  })
)

it.scoped("a body that drips is dropped after 5 seconds; its status stands", () =>
  Effect.gen(function* () {
    const drips = Stream.concat(Stream.make(Buffer.from("drip")), Stream.never)
    const { receiver, post } = yield* receiving({ behaviour: () => ({ status: 200, body: drips }) })
    const fiber = yield* Effect.fork(post(receiver.url))
    yield* receiver.take
    // When the headers arrive is the socket's secret: the clock moves on until the body's time is over.
    const outcome = yield* Effect.raceFirst(Fiber.join(fiber), Effect.forever(TestClock.adjust("1 second")))
    expect(outcome).toMatchObject({ status: 200, bodyStart: "drip" })
  })
)

it.scopedLive("an unusable extra CA file is named in the error", () =>
  Effect.gen(function* () {
    const caFile = join(yield* temporaryFolder, "ca.pem")
    writeFileSync(caFile, "not a certificate")
    const error = yield* Effect.flip(clientWith(caFile))
    expect(error.message).toContain(caFile)
  })
)
