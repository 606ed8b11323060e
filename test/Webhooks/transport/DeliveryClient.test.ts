import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { expect, vi } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Queue, TestClock } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import { makeHttpClient } from "../../../src/lib/httpClient.ts"
import { type ReceiverOptions, startReceiver } from "../../../src/Sandbox/Receiver.ts"
import { NameNotResolved, Resolver } from "../../../src/Webhooks/transport/TargetGuard.ts"
import { answering, clientWith } from "../../lib/deliveryClient.ts"
import { type Records, startNameServer } from "../../lib/nameServer.ts"
import { type Answer, against, head, says } from "../../lib/rawReceiver.ts"
import { clockTest, liveTest } from "../../lib/scopedTest.ts"
import { temporaryFolder } from "../../lib/store.ts"

const untrusted = "tls: intermediate certificate is missing, or its authority is not trusted"

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

liveTest("posts the exact bytes with its own headers and those given", function* () {
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

/** A receiver that answers with the number of the connection, unless it refuses the connection's n-th request. */
const numbering = (refuses: (connection: number, request: number) => boolean = () => false) => {
  const requests = new Map<number, number>()
  const answer: Answer = ({ connection, socket }) => {
    const request = (requests.get(connection) ?? 0) + 1
    requests.set(connection, request)
    if (refuses(connection, request)) socket.destroy()
    else socket.write(`${head(200, "content-length: 1")}${connection}`)
  }
  return Effect.map(against(answer), ({ post }) => Effect.map(post, ({ bodyStart, error }) => bodyStart ?? error))
}

liveTest("one connection serves many requests; a request at the same time opens another", function* () {
  const post = yield* numbering()
  const warned = vi.spyOn(process, "emitWarning")
  // Node warns of eleven listeners: no request leaves one at the connection.
  for (let i = 0; i < 12; i++) expect(yield* post).toBe("1")
  expect(warned).not.toHaveBeenCalled()
  warned.mockRestore()
  const both = yield* Effect.all([post, post], { concurrency: "unbounded" })
  expect(both.sort()).toEqual(["1", "2"])
})

liveTest("a kept connection that its receiver closes is replaced within the attempt, once", function* () {
  const post = yield* numbering((connection, request) => connection < 3 && request === 2)
  expect(yield* post).toBe("1")
  expect(yield* post).toBe("2")
  const always = yield* numbering((connection, request) => connection > 1 || request > 1)
  expect(yield* always).toBe("1")
  expect(yield* always).toBe("connection closed")
})

liveTest("an idle connection is closed before the time that its receiver says is over", function* () {
  const { caFile, port, take } = yield* against(says(head(204, "keep-alive: timeout=1")))
  const client = yield* makeHttpClient("1 hour", caFile)
  const url = new URL(`https://127.0.0.1:${port}/`)
  ;(yield* client.send({ url, method: "POST", body: "{}", maxBytes: 1_000 })).resume()
  const { socket } = yield* take
  yield* Effect.async<void>((resume) => void socket.once("close", () => resume(Effect.void)))
})

liveTest("a connection is pinned to the addresses that were checked", function* () {
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

liveTest("the next address is tried where one does not respond", function* () {
  const addresses = answering(["127.0.0.2", "127.0.0.1"])
  const { receiver, post } = yield* receiving({ certifiedFor: ["shop.example"] }, addresses, ["127.0.0.0/8"])
  expect(yield* post(`https://shop.example:${receiver.port}/`)).toMatchObject({ status: 204, bodyStart: "" })
})

liveTest("an outcome has the address that was dialled, or all that were tried", function* () {
  const { receiver, post } = yield* receiving({}, answering(["127.0.0.1"]), ["127.0.0.0/8"])
  // Of a kept connection too.
  for (let i = 0; i < 2; i++) expect(yield* post(receiver.url)).toMatchObject({ status: 204, address: "127.0.0.1" })
  expect(yield* post("https://localhost:1/")).toMatchObject({ error: "connection refused", address: "127.0.0.1" })
  const { post: either } = yield* receiving({}, answering(["127.0.0.2", "127.0.0.1"]), ["127.0.0.0/8"])
  expect(yield* either("https://shop.example:1/")).toMatchObject({
    error: "connection refused",
    address: "127.0.0.2 127.0.0.1"
  })
  expect(yield* post("https://10.0.0.7/")).toEqual({ error: "target refused" })
})

liveTest("a certificate for another name, or of an unknown authority, is refused", function* () {
  const { receiver, post } = yield* receiving({ certifiedFor: ["shop.example"] })
  expect(yield* post(`https://other.example:${receiver.port}/`)).toMatchObject({
    error: "tls: certificate is for another name"
  })
  expect(yield* post(`https://shop.example:${receiver.port}/`)).toMatchObject({ status: 204, bodyStart: "" })
  const stranger = yield* clientWith("")
  const url = `https://shop.example:${receiver.port}/`
  expect(yield* stranger.post({ url, headers: {}, body: Buffer.from("{}") })).toMatchObject({ error: untrusted })
})

liveTest("no environment variable turns off the check of certificates", function* () {
  yield* Effect.acquireRelease(
    Effect.sync(() => vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0")),
    () => Effect.sync(() => vi.unstubAllEnvs())
  )
  const { receiver } = yield* receiving({ certifiedFor: ["shop.example"] })
  const url = `https://shop.example:${receiver.port}/`
  const stranger = yield* clientWith("")
  expect(yield* stranger.post({ url, headers: {}, body: Buffer.from("{}") })).toMatchObject({ error: untrusted })
})

liveTest("unreachable and refused targets have an error class", function* () {
  const { post } = yield* receiving(
    {},
    Layer.succeed(Resolver, { resolve: () => new NameNotResolved({ reason: "ENOTFOUND" }) })
  )
  expect(yield* post("https://127.0.0.1:1/")).toMatchObject({ error: "connection refused" })
  expect(yield* post("https://shop.example/")).toMatchObject({ error: "name not resolved" })
  expect(yield* post("https://10.0.0.7/")).toMatchObject({ error: "target refused" })
  expect(yield* post("http://127.0.0.1:1/")).toMatchObject({ error: "target refused" })
})

// Sockets do not follow the test clock, deadlines do: the clock is moved once the request has arrived.
clockTest("30 seconds to the status, and not one more", function* () {
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

clockTest("the deadline includes the name look-up", function* () {
  const asked = yield* Deferred.make<void>()
  const resolve = () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never)
  const { post } = yield* receiving({}, Layer.succeed(Resolver, { resolve }))
  const fiber = yield* Effect.fork(post("https://shop.example/"))
  yield* Deferred.await(asked)
  yield* TestClock.adjust("30 seconds")
  expect(yield* Fiber.join(fiber)).toMatchObject({ error: "timeout" })
})

clockTest("a connection is used for five minutes: then the name is resolved again", function* () {
  const post = yield* numbering()
  expect(yield* post).toBe("1")
  yield* TestClock.adjust("5 minutes")
  expect(yield* post).toBe("1")
  yield* TestClock.adjust(1)
  expect(yield* post).toBe("2")
})

const serverFailure = 2
const noSuchName = 3
const four = [93, 184, 216, 34]
const six = [0x26, 0x06, 0x28, 0, 2, 0x20, 0, 1, 2, 0x48, 0x18, 0x93, 0x25, 0xc8, 0x19, 0x46]

const records: Records = (name, type) => {
  if (name.startsWith("dead")) return undefined
  if (name === "none.example") return noSuchName
  if (name === "empty.example") return []
  if (name === "half.example" && type === "AAAA") return serverFailure
  return type === "A" ? [four, [93, 184, 216, 35]] : [six]
}

/** Names of a file and of a name server that never answers for dead ones. */
const resolving = Effect.gen(function* () {
  const hostsFile = join(yield* temporaryFolder, "hosts")
  writeFileSync(
    hostsFile,
    "127.0.0.1\tlocalhost\n# 10.0.0.1 half.example\n10.0.0.7  Inside.Example inside # x\n::7 inside\n"
  )
  const { asked, server } = yield* startNameServer(records)
  // The test's clock ends what waits, however slow this machine is.
  const { resolve } = yield* Effect.provide(Resolver, Resolver.from({ hostsFile, servers: [server], timeout: 60_000 }))
  return { asked, resolve }
})

liveTest("asks the hosts file first, and name servers for both families", function* () {
  const { asked, resolve } = yield* resolving
  expect(yield* resolve("inside.example")).toEqual(["10.0.0.7"])
  expect(yield* resolve("inside")).toEqual(["10.0.0.7", "::7"])
  expect(yield* Queue.size(asked)).toBe(0)
  const addresses = ["93.184.216.34", "93.184.216.35"]
  expect(yield* resolve("shop.example")).toEqual([...addresses, "2606:2800:220:1:248:1893:25c8:1946"])
  expect(yield* resolve("half.example")).toEqual(addresses)
  expect(yield* Effect.flip(resolve("none.example"))).toEqual(new NameNotResolved({ reason: "ENOTFOUND" }))
  expect(yield* Effect.flip(resolve("empty.example"))).toEqual(new NameNotResolved({ reason: "ENODATA" }))
})

liveTest("asks the system's name servers, without a hosts file too", function* () {
  const { resolve } = yield* Effect.provide(Resolver, Resolver.layer)
  expect(yield* resolve("localhost")).toContain("127.0.0.1")
  const { server } = yield* startNameServer(records)
  const unfiled = Resolver.from({ hostsFile: "/nowhere/hosts", servers: [server] })
  const { resolve: resolveUnfiled } = yield* Effect.provide(Resolver, unfiled)
  expect(yield* resolveUnfiled("localhost")).toContain("93.184.216.34")
})

clockTest(
  "however many names have dead servers, another is resolved at once, and no one waits over 5 seconds",
  function* () {
    const { asked, resolve } = yield* resolving
    // Two questions each: more would not fit into the socket of the name server.
    const names = Array.from({ length: 100 }, (_, i) => `dead${i}.example`)
    const dead = yield* Effect.fork(
      Effect.forEach(names, (name) => Effect.flip(resolve(name)), { concurrency: "unbounded" })
    )
    const waiting = new Set<string>()
    while (waiting.size < names.length) waiting.add(yield* Queue.take(asked))
    // No time passes here.
    expect(yield* resolve("shop.example")).toContain("93.184.216.34")
    yield* TestClock.adjust("4999 millis")
    expect(yield* Fiber.poll(dead)).toMatchObject({ _tag: "None" })
    yield* TestClock.adjust("1 millis")
    expect(new Set((yield* Fiber.join(dead)).map(({ reason }) => reason))).toEqual(new Set(["no answer in time"]))
  }
)
