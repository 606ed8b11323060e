import { connect } from "node:net"
import { FileSystem } from "@effect/platform"
import { NodeFileSystem } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Data, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { Agent, type Dispatcher, request } from "undici"
import { makeAuthority } from "../../src/Sandbox/Authority.ts"
import { endless, type Receiver, startReceiver, verifySignature } from "../../src/Sandbox/Receiver.ts"
import { liveSuite } from "../lib/scopedTest.ts"

class PostFailed extends Data.TaggedError("PostFailed")<{ readonly message: string }> {}

/** A client that trusts exactly this certificate authority. */
const trusting = (ca: string) =>
  Effect.acquireRelease(
    Effect.sync(() => new Agent({ connect: { ca } })),
    (agent) => Effect.promise(() => agent.destroy())
  )

const post = Effect.fn("post")(function* (receiver: Receiver, body: string | Buffer, headers = {}, path = "/hook") {
  const dispatcher = yield* trusting(receiver.authority.certificate)
  return yield* Effect.tryPromise({
    try: (signal) => request(`${receiver.url}${path}`, { method: "POST", body, headers, dispatcher, signal }),
    catch: (error) => new PostFailed({ message: String(error) })
  })
})

const text = (response: Dispatcher.ResponseData) => Effect.promise(() => response.body.text())

liveSuite(NodeFileSystem.layer, "receiver", (test) => {
  test("records the exact bytes and headers, in the order of arrival", function* () {
    const receiver = yield* startReceiver()
    const bytes = Buffer.from([0xff, 0x00, 0x0d, 0x0a, 0x7b])
    expect((yield* post(receiver, bytes, { "X-Mixed-Case": "a" }, "/a?b=c")).statusCode).toBe(204)
    yield* post(receiver, "")
    const first = yield* receiver.take
    expect(first).toMatchObject({ n: 1, method: "POST", path: "/a?b=c" })
    expect(first.body).toEqual(bytes)
    expect(first.headers["x-mixed-case"]).toBe("a")
    expect(first.rawHeaders).toContain("X-Mixed-Case")
    expect((yield* receiver.take).body.length).toBe(0)
    expect((yield* receiver.all).map(({ n }) => n)).toEqual([1, 2])
  })

  test("writes the certificate that a client has to trust, good for both loopback addresses and localhost", function* () {
    const fs = yield* FileSystem.FileSystem
    const caFile = `${yield* fs.makeTempDirectoryScoped()}/ca.pem`
    const receiver = yield* startReceiver({ caFile })
    const dispatcher = yield* trusting(yield* fs.readFileString(caFile))
    const overLocalhost = yield* Effect.promise(() => request(`https://localhost:${receiver.port}/`, { dispatcher }))
    expect(overLocalhost.statusCode).toBe(204)
    const overV6 = yield* startReceiver({ authority: receiver.authority, host: "::1" })
    expect((yield* post(overV6, "")).statusCode).toBe(204)
  })

  test("is not trusted by other clients, nor under another name", function* () {
    const receiver = yield* startReceiver()
    const stranger = yield* makeAuthority
    const error = yield* Effect.flip(post({ ...receiver, authority: stranger }, ""))
    expect(error.message).toMatch(/unable to verify|self-signed|signature/)
    const misnamed = yield* startReceiver({ certifiedFor: ["shop.example"] })
    expect((yield* Effect.flip(post(misnamed, ""))).message).toContain("does not match certificate")
    expect(yield* receiver.all).toEqual([])
  })

  test("responds by script: status by number, redirect, waiting until released, another script", function* () {
    const released = yield* Deferred.make<void>()
    const receiver = yield* startReceiver({
      behaviour: (_, n) =>
        n === 1
          ? 503
          : n === 2
            ? { status: 302, headers: { location: "https://elsewhere.example/" }, body: "moved" }
            : Effect.as(Deferred.await(released), 200)
    })
    expect((yield* post(receiver, "1")).statusCode).toBe(503)
    const moved = yield* post(receiver, "2")
    expect([moved.statusCode, moved.headers["location"], yield* text(moved)]).toEqual([
      302,
      "https://elsewhere.example/",
      "moved"
    ])
    const waiting = yield* Effect.fork(post(receiver, "3"))
    yield* Effect.replicateEffect(receiver.take, 3)
    expect(waiting.unsafePoll()).toBeNull()
    yield* Deferred.succeed(released, undefined)
    expect((yield* Fiber.join(waiting)).statusCode).toBe(200)
    yield* receiver.behave((request) => ({ status: 200, body: request.body }))
    expect(yield* text(yield* post(receiver, "echo"))).toBe("echo")
  })

  test("hangs up, and sends a body without an end", function* () {
    const receiver = yield* startReceiver({
      behaviour: (_, n) => (n === 1 ? "hang up" : { status: 200, body: endless })
    })
    expect((yield* Effect.flip(post(receiver, ""))).message).toMatch(/other side closed|socket hang up|ECONNRESET/)
    const response = yield* post(receiver, "")
    expect(response.statusCode).toBe(200)
    const read = yield* Effect.async<number>((resume) => {
      let size = 0
      response.body
        .on("error", () => resume(Effect.succeed(size)))
        .on("data", (chunk: Buffer) => {
          size += chunk.length
          if (size > 1_000_000) response.body.destroy()
        })
        .on("close", () => resume(Effect.succeed(size)))
    })
    expect(read).toBeGreaterThan(1_000_000)
  })

  test("names a port in use", function* () {
    const { port } = yield* startReceiver()
    const error = yield* Effect.flip(startReceiver({ port }))
    expect(error).toMatchObject({ _tag: "PortInUse", port })
    expect(error.message).toContain("the HTTPS receiver needs it")
  })

  test("ends with its scope, whatever is still open", function* () {
    const scope = yield* Scope.make()
    const receiver = yield* startReceiver({ behaviour: () => Effect.never }).pipe(Scope.extend(scope))
    const waiting = yield* Effect.fork(Effect.scoped(Effect.flip(post(receiver, ""))))
    yield* receiver.take
    const silent = connect(receiver.port, "127.0.0.1")
    yield* Effect.async<void>((resume) => {
      silent.once("connect", () => resume(Effect.void))
    })
    const dropped = yield* Effect.fork(
      Effect.async<void>((resume) => {
        silent.once("error", () => {}).once("close", () => resume(Effect.void))
      })
    )
    yield* Scope.close(scope, Exit.void)
    yield* Fiber.join(dropped)
    expect((yield* Fiber.join(waiting)).message).toMatch(/other side closed|socket hang up|ECONNRESET/)
  })
})

it("a signature is HMAC-SHA256 in lower-case hex of the exact bytes, under the whole secret", () => {
  // The second test case of RFC 4231.
  const body = Buffer.from("what do ya want for nothing?")
  const hex = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
  const verified = (signature: string | undefined, of = body, secret = "Jefe") =>
    verifySignature({ headers: { "x-service-signature": signature }, body: of }, secret)
  expect(verified(hex)).toBe(true)
  expect([verified(hex, body, "jefe"), verified(hex, Buffer.concat([body, Buffer.from("\n")]))]).toEqual([false, false])
  for (const wrong of [undefined, "", hex.toUpperCase(), hex.slice(1), `${hex}0`, `sha256=${hex}`, "ü".repeat(32)]) {
    expect(verified(wrong), wrong).toBe(false)
  }
})
