import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { keptFor } from "../../src/Admin/keptFor.ts"

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
