import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, Stream, TestClock } from "effect"
import { serveHttp } from "../../src/Http/listener.ts"
import type { Hold } from "../../src/Http/PageHandler.ts"
import { betweenParts } from "../../src/Http/parts.ts"
import type { Respond } from "../../src/Http/respond.ts"
import { makeTurns } from "../../src/Http/turns.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { HttpServer } from "../../src/Server.ts"
import { type Answered, apiWithKey, TestApi, testApp } from "../lib/api.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { dial } from "../lib/socket.ts"
import { anyPort, connected, get, saying, statuses } from "./serving.ts"

/** Requests without a key, in the order in which they begin. */
const begun = () => {
  const turns = makeTurns()
  const order: Array<string> = []
  let held = 0
  const hold: Hold = (wait) =>
    Effect.acquireUseRelease(
      Effect.sync(() => void held++),
      () => wait,
      () => Effect.sync(() => void held--)
    )
  const begins = (name: string) => Effect.sync(() => void order.push(name))
  const ask = (name: string, isKnown = false) =>
    turns.run(isKnown, hold, Effect.as(begins(name), "run"), Effect.succeed("refused"))
  const asks = (name: string, count: number, isKnown = false) =>
    Effect.forkAll(Array.from({ length: count }, () => ask(name, isKnown)))
  /** Long work of a known person: a search, and the file that comes of it. */
  const long = (name: string, parts: number) => {
    const part = Effect.zipRight(betweenParts, begins(name))
    const file = Stream.runDrain(turns.inTurns(Stream.as(Stream.repeatEffect(part), "").pipe(Stream.take(parts))))
    return Effect.zipRight(turns.run(true, hold, Effect.repeatN(part, parts - 1), Effect.void), file)
  }
  return { ask, asks, long, order, held: () => held }
}

const countOf = (order: ReadonlyArray<string>, name: string) => order.filter((each) => each === name).length

describe("a request without a key", () => {
  it.effect("begins at once, and in a turn of the event loop no other does", () =>
    Effect.gen(function* () {
      const { ask, asks, held, order } = begun()
      expect([yield* ask("a"), order, held()]).toEqual(["run", ["a"], 0])
      const flood = yield* asks("b", 100)
      // Those beyond 32 are held: their connections may be closed for others.
      for (let turn = 0; order.length < 101; turn++) {
        yield* eventLoopTurn
        expect(order.length).toBeLessThanOrEqual(turn + 3)
        if (turn === 0) expect(held()).toBeGreaterThan(60)
      }
      expect(new Set(yield* Fiber.join(flood))).toEqual(new Set(["run"]))
      expect(held()).toBe(0)
    })
  )

  it.effect("of somebody who is signed in goes before strangers', who have every eighth turn", () =>
    Effect.gen(function* () {
      const { asks, order } = begun()
      yield* asks("stranger", 40)
      yield* Fiber.join(yield* asks("operator", 40, true))
      expect(countOf(order, "stranger")).toBeGreaterThanOrEqual(4)
      expect(countOf(order, "stranger")).toBeLessThanOrEqual(8)
    })
  )

  it.effect("does not wait for the long work of others, whoever they are", () =>
    Effect.gen(function* () {
      const { ask, long, order } = begun()
      const searching = yield* Effect.fork(long("operator", 40))
      // In the search, and in the file.
      for (const parts of [10, 60]) {
        yield* Effect.repeat(eventLoopTurn, { until: () => countOf(order, "operator") >= parts })
        const before = order.length
        expect(yield* ask("payer")).toBe("run")
        expect(order.length - before).toBeLessThanOrEqual(3)
      }
      yield* Fiber.join(searching)
      expect(countOf(order, "operator")).toBe(80)
    })
  )

  it.effect("is refused where 256 wait, late, unless it is of somebody who is signed in", () =>
    Effect.gen(function* () {
      const { ask, asks, held, order } = begun()
      yield* ask("first")
      const flood = yield* asks("flood", 300)
      yield* Effect.yieldNow()
      const payer = yield* Effect.fork(ask("payer"))
      yield* Effect.repeat(eventLoopTurn, { until: () => countOf(order, "flood") === 256 })
      // One that is refused at once is asked again at once, and refusals take all of the time.
      expect([yield* Fiber.poll(payer), held()]).toEqual([Option.none(), 44 + 1])
      yield* TestClock.adjust("5 seconds")
      expect(yield* Fiber.join(payer)).toBe("refused")
      expect((yield* Fiber.join(flood)).lastIndexOf("run")).toBe(255)
      yield* ask("second")
      const more = yield* asks("flood", 300)
      yield* Effect.yieldNow()
      const before = order.length
      expect([yield* ask("operator", true), order.indexOf("operator") < before + 5]).toEqual(["run", true])
      yield* Fiber.interrupt(more)
      expect(yield* ask("payer")).toBe("run")
    })
  )

  it.effect("frees its place when its client disconnects", () =>
    Effect.gen(function* () {
      const { ask, asks, held, order } = begun()
      yield* ask("a")
      const waiting = yield* asks("b", 50)
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(waiting)
      const before = order.length
      expect([before < 5, held()]).toEqual([true, 0])
      yield* Effect.repeatN(eventLoopTurn, 5)
      expect(order.length).toBe(before)
    })
  )
})

describe("requests with a key", () => {
  it.effect("begin as they come, until that has taken 20 milliseconds of a turn: then accounts take turns", () =>
    Effect.gen(function* () {
      const { ofAccount } = makeTurns()
      const order: Array<string> = []
      const ask = (account: string) =>
        Effect.zipRight(
          Effect.suspend(() => ofAccount(account) ?? Effect.void),
          Effect.sync(() => void order.push(account))
        )
      yield* ask("many")
      for (const began = performance.now(); performance.now() < began + 25; );
      const asked = yield* Effect.forkAll(Array.from({ length: 100 }, () => ask("many")))
      const gone = yield* Effect.fork(ask("gone"))
      yield* Effect.fork(ask("one"))
      yield* Effect.yieldNow()
      expect(order).toEqual(["many"])
      yield* Fiber.interrupt(gone)
      yield* Effect.repeat(eventLoopTurn, { until: () => order.includes("one") })
      expect(order.length).toBeLessThanOrEqual(1 + 8)
      yield* Fiber.join(asked)
      expect([order.length, order.includes("gone")]).toEqual([102, false])
    })
  )
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
    const address = yield* serveHttp(respond, anyPort, { total: 1, drainTimeout: 10 })
    const first = yield* saying(dial(address), get("/"))
    yield* Deferred.await(held)
    yield* dial(address)
    expect(yield* first.closed).toBe("")
  })

  liveTest("keeps its connection once it is worked on, and a new one is refused", function* () {
    const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const respond: Respond = (_request, _body, _id, hold = (wait) => wait) =>
      hold(eventLoopTurn).pipe(
        Effect.zipRight(Deferred.succeed(begun, undefined)),
        Effect.zipRight(Deferred.await(go)),
        Effect.as({ status: 200, headers: {}, text: "{}" })
      )
    const address = yield* serveHttp(respond, anyPort, { total: 1 })
    const first = yield* saying(dial(address), get("/"))
    yield* Deferred.await(begun)
    const second = yield* dial(address)
    expect(yield* Effect.raceFirst(second.closed, first.closed)).toMatch(/^HTTP\/1.1 503 /)
    yield* Deferred.succeed(go, undefined)
    yield* first.received(/^HTTP\/1.1 200 /)
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

it.live("clients without a key that send too many requests wait, a key at the same address does not", () =>
  Effect.gen(function* () {
    const { api, key } = yield* apiWithKey
    const { address } = yield* HttpServer
    const connections = yield* Effect.all(
      Array.from({ length: 200 }, () => dial(address)),
      { concurrency: 20 }
    )
    const withKey = yield* dial(address)
    const paths = ["/readyz", "/healthz", "/docs", "/openapi.json", "/nothing", "/pay/x"]
    // What loads with its first request is loaded before.
    for (const path of paths) yield* api.call("GET", path)
    expect((yield* api.call("DELETE", "/v1/payments", { key })).status).toBe(405)
    let answered = 0
    const answers = yield* Effect.forkAll(
      connections.map(({ received }) => Effect.tap(received(/\r\n\r\n/), () => void answered++))
    )
    yield* Effect.yieldNow()
    for (const [i, { write }] of connections.entries()) write(get(paths[i % paths.length] ?? ""))
    withKey.write(`DELETE /v1/payments HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n\r\n`)
    expect(statuses(yield* withKey.received(/\r\n\r\n/))).toEqual([405])
    // It was sent last, and takes a few turns of the event loop, each with one of them.
    expect(answered).toBeLessThanOrEqual(100)
    const texts = yield* Fiber.join(answers)
    expect(new Set(texts.flatMap(statuses))).toEqual(new Set([200, 404, 503]))
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
    // Five are within the rate, 50 more are refused at once, and the last 20 five seconds after the first.
    yield* TestClock.adjust("4999 millis")
    yield* Effect.repeatN(eventLoopTurn, 20)
    expect(answered()).toBe(55)
    yield* Effect.repeat(Effect.zipRight(eventLoopTurn, TestClock.adjust("1 millis")), {
      until: () => answered() === 75
    })
    const answers = yield* all
    expect(answers.filter(({ status }) => status === 200).length).toBe(5)
    expect(answers.filter(({ body, status }) => status === 429 && body.error.code === "RATE_LIMITED").length).toBe(70)
  }).pipe(Effect.provide(testApp({ limits: { perMinute: 5, perHour: 1_000 } })))
)
