import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { Rpc } from "../../src/Chains/Rpc.ts"
import { clientFor, provider, twoCalls } from "./httpNode.ts"

it.scopedLive("gives up on a provider that hangs, after the head or in the middle of the body", () =>
  Effect.gen(function* () {
    const silent = yield* provider(() => {})
    const dripping = yield* provider((_, response) => void response.write("["))
    const errors = yield* Effect.forEach(
      [silent, dripping],
      ({ url }) => Effect.flatMap(clientFor(url), (client) => Effect.flip(twoCalls(client))),
      { concurrency: "unbounded" }
    )
    expect(errors.map(({ reason }) => reason)).toEqual(["timeout", "timeout"])
  }).pipe(Effect.provide(Rpc.layer))
)

it.scoped("gives up on an answer that never ends, though its bytes keep coming", () =>
  Effect.gen(function* () {
    const begun = yield* Deferred.make<void>()
    const { url } = yield* provider((_, response) => {
      const dripping = setInterval(() => response.write(" "), 1000)
      response.on("close", () => clearInterval(dripping))
      response.write("[")
      Effect.runSync(Deferred.succeed(begun, undefined))
    })
    const error = yield* Effect.fork(Effect.flip(twoCalls(yield* clientFor(url))))
    yield* Deferred.await(begun)
    yield* TestClock.adjust("5 seconds")
    expect((yield* Fiber.join(error)).reason).toBe("timeout")
  }).pipe(Effect.provide(Rpc.layer))
)

it.scopedLive("says so when nobody listens", () =>
  Effect.gen(function* () {
    const { close, url } = yield* provider(() => {})
    close()
    expect((yield* Effect.flip(twoCalls(yield* clientFor(url)))).reason).toBe("unreachable")
  }).pipe(Effect.provide(Rpc.layer))
)
