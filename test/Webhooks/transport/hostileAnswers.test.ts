import { gzipSync } from "node:zlib"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Runtime, TestClock } from "effect"
import * as fc from "fast-check"
import { type Answer, against, head, pours, says, thenEnds, thenResets } from "../../lib/rawReceiver.ts"
import { clockTest, liveTest } from "../../lib/scopedTest.ts"

// 64 MiB of nothing, in 64 KiB.
const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))

const answers: ReadonlyArray<[string, Answer, object]> = [
  ["another protocol", says("SSH-2.0-OpenSSH_9.6\r\n"), { error: "invalid response" }],
  ["a page without a head", says("<html>hello</html>"), { error: "invalid response" }],
  ["two lengths", says(head(200, "content-length: 1", "content-length: 2"), "ab"), { error: "invalid response" }],
  [
    "a length and chunks",
    says(head(200, "content-length: 1", "transfer-encoding: chunked"), "0\r\n\r\n"),
    { error: "invalid response" }
  ],
  ["a header that never ends", pours("HTTP/1.1 200 OK\r\nx-long: ", "x"), { error: "invalid response" }],
  ["headers that never end", pours("HTTP/1.1 200 OK\r\n", "x-again: and again\r\n"), { error: "invalid response" }],
  ["early hints, and an answer", says(head(103), head(103, "link: </a>"), head(204)), { status: 204, bodyStart: "" }],
  ["early hints for ever", pours("", head(103)), { error: "invalid response" }],
  [
    "early hints with long headers for ever",
    pours("", head(103, `x-long: ${"x".repeat(10_000)}`)),
    { error: "invalid response" }
  ],
  [
    "another protocol, politely",
    says(head(101, "connection: upgrade", "upgrade: websocket")),
    { error: "invalid response" }
  ],
  ["line feeds alone", says("HTTP/1.1 200 OK\ncontent-length: 2\n\nok"), { status: 200, bodyStart: "" }],
  ["a line feed alone", says("HTTP/1.0 500 No\r\nx: y\ncontent-length: 0\r\n\r\n"), { status: 500, bodyStart: "" }],
  ["a folded header", says(head(202, "x-long: a,\r\n\tb", "content-length: 2"), "ok"), { status: 202, bodyStart: "" }],
  ["early hints with line feeds alone", says("HTTP/1.1 103 Hints\n\n", head(204)), { error: "invalid response" }],
  ["100 Continue, unasked", says(head(100), head(204)), { status: 204, bodyStart: "" }],
  ["a hundred interim responses", says(head(102).repeat(100), head(204)), { status: 204, bodyStart: "" }],
  [
    "40 KiB of headers",
    says(head(200, `x-debug: ${"x".repeat(40_960)}`, "content-length: 0")),
    { status: 200, bodyStart: "" }
  ],
  [
    "70 KiB of headers",
    says(head(200, `x-debug: ${"x".repeat(71_680)}`, "content-length: 0")),
    { error: "invalid response" }
  ],
  [
    "a chunk extension that never ends",
    pours(`${head(200, "transfer-encoding: chunked")}1;`, "x"),
    { status: 200, bodyStart: "" }
  ],
  ["one-byte chunks that never end", pours(head(200, "transfer-encoding: chunked"), "1\r\nx\r\n"), { status: 200 }],
  ["204 with a body", says(head(204), "what is this"), { status: 204, bodyStart: "" }],
  [
    "a long body, cut",
    says(head(400, "content-length: 10000"), "é".repeat(5_000)),
    { status: 400, bodyStart: "é".repeat(512) }
  ],
  ["205 with a body", says(head(205, "content-length: 4"), "body"), { status: 205, bodyStart: "body" }],
  [
    "a redirect, which is not followed",
    says(head(301, "location: https://169.254.169.254/", "content-length: 0")),
    { status: 301, bodyStart: "" }
  ],
  ["304 with a length", says(head(304, "content-length: 100")), { status: 304, bodyStart: "" }],
  ["a status that does not exist", says(head(999, "content-length: 0")), { status: 999, bodyStart: "" }],
  ["an end within the head", thenEnds("HTTP/1.1 200 OK\r\nx-lo"), { error: "connection closed" }],
  ["a reset before the answer", ({ reset }) => reset(), { error: "connection reset" }],
  [
    "a reset within the head",
    thenResets("HTTP/1.1 200 OK\r\nx-lo"),
    { error: expect.stringMatching(/^connection (reset|closed)$/) }
  ],
  ["an end within the body", thenEnds(`${head(200, "content-length: 10")}abc`), { status: 200, bodyStart: "abc" }],
  ["a reset within the body", thenResets(`${head(200, "content-length: 10")}abc`), { status: 200, bodyStart: "abc" }],
  ["chunks that are none", says(head(200, "transfer-encoding: chunked"), "what?\r\n"), { status: 200, bodyStart: "" }],
  [
    "trailers that never end",
    pours(`${head(200, "transfer-encoding: chunked")}1\r\na\r\n0\r\n`, "x-again: and again\r\n"),
    { status: 200, bodyStart: "a" }
  ],
  [
    "a body that never ends",
    pours(head(200, "transfer-encoding: chunked"), `400\r\n${"z".repeat(1024)}\r\n`),
    { status: 200, bodyStart: "z".repeat(1024) }
  ],
  ["a refusal that never ends", pours(head(500), "no "), { status: 500, bodyStart: "no ".repeat(342).slice(0, 1024) }],
  [
    "a gzip bomb, which stays packed",
    says(head(200, "content-encoding: gzip", `content-length: ${bomb.length}`), bomb),
    { status: 200, bodyStart: bomb.subarray(0, 1024).toString("utf8") }
  ],
  [
    "two answers",
    says(head(200, "content-length: 1"), "a", head(500, "content-length: 1"), "b"),
    { status: 200, bodyStart: "a" }
  ]
]

it.scopedLive.each(answers)("a receiver that answers with %s", ([, answer, outcome]) =>
  Effect.gen(function* () {
    const { connections, post, take } = yield* against(answer)
    expect(yield* post).toMatchObject(outcome)
    const { socket } = yield* take
    // What was on its way when the client had enough: buffers of sockets, and no more.
    expect(socket.bytesWritten).toBeLessThan(8 * 1024 * 1024)
    expect(connections()).toBe(1)
  })
)

const answersWith = (body: string) => says(head(200, `content-length: ${body.length}`), body)

it.scopedLive.each<[string, number, Answer]>([
  ["a body of 16 KiB", 1, answersWith("x".repeat(16_384))],
  ["a body of a byte more", 2, answersWith("x".repeat(16_385))],
  ["a body that never ends", 2, pours(head(200), "x")],
  ["a 204 with a body", 2, says(head(204), "what is this")],
  ["an answer that closes", 2, says(head(200, "connection: close", "content-length: 0"))],
  ["a flood of early hints", 2, pours("", head(103))],
  ["line feeds alone", 2, says("HTTP/1.1 200 OK\ncontent-length: 0\n\n")]
])("after %s the next request goes over connection %s", ([, next, answer]) =>
  Effect.gen(function* () {
    const { connections, post } = yield* against((request) =>
      request.connection === 1 ? answer(request) : request.socket.write(head(204))
    )
    const first = yield* post
    expect(yield* post).toMatchObject(
      next === 1 ? { status: 200, bodyStart: first.bodyStart } : { status: 204, bodyStart: "" }
    )
    expect(connections()).toBe(next)
  })
)

liveTest("takes no status of line feeds alone over a connection that was used before", function* () {
  let requests = 0
  const { connections, post } = yield* against(({ connection, socket }) => {
    const again = connection === 1 ? "HTTP/1.1 200 OK\n\n" : head(503, "content-length: 0")
    socket.write(++requests === 1 ? head(204) : again)
  })
  expect([(yield* post).status, (yield* post).status, connections()]).toEqual([204, 503, 2])
})

clockTest(
  "after a timeout, and after a body's time is over, the next request goes over a new connection",
  function* () {
    const { connections, post, take } = yield* against(({ connection, socket }) => {
      if (connection === 2) socket.write(head(200, "content-length: 9"))
      if (connection === 3) socket.write(head(204))
    })
    const first = yield* Effect.fork(post)
    yield* take
    yield* TestClock.adjust("30 seconds")
    expect(yield* Fiber.join(first)).toMatchObject({ error: "timeout" })
    const second = yield* Effect.raceFirst(post, Effect.forever(TestClock.adjust("1 second")))
    expect(second).toMatchObject({ status: 200, bodyStart: "" })
    expect(yield* post).toMatchObject({ status: 204, bodyStart: "" })
    expect(connections()).toBe(3)
  }
)

const wholeAnswers = [
  head(204),
  `${head(200, "content-length: 5")}hello`,
  `${head(200, "transfer-encoding: chunked")}5;ext=1\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n`,
  `${head(103, "link: </a>")}${head(500, "connection: close")}no`,
  `${head(200, "content-length: 1")}a${head(200, "content-length: 1")}b`,
  head(302, "location: /", "keep-alive: timeout=5", "content-length: 0")
]

/** An answer with some of its bytes changed, cut or doubled, in several parts. */
const brokenAnswer = fc
  .tuple(
    fc.constantFrom(...wholeAnswers),
    fc.array(fc.tuple(fc.nat(), fc.nat(255), fc.constantFrom("change", "insert", "cut", "double")), { maxLength: 4 }),
    fc.array(fc.nat(), { maxLength: 3 })
  )
  .map(([answer, changes, cuts]) => {
    let bytes = Buffer.from(answer, "latin1")
    for (const [place, byte, change] of changes) {
      const at = place % bytes.length
      const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)]
      const middle = change === "double" ? after : change === "cut" ? [] : [byte]
      bytes = Buffer.concat([before, Buffer.from(middle), change === "change" ? after.subarray(1) : after])
      if (change === "cut") bytes = bytes.subarray(0, Math.max(1, at))
    }
    const places = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length]
    return places.slice(1).map((end, i) => bytes.subarray(places[i], end))
  })

liveTest("any bytes for an answer come to an outcome, and leave a client that goes on", function* () {
  let parts: ReadonlyArray<Uint8Array> = []
  const { post } = yield* against(({ socket }) => {
    for (const part of parts) socket.write(part)
    socket.end()
  })
  const run = Runtime.runPromise(yield* Effect.runtime<never>())
  yield* Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(brokenAnswer, async (answer) => {
        parts = answer
        const { bodyStart, error, status } = await run(post)
        if (status === undefined) {
          expect(["invalid response", "connection closed", "connection reset"]).toContain(error)
        } else {
          expect([error, bodyStart]).toEqual([undefined, expect.any(String)])
        }
      }),
      { numRuns: 60 }
    )
  )
  parts = [Buffer.from(head(204))]
  expect(yield* post).toMatchObject({ status: 204, bodyStart: "" })
})
