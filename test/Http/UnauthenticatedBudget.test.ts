import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { serveHttp } from "../../src/Http/listener.ts"
import type { Respond } from "../../src/Http/respond.ts"
import { UnauthenticatedBudget } from "../../src/Http/UnauthenticatedBudget.ts"
import { eventLoopTurn } from "../../src/Sql/eventLoopTurn.ts"
import { type Answered, TestApi, testApp } from "../lib/api.ts"
import { dial } from "../lib/socket.ts"
import { anyPort, connected, get, statuses } from "./serving.ts"

/** Makes requests at one time and returns how long each waits. */
const waits = (budget: UnauthenticatedBudget, network: string, now: number, count: number) =>
  Array.from({ length: count }, () => budget.wait(network, now))

describe("a client without a key", () => {
  it("gets 50 responses at once, then 10 a second, each after at most 5 seconds", () => {
    const budget = new UnauthenticatedBudget()
    expect(waits(budget, "192.0.2.1", 0, 53)).toEqual([...Array.from({ length: 50 }, () => 0), 100, 200, 300])
    expect(waits(budget, "192.0.2.2", 0, 1)).toEqual([0])
    expect(waits(budget, "192.0.2.1", 0, 1_000).at(-1)).toBe(5_000)
    // The debt is limited too.
    expect(waits(budget, "192.0.2.1", 5_200, 3)).toEqual([0, 100, 200])
    expect(waits(budget, "192.0.2.1", 60_000, 51)).toEqual([...Array.from({ length: 50 }, () => 0), 100])
  })

  it("does not wait longer after the clock was set back", () => {
    const budget = new UnauthenticatedBudget()
    waits(budget, "192.0.2.1", 86_400_000, 1)
    expect(waits(budget, "192.0.2.1", 0, 1)).toEqual([5_000])
    expect(waits(budget, "192.0.2.1", 10_000, 2)).toEqual([0, 0])
  })

  it("is forgotten after 10,000 other clients", () => {
    const budget = new UnauthenticatedBudget()
    waits(budget, "mine", 0, 50)
    for (let i = 0; i < 9_999; i++) budget.wait(`address ${i}`, 0)
    expect(budget.wait("mine", 0)).toBe(100)
    for (let i = 0; i < 10_000; i++) budget.wait(`other ${i}`, 0)
    expect(budget.wait("mine", 0)).toBe(0)
  })
})

/** Holds each request for so long. */
const holding = (millis: number, held: Effect.Effect<unknown>) => {
  const respond: Respond = (_request, _body, _id, hold = () => Effect.void) =>
    held.pipe(Effect.zipRight(hold(millis)), Effect.as({ status: 200, headers: {}, text: "{}" }))
  return respond
}

describe("a delayed request", () => {
  it.scopedLive("loses its connection to a new one when there are too many", () =>
    Effect.gen(function* () {
      const held = yield* Deferred.make<void>()
      const respond = holding(60_000, Deferred.succeed(held, undefined))
      const address = yield* serveHttp(respond, anyPort, { perClient: 1, drainTimeout: 10 })
      const first = yield* dial(address)
      first.write(get("/"))
      yield* Deferred.await(held)
      yield* dial(address)
      expect(yield* first.closed).toBe("")
    })
  )

  it.scopedLive("is the last on its connection: later requests there are not read", () =>
    Effect.gen(function* () {
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
  )
})

/** Sends 75 requests at once. Returns the statuses received so far, in order of arrival, and all of them. */
const ask75 = (ask: (i: number) => Effect.Effect<Answered>) =>
  Effect.gen(function* () {
    let answered = 0
    const each = (_: unknown, i: number) => Effect.tap(ask(i), () => void answered++)
    const fiber = yield* Effect.fork(Effect.all(Array.from({ length: 75 }, each), { concurrency: "unbounded" }))
    const hasAnswered = (count: number) => Effect.repeat(eventLoopTurn, { until: () => answered >= count })
    return { answered: () => answered, hasAnswered, all: Fiber.join(fiber) }
  })

it.effect("clients without a key that send too many requests are delayed, a key at the same address is not", () =>
  Effect.gen(function* () {
    const api = yield* TestApi
    const key = yield* api.newKey()
    // The documents are made when they are first asked for, which takes a busy machine seconds; the bucket fills up again.
    for (const path of ["/docs", "/openapi.json"]) yield* api.call("GET", path)
    yield* TestClock.adjust("1 minute")
    const paths = ["/readyz", "/healthz", "/docs", "/openapi.json", "/nothing"]
    const { all, answered, hasAnswered } = yield* ask75((i) => api.call("GET", paths[i % paths.length] ?? ""))
    yield* hasAnswered(50)
    expect((yield* api.call("GET", "/v1/payments", { key })).status).toBe(200)
    expect(answered()).toBe(50)
    // The last 25 get 10 responses a second.
    yield* TestClock.adjust("2499 millis")
    yield* hasAnswered(74)
    expect(answered()).toBe(74)
    yield* TestClock.adjust("1 millis")
    expect(new Set((yield* all).map(({ status }) => status))).toEqual(new Set([200, 404, 503]))
  }).pipe(Effect.provide(testApp()))
)

it.effect("a key that exceeds its rate is delayed, another key at the same address is not", () =>
  Effect.gen(function* () {
    const api = yield* TestApi
    const [key, other] = [yield* api.newKey(), yield* api.newKey()]
    const { all, answered, hasAnswered } = yield* ask75(() => api.call("GET", "/v1/payments", { key }))
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
