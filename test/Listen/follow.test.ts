import { createServer, type ServerResponse } from "node:http"
import { expect } from "@effect/vitest"
import { Clock, Effect, Queue, Redacted, TestClock } from "effect"
import type { EventKind } from "../../src/Domain/Event.ts"
import { listenClient } from "../../src/Listen/askApi.ts"
import { follow, forward, type Message } from "../../src/Listen/follow.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { signingKey } from "../../src/Webhooks/signature.ts"
import { listenHere } from "../lib/loopback.ts"
import { clockTest } from "../lib/scopedTest.ts"

interface Asked {
  readonly path: string | undefined
  readonly after: string | undefined
  readonly answer: ServerResponse
}

/** A server that does what the test says with each request. */
const server = Effect.gen(function* () {
  const asked = yield* Queue.unbounded<Asked>()
  const { url } = yield* listenHere(
    createServer((request, answer) => {
      asked.unsafeOffer({ path: request.url, after: request.headers["last-event-id"]?.toString(), answer })
    })
  )
  const client = yield* listenClient
  return { api: { url, key: "svc_test_x", client }, asked: Queue.take(asked) }
})

const following = Effect.fnUntraced(function* (kinds?: ReadonlyArray<EventKind>) {
  const { api, asked } = yield* server
  const heard = yield* Queue.unbounded<Message>()
  const opened = yield* Queue.unbounded<string>()
  const lost = yield* Queue.unbounded<string>()
  const follower = {
    after: undefined,
    kinds,
    onOpen: (position: string) => Queue.offer(opened, position),
    onEvent: (event: Message) => Queue.offer(heard, event),
    onLost: (why: string) => Effect.asVoid(Queue.offer(lost, why.replace(api.url, "it")))
  }
  const fiber = yield* Effect.forkScoped(follow(api, follower))
  return { asked, fiber, opened: Queue.take(opened), heard: Queue.take(heard), lost: Queue.take(lost) }
})

const followed = following()

const begin = ({ answer }: Pick<Asked, "answer">, text: string) =>
  answer.writeHead(200, { "content-type": "text/event-stream" }).write(text)

clockTest(
  "a server that does not respond in 10 seconds is asked again, a little later each time, 15 seconds at most",
  function* () {
    const { asked, lost } = yield* followed
    for (const millis of [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]) {
      yield* asked
      yield* TestClock.adjust("10 seconds")
      expect(yield* lost).toBe("it does not answer: no answer in time")
      yield* TestClock.adjust(millis - 1)
      expect(Array.from(yield* TestClock.sleeps())).toContain((yield* Clock.currentTimeMillis) + 1)
      yield* TestClock.adjust(1)
    }
    yield* asked
  }
)

clockTest(
  "a server that has answered, however long it did not before, is asked again half a second after it is lost",
  function* () {
    const { asked, lost, opened } = yield* followed
    for (const millis of [500, 1_000, 2_000, 4_000]) {
      yield* asked
      yield* TestClock.adjust("10 seconds")
      yield* lost
      yield* TestClock.adjust(millis)
    }
    const back = yield* asked
    begin(back, "id: start\n\n")
    yield* opened
    back.answer.end()
    yield* lost
    yield* TestClock.adjust(499)
    expect(Array.from(yield* TestClock.sleeps())).toContain((yield* Clock.currentTimeMillis) + 1)
    yield* TestClock.adjust(1)
    yield* asked
  }
)

clockTest("a stream without a keep-alive for 40 seconds is opened again, at its position", function* () {
  const { asked, heard, lost, opened } = yield* followed
  const first = yield* asked
  begin(first, "id: start\n\n")
  expect(yield* opened).toBe("start")
  // In pieces, as networks cut them.
  first.answer.write("id: evt_1\nevent: payment.cre")
  first.answer.write('ated\ndata: {"a":"é"}\n')
  first.answer.write("\nid: evt_2\ndata: 2\n\nid: evt_3\nda")
  expect(yield* heard).toEqual({ id: "evt_1", data: '{"a":"é"}' })
  expect(yield* heard).toEqual({ id: "evt_2", data: "2" })
  yield* TestClock.adjust("39 seconds")
  first.answer.write("ta: 3\n\n:\n\n")
  expect(yield* heard).toEqual({ id: "evt_3", data: "3" })
  yield* TestClock.adjust("40 seconds")
  expect(yield* lost).toBe("it was lost: nothing came for 40 seconds")
  yield* TestClock.adjust("500 millis")
  expect((yield* asked).after).toBe("evt_3")
})

clockTest(
  "no text in an event ends it early, and only a message without data says where the stream begins",
  function* () {
    const { asked, heard, lost, opened } = yield* followed
    const { answer } = yield* asked
    const note = JSON.stringify({ note: "one\u2028two\u2029three\rfour\nfive\n\nid: evt_9" })
    begin({ answer }, `id: evt_0\n\nid: evt_1\ndata: ${note}\n\nid: evt_2\ndata: \n\n`)
    expect(yield* opened).toBe("evt_0")
    expect(yield* Effect.raceFirst(heard, opened)).toEqual({ id: "evt_1", data: note })
    expect(yield* Effect.raceFirst(heard, opened)).toEqual({ id: "evt_2", data: "" })
    answer.end()
    yield* lost
  }
)

clockTest("half a message when the connection ends is not a message, and comes again whole", function* () {
  const { asked, heard, lost } = yield* followed
  const first = yield* asked
  begin(first, "id: start\n\nid: evt_1\ndata: 1\n\nid: evt_2\ndata: 2\n")
  expect(yield* heard).toEqual({ id: "evt_1", data: "1" })
  first.answer.end()
  expect(yield* lost).toBe("it was lost: the server ended the stream")
  yield* TestClock.adjust("500 millis")
  const second = yield* asked
  expect(second.after).toBe("evt_1")
  begin(second, "id: evt_1\n\nid: evt_2\ndata: 2\n\n")
  expect(yield* heard).toEqual({ id: "evt_2", data: "2" })
})

clockTest("a temporary failure is retried, and a refusal is final", function* () {
  const { asked, fiber, lost } = yield* followed
  const busy = yield* asked
  busy.answer.writeHead(429).end('{"error":{"code":"TOO_MANY_STREAMS","message":"Too many."}}')
  expect(yield* lost).toBe("it answered 429: Too many.")
  let pause = 500
  for (const status of [408, 425, 502]) {
    yield* TestClock.adjust(pause)
    const down = yield* asked
    down.answer.writeHead(status).end("Not now")
    expect(yield* Effect.raceFirst(lost, Effect.flip(fiber))).toBe(`it answered ${status}: Not now`)
    pause *= 2
  }
  yield* TestClock.adjust(pause)
  const closed = yield* asked
  closed.answer.writeHead(403).end('{"error":{"message":"No."}}')
  expect(yield* Effect.flip(fiber)).toMatchObject({
    _tag: "ApiRefused",
    message: expect.stringMatching("403: No[.]$")
  })
})

clockTest(
  "kinds of events are asked for by name, and without a name those that the server has for everyone",
  function* () {
    expect((yield* (yield* followed).asked).path).toBe("/v1/events/stream")
    const { asked } = yield* following(["payment.updated", "payment.failed"])
    expect((yield* asked).path).toBe("/v1/events/stream?events=payment.updated,payment.failed")
  }
)

clockTest("a receiver has 30 seconds, as it has for a webhook", function* () {
  const { api, asked } = yield* server
  const outcome = yield* Effect.fork(
    forward(api.client, new URL(api.url), signingKey(Redacted.make("whsec_x")), { id: "evt_1", data: "{}" })
  )
  yield* asked
  yield* TestClock.adjust("29 seconds")
  yield* TestClock.adjust("1 second")
  expect(yield* outcome).toEqual({ status: undefined, error: "no answer within 30 seconds", durationMillis: 30_000 })
})

/** Waits this long for something that sockets wake. */
const untilAsleep = (millis: number) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.repeat(Effect.zipRight(eventLoopTurn, TestClock.sleeps()), {
      until: (sleeps) => Array.from(sleeps).includes(now + millis)
    })
  )

clockTest("a status decides, and a body that does not end is dropped after 5 seconds", function* () {
  const { api, asked } = yield* server
  const outcome = yield* Effect.fork(
    forward(api.client, new URL(api.url), signingKey(Redacted.make("whsec_x")), { id: "evt_1", data: "{}" })
  )
  const { answer } = yield* asked
  const dropped = yield* Effect.fork(Effect.async<void>((resume) => void answer.on("close", () => resume(Effect.void))))
  answer.writeHead(201).write("and so on")
  yield* untilAsleep(5_000)
  yield* TestClock.adjust("5 seconds")
  expect(yield* outcome).toEqual({ status: 201, error: undefined, durationMillis: 5_000 })
  yield* dropped
})
