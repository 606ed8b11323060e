import type { ServerResponse } from "node:http"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Queue, Schedule, TestClock, TestServices } from "effect"
import { Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { clientFor, provider, twoCalls } from "../httpNode.ts"

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

it.scoped("gives up at the deadline on a response whose bytes keep coming", () =>
  Effect.gen(function* () {
    const answers = yield* Queue.unbounded<ServerResponse>()
    const { url } = yield* provider((_, response) => void answers.unsafeOffer(response))
    const error = yield* Effect.fork(Effect.flip(twoCalls(yield* clientFor(url))))
    const answer = yield* Queue.take(answers)
    const drip = Effect.sync(() => answer.write(" "))
    yield* Effect.forkScoped(TestServices.provideLive(Effect.repeat(drip, Schedule.spaced("1 second"))))
    yield* TestClock.adjust("5 seconds")
    expect((yield* Fiber.join(error)).reason).toBe("timeout")
  }).pipe(Effect.provide(Rpc.layer))
)

it.scopedLive("reports that it cannot connect when nothing listens", () =>
  Effect.gen(function* () {
    const { close, url } = yield* provider(() => {})
    close()
    expect((yield* Effect.flip(twoCalls(yield* clientFor(url)))).reason).toBe("unreachable")
  }).pipe(Effect.provide(Rpc.layer))
)
