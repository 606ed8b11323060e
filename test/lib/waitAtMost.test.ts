import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, TestClock } from "effect"
import { waitAtMost } from "../../src/lib/waiting.ts"

it.effect("returns the result, or none when the time is over", () =>
  Effect.gen(function* () {
    const came = yield* Deferred.make<number>()
    const waiting = yield* Effect.fork(waitAtMost(Deferred.await(came), "1 minute"))
    const late = yield* Effect.fork(waitAtMost(Effect.never, "1 minute"))
    yield* Deferred.succeed(came, 7)
    expect(yield* Fiber.join(waiting)).toEqual(Option.some(7))
    yield* TestClock.adjust("1 minute")
    expect(yield* Fiber.join(late)).toEqual(Option.none())
  })
)
