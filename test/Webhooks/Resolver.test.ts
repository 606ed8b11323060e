import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { NameNotResolved, Resolver } from "../../src/Webhooks/Resolver.ts"

const resolve = (name: string) => Effect.flatMap(Resolver, (resolver) => resolver.resolve(name))

it.scopedLive("asks the system", () =>
  Effect.map(resolve("localhost"), (addresses) => expect(["127.0.0.1", "::1"]).toContain(addresses[0])).pipe(
    Effect.provide(Resolver.layer)
  )
)

/** A look-up whose answers the test gives. */
const scripted = Effect.gen(function* () {
  const asked: Array<string> = []
  const gate = yield* Deferred.make<void>()
  const lookup = (name: string) =>
    Effect.suspend(() => {
      asked.push(name)
      return name.startsWith("dead") ? Effect.as(Deferred.await(gate), ["192.0.2.1"]) : Effect.succeed(["8.8.8.8"])
    })
  return { asked, gate, layer: Resolver.limiting(lookup) }
})

it.effect("nobody waits longer than 5 seconds", () =>
  Effect.gen(function* () {
    const { layer } = yield* scripted
    const outcome = yield* Effect.fork(Effect.flip(Effect.provide(resolve("dead"), layer)))
    yield* TestClock.adjust("5 seconds")
    expect(yield* Fiber.join(outcome)).toEqual(new NameNotResolved({ reason: "no answer in time" }))
  })
)

it.effect("a dead name takes one slot however often it is asked for, and keeps it until the system gives up", () =>
  Effect.gen(function* () {
    const { asked, gate, layer } = yield* scripted
    yield* Effect.gen(function* () {
      const askAll = (names: ReadonlyArray<string>) =>
        Effect.fork(Effect.forEach(names, (name) => Effect.either(resolve(name)), { concurrency: "unbounded" }))
      const dead = yield* askAll(["dead1", "dead1", "dead1", "dead1", "dead1", "dead2", "dead3"])
      yield* TestClock.adjust("1 second")
      expect(yield* resolve("good")).toEqual(["8.8.8.8"])
      expect(asked).toEqual(["dead1", "dead2", "dead3", "good"])
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(dead)
      const more = yield* askAll(["dead1", "dead4", "good"])
      yield* TestClock.adjust("1 second")
      // Four threads are taken, by the first three names still.
      expect(asked).toEqual(["dead1", "dead2", "dead3", "good", "dead4"])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(more)
      expect(yield* resolve("dead1")).toEqual(["192.0.2.1"])
    }).pipe(Effect.provide(layer))
  })
)
