import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream, TestClock } from "effect"
import type { Sharer } from "../../src/Http/LoopShare.ts"
import { serveHttp } from "../../src/Http/listener.ts"
import type { Hold } from "../../src/Http/PageHandler.ts"
import { betweenParts } from "../../src/Http/parts.ts"
import { RefusalPace } from "../../src/Http/RefusalPace.ts"
import type { Respond } from "../../src/Http/respond.ts"
import { stranger } from "../../src/Http/Visitors.ts"
import { makeWithoutKey } from "../../src/Http/withoutKey.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { type Answered, apiWithKey, TestApi, testApp } from "../lib/api.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { dial } from "../lib/socket.ts"
import { anyPort, connected, get, saying, statuses } from "./serving.ts"

/** A loop that is never idle, and keyed to the test clock: work that runs takes time of it. */
const busyLoop = Effect.gen(function* () {
  const clock = yield* Effect.clock
  let worked = 0
  const order: Array<string> = []
  const turns = yield* makeWithoutKey({ now: () => clock.unsafeCurrentTimeMillis() + worked, idle: () => 0 })
  let held = 0
  const hold: Hold = (wait) =>
    Effect.acquireUseRelease(
      Effect.sync(() => void held++),
      () => wait,
      () => Effect.sync(() => void held--)
    )
  /** A request of an owner that takes so many milliseconds. */
  const ask = (owner: string, cost = 10) =>
    turns.run(
      stranger(owner),
      hold,
      Effect.sync(() => {
        worked += cost
        order.push(owner)
        return "run"
      }),
      Effect.succeed("refused")
    )
  const asks = (owner: string, count: number) => Effect.forkAll(Array.from({ length: count }, () => ask(owner)))
  const worksFor = (owner: string) =>
    Effect.sync(() => {
      worked += 10
      order.push(owner)
    })
  /** Long work of a known person: a search, and the file that comes of it. */
  const long = (owner: Sharer, parts: number) => {
    const part = Effect.zipRight(betweenParts, worksFor(owner.name))
    const file = Stream.runDrain(
      turns.measured(owner, Stream.as(Stream.repeatEffect(part), "").pipe(Stream.take(parts)))
    )
    return Effect.zipRight(turns.run(owner, hold, Effect.repeatN(part, parts - 1), Effect.void), file)
  }
  return { ask, asks, long, order, held: () => held }
})

/** Lets time pass, little by little. */
const passing = Effect.forever(Effect.zipRight(TestClock.adjust("20 millis"), eventLoopTurn))

describe("a request without a key", () => {
  clockTest("runs at once while there is time, and else waits for it", function* () {
    const { ask, held, order } = yield* busyLoop
    for (let i = 0; i < 7; i++) expect([yield* ask("a"), held()]).toEqual(["run", 0])
    const waiting = yield* Effect.fork(ask("a"))
    yield* Effect.repeatN(eventLoopTurn, 5)
    expect([order.length, held()]).toEqual([7, 1])
    yield* TestClock.adjust("100 millis")
    expect([yield* Fiber.join(waiting), held()]).toEqual(["run", 0])
  })

  clockTest("of a client that asks once goes before the many of others", function* () {
    const { ask, asks, order } = yield* busyLoop
    for (let i = 0; i < 20; i++) yield* asks(`flood ${i}`, 20)
    yield* Effect.repeatN(eventLoopTurn, 5)
    const before = order.length
    const payer = yield* Effect.fork(ask("payer"))
    yield* Effect.forkScoped(passing)
    expect(yield* Fiber.join(payer)).toBe("run")
    // Each of the twenty has had at most one turn since, and the one that had begun.
    expect(order.indexOf("payer") - before).toBeLessThanOrEqual(21)
  })

  clockTest("does not wait for the long work of others, whoever they are", function* () {
    const { ask, long, order } = yield* busyLoop
    const searching = yield* Effect.forkScoped(long({ name: "operator", weight: 100 }, 40))
    yield* Effect.forkScoped(passing)
    // In the search, and in the file.
    for (const parts of [10, 60]) {
      while (order.filter((each) => each === "operator").length < parts) yield* eventLoopTurn
      const before = order.length
      expect(yield* ask("payer", 1)).toBe("run")
      expect(order.length - before).toBeLessThanOrEqual(3)
    }
    yield* Fiber.join(searching)
    expect(order.filter((each) => each === "operator")).toHaveLength(80)
  })

  clockTest("is refused when it has waited for five seconds", function* () {
    const { ask, asks, held } = yield* busyLoop
    yield* ask("a", 10_000)
    const waiting = yield* asks("a", 40)
    yield* TestClock.adjust("4999 millis")
    expect(held()).toBe(40)
    // Some at a time: a refusal takes time too.
    yield* Effect.repeatN(TestClock.adjust("5 millis"), 8)
    expect(new Set(yield* Fiber.join(waiting))).toEqual(new Set(["refused"]))
    expect(held()).toBe(0)
  })

  clockTest("frees its place when its client disconnects", function* () {
    const { ask, asks, held, order } = yield* busyLoop
    yield* ask("a", 100)
    yield* Fiber.interrupt(yield* asks("a", 50))
    expect(held()).toBe(0)
    yield* TestClock.adjust("1 second")
    expect(order).toEqual(["a"])
  })
})

/** Counts refusals at one time and returns how long each waits. */
const waits = (pace: RefusalPace, key: string, now: number, count: number) =>
  Array.from({ length: count }, () => pace.wait(key, now))

describe("a key that exceeds its rate", () => {
  it("gets 50 refusals at once, then 10 a second, each after at most 5 seconds", () => {
    const pace = new RefusalPace(50, 10)
    expect(waits(pace, "key_1", 0, 53)).toEqual([...Array.from({ length: 50 }, () => 0), 100, 200, 300])
    expect(waits(pace, "key_2", 0, 1)).toEqual([0])
    expect(waits(pace, "key_1", 0, 1_000).at(-1)).toBe(5_000)
    // The debt is limited too.
    expect(waits(pace, "key_1", 5_200, 3)).toEqual([0, 100, 200])
    expect(waits(pace, "key_1", 60_000, 51)).toEqual([...Array.from({ length: 50 }, () => 0), 100])
  })

  it("does not wait longer after the clock was set back", () => {
    const pace = new RefusalPace(50, 10)
    waits(pace, "key_1", 86_400_000, 1)
    expect(waits(pace, "key_1", 0, 1)).toEqual([5_000])
    expect(waits(pace, "key_1", 10_000, 2)).toEqual([0, 0])
  })
})

/** Holds each request for so long. */
const holding = (millis: number, held: Effect.Effect<unknown>) => {
  const respond: Respond = (_request, _body, _id, hold = (wait) => wait) =>
    held.pipe(Effect.zipRight(hold(Effect.sleep(millis))), Effect.as({ status: 200, headers: {}, text: "{}" }))
  return respond
}

describe("a delayed request", () => {
  liveTest("loses its connection to a new one when there are too many", function* () {
    const held = yield* Deferred.make<void>()
    const respond = holding(60_000, Deferred.succeed(held, undefined))
    const address = yield* serveHttp(respond, anyPort, { perClient: 1, drainTimeout: 10 })
    const first = yield* saying(dial(address), get("/"))
    yield* Deferred.await(held)
    yield* dial(address)
    expect(yield* first.closed).toBe("")
  })

  liveTest("is the last on its connection: later requests there are not read", function* () {
    let asked = 0
    const client = yield* connected(
      holding(
        50,
        Effect.sync(() => void asked++)
      )
    )
    client.write(get("/").repeat(20))
    expect(statuses(yield* client.closed)).toEqual([200, 400])
    expect(asked).toBe(1)
  })
})

/** Sends `count` requests with limited concurrency. Counts the responses so far, and returns all of them. */
const askMany = (ask: (i: number) => Effect.Effect<Answered>, count: number, concurrency: number) =>
  Effect.gen(function* () {
    let answered = 0
    const each = (_: unknown, i: number) => Effect.tap(ask(i), () => void answered++)
    const fiber = yield* Effect.fork(Effect.all(Array.from({ length: count }, each), { concurrency }))
    const hasAnswered = (count: number) => Effect.repeat(eventLoopTurn, { until: () => answered >= count })
    return { answered: () => answered, hasAnswered, all: Fiber.join(fiber) }
  })

it.effect("clients without a key that send too many requests wait, a key at the same address does not", () =>
  Effect.gen(function* () {
    const { api, key } = yield* apiWithKey
    const paths = ["/readyz", "/healthz", "/docs", "/openapi.json", "/nothing", "/pay/x"]
    // By the test clock a request takes no time of its own, but a tenth of a millisecond for being sent.
    const ask = (i: number) => api.call("GET", paths[i % paths.length] ?? "")
    const { all, answered, hasAnswered } = yield* askMany(ask, 550, 40)
    yield* hasAnswered(499)
    yield* Effect.repeatN(eventLoopTurn, 200)
    expect(answered()).toBeLessThanOrEqual(501)
    for (let i = 0; i < 20; i++) expect((yield* api.call("GET", "/v1/payments", { key })).status).toBe(200)
    expect(answered()).toBeLessThanOrEqual(501)
    yield* TestClock.adjust("100 millis")
    expect(new Set((yield* all).map(({ status }) => status))).toEqual(new Set([200, 404, 503]))
  }).pipe(Effect.scoped, Effect.provide(testApp()))
)

it.effect("a key that exceeds its rate is delayed, another key at the same address is not", () =>
  Effect.gen(function* () {
    const api = yield* TestApi
    const [key, other] = [yield* api.newKey(), yield* api.newKey()]
    const { all, answered, hasAnswered } = yield* askMany(() => api.call("GET", "/v1/payments", { key }), 75, 75)
    yield* hasAnswered(55)
    expect((yield* api.call("GET", "/v1/payments", { key: other })).status).toBe(200)
    expect(answered()).toBe(55)
    // Five are within the rate, 50 more are refused at once, and the last 20 get 10 refusals a second.
    yield* TestClock.adjust("2 seconds")
    const answers = yield* all
    expect(answers.filter(({ status }) => status === 200).length).toBe(5)
    expect(answers.filter(({ body, status }) => status === 429 && body.error.code === "RATE_LIMITED").length).toBe(70)
  }).pipe(Effect.provide(testApp({ limits: { perMinute: 5, perHour: 1_000 } })))
)
