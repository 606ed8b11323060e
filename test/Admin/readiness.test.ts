import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, TestClock } from "effect"
import { healthHandlers, keptFor, wrongClock } from "../../src/Admin/readiness.ts"
import { operatorHealthHandlers } from "../../src/Admin.ts"
import { type ChainHealth, Chains } from "../../src/Chains.ts"
import { Conditions } from "../../src/Conditions/standing.ts"
import * as Sql from "../../src/Sql.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"

const providers = [{ host: "rpc.example:8545", healthy: false, reason: "no answer" }]
const base: ChainHealth = { chain: "base", mode: "test", ready: true, head: 100, lagBlocks: 2, providers: [] }
const polygon: ChainHealth = { chain: "polygon", mode: "test", ready: false, reason: "no answer", providers }
const dispatcher = { due: 3, oldestDueMillis: 1_500 }

const input = { headers: {} as never, path: {} as never, query: {} as never, payload: {} as never }

const emptyStore = Layer.unwrapScoped(
  Effect.map(temporaryDatabase, (path) => Layer.merge(Sql.layer(path), testSettingsLayer(path)))
)

const wrong = { key: "disk_low", subject: "", severity: "page", summary: "little is left", remedy: "free it" } as const

/** Chains with the health that `look` returns. */
const of = (look: Effect.Effect<ReadonlyArray<ChainHealth>>) =>
  Layer.mergeAll(
    Layer.mock(Chains, {
      behind: () => 0,
      wake: () => {},
      viewed: () => {},
      refresh: () => Effect.void,
      look: () => Effect.void,
      exclusively: () => () => Effect.die("not asked for"),
      health: look
    }),
    Layer.mock(Dispatcher, { health: Effect.succeed(dispatcher) }),
    Layer.mock(Conditions, { now: Effect.succeed([{ ...wrong, kind: wrong.key, since: 5_000 }]) }),
    Workers.layer,
    emptyStore
  )

it.scoped("the public readiness has names only; the operator also sees reasons, providers and the backlog", () =>
  Effect.gen(function* () {
    const workers = yield* Workers
    yield* Effect.forkScoped(workers.worker("expiry", "1 second")(Effect.never))
    const [limited, full] = [yield* healthHandlers, yield* operatorHealthHandlers]
    expect(yield* limited.ready(input)).toMatchObject({
      status: 503,
      body: {
        ready: false,
        chains: [
          { chain: "base", mode: "test", ready: true },
          { chain: "polygon", mode: "test", ready: false }
        ],
        workers: [{ name: "expiry", ready: true }]
      }
    })
    expect(JSON.stringify(yield* limited.ready(input))).not.toMatch(/rpc|8545|answer|reason|due|head|lag|disk/)
    expect(yield* full.ready(input)).toEqual({
      status: 503,
      body: {
        ready: false,
        chains: [base, polygon],
        workers: [{ name: "expiry", ready: true }],
        dispatcher,
        conditions: [{ ...wrong, since: "1970-01-01T00:00:05.000Z" }]
      }
    })
  }).pipe(Effect.provide(of(Effect.succeed([base, polygon]))))
)

it.scoped("the daemon is ready if every chain and every worker is; only operators see why a worker is not", () =>
  Effect.gen(function* () {
    const workers = yield* Workers
    const [limited, full] = [yield* healthHandlers, yield* operatorHealthHandlers]
    expect(yield* limited.ready(input)).toMatchObject({ status: 200, body: { ready: true } })
    yield* Effect.forkScoped(workers.worker("expiry", "1 second")(Effect.never))
    yield* TestClock.adjust("21 seconds")
    const { body, status } = yield* limited.ready(input)
    expect([status, body]).toEqual([
      503,
      {
        ready: false,
        chains: [{ chain: "base", mode: "test", ready: true }],
        workers: [{ name: "expiry", ready: false }]
      }
    ])
    expect(yield* full.ready(input)).toMatchObject({
      status: 503,
      body: { workers: [{ ready: false, reason: "a tick has not ended for 21 seconds" }] }
    })
  }).pipe(Effect.provide(of(Effect.succeed([base]))))
)

it("a clock is wrong that is too far behind one chain's head, or ahead of all of them", () => {
  const at = (...heads: ReadonlyArray<number | undefined>) =>
    wrongClock(
      heads.map((headAheadSeconds) => (headAheadSeconds === undefined ? base : { ...base, headAheadSeconds })),
      900_000
    )
  expect([at(), at(undefined), at(-900, undefined), at(900), at(-3_600, -12)]).toEqual(Array(5).fill(undefined))
  expect(at(-12, 3_600)).toContain("this machine's clock is 1h behind a chain's")
  expect(at(-3_600, -3_612)).toContain("this machine's clock is 1h ahead of every chain's")
})

it.scoped("a wrong clock is not ready", () =>
  Effect.gen(function* () {
    const workers = yield* Workers
    workers.worker("clock", "1 second")
    const { ready } = yield* operatorHealthHandlers
    expect(yield* ready(input)).toMatchObject({
      status: 503,
      body: { workers: [{ name: "clock", ready: false, reason: expect.stringContaining("behind a chain's") }] }
    })
  }).pipe(Effect.provide(of(Effect.succeed([{ ...base, headAheadSeconds: 4e8 }]))))
)

it.scoped("requests within a second share one computation", () => {
  let looks = 0
  const look = Effect.delay(
    Effect.sync(() => {
      looks += 1
      return [base]
    }),
    "100 millis"
  )
  return Effect.gen(function* () {
    const { ready } = yield* healthHandlers
    const first = yield* Effect.fork(ready(input))
    const others = yield* Effect.fork(Effect.all([ready(input), ready(input)], { concurrency: "unbounded" }))
    yield* Effect.yieldNow()
    // Its client disconnects: the others wait for the same computation.
    yield* Fiber.interrupt(first)
    yield* TestClock.adjust("100 millis")
    const [one, other] = yield* Fiber.join(others)
    expect(one).toBe(other)
    yield* TestClock.adjust("899 millis")
    expect(yield* ready(input)).toBe(one)
    expect(looks).toBe(1)
    yield* TestClock.adjust("1 millis")
    const later = yield* Effect.fork(ready(input))
    yield* TestClock.adjust("100 millis")
    expect(yield* Fiber.join(later)).not.toBe(one)
    expect(looks).toBe(2)
  }).pipe(Effect.provide(of(look)))
})

it.effect("a result is shared while it is valid, and computed again after that", () =>
  Effect.gen(function* () {
    let made = 0
    const kept = keptFor(
      (count) => (count < 3 ? "100 millis" : "1 second"),
      Effect.sync(() => ++made)
    )
    expect([yield* kept, yield* kept]).toEqual([1, 1])
    yield* TestClock.adjust("99 millis")
    expect(yield* kept).toBe(1)
    yield* TestClock.adjust("1 millis")
    expect(yield* kept).toBe(2)
    yield* TestClock.adjust("100 millis")
    expect(yield* kept).toBe(3)
    yield* TestClock.adjust("999 millis")
    expect(yield* kept).toBe(3)
    yield* TestClock.adjust("1 millis")
    expect(yield* kept).toBe(4)
  })
)

it.effect("callers that ask while it is computed get it too, even if the first caller has gone away", () =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    let made = 0
    const kept = keptFor(
      () => "1 second",
      Effect.zipRight(
        Deferred.await(gate),
        Effect.sync(() => ++made)
      )
    )
    const first = yield* Effect.fork(kept)
    yield* Effect.yieldNow()
    const second = yield* Effect.fork(kept)
    yield* TestClock.adjust("5 seconds")
    yield* Fiber.interrupt(first)
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(second)).toBe(1)
    expect(made).toBe(1)
  })
)

it.effect("a failure is returned and not cached", () =>
  Effect.gen(function* () {
    let asked = 0
    const kept = keptFor(
      () => "1 second",
      Effect.suspend(() => (++asked === 1 ? Effect.fail("not now") : Effect.succeed(asked)))
    )
    expect(yield* Effect.flip(kept)).toBe("not now")
    expect(yield* kept).toBe(2)
  })
)
