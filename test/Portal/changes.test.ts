import { expect } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, TestClock } from "effect"
import type { Owner } from "../../src/Domain/Account.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { changeRoutes } from "../../src/Portal/routes.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { portalStore, portalWith } from "./room.ts"

const changes = "/portal/a/shop/test/changes"
const bells: Array<{ readonly to: unknown; readonly bell: Queue.Queue<void> }> = []

const outbox = Layer.succeed(Outbox, {
  publish: () => Effect.dieMessage("nothing is published"),
  listen: (to: Owner | string) =>
    Effect.map(Queue.unbounded<void>(), (bell) => {
      bells.push({ to, bell })
      return Queue.take(bell)
    })
})
const test = scopedTest(Layer.merge(portalStore(), outbox))

test("a stream says that something has changed, and nothing of what, and ends by itself", function* () {
  const { enter } = yield* portalWith(changeRoutes)
  const grace = yield* enter({ account: "shop", name: "Grace", role: "viewer" })
  const stream = yield* Effect.fork(grace.get(changes))
  yield* TestClock.adjust("15 seconds")
  const heard = bells.at(-1)
  expect(heard?.to).toEqual({ account: "shop", mode: "test" })
  yield* Queue.offer(heard?.bell ?? (yield* Queue.unbounded<void>()), undefined)
  yield* TestClock.adjust("9 minutes")
  expect(yield* Fiber.poll(stream)).toMatchObject({ _tag: "None" })
  yield* TestClock.adjust("1 minute")
  const { headers, text } = yield* Fiber.join(stream)
  expect(headers["content-type"]).toBe("text/event-stream")
  expect(text).toBe(`:\n\n:\n\ndata: changed\n\n${":\n\n".repeat(38)}`)
})

test("a session has three at most, and one that ends makes room", function* () {
  const { enter, visitor } = yield* portalWith(changeRoutes)
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const streams = yield* Effect.replicateEffect(Effect.fork(grace.get(changes)), 3)
  yield* TestClock.adjust("1 second")
  expect((yield* grace.get(changes)).status).toBe(204)
  yield* Fiber.interruptAll(streams.slice(0, 1))
  const fourth = yield* Effect.fork(grace.get(changes))
  yield* TestClock.adjust("1 second")
  expect(yield* Fiber.poll(fourth)).toMatchObject({ _tag: "None" })
  yield* Fiber.interruptAll([...streams, fourth])
  // Without a session there is none.
  expect((yield* visitor().get(changes)).status).toBe(303)
})

test("streams that have ended leave room to the others of their account, however many there were", function* () {
  const { enter } = yield* portalWith(changeRoutes)
  const grace = yield* enter({ account: "shop", name: "Grace" })
  for (let n = 0; n < 21; n++) {
    const stream = yield* Effect.fork(grace.get(changes))
    yield* TestClock.adjust("1 second")
    expect([n, yield* Fiber.poll(stream)]).toMatchObject([n, { _tag: "None" }])
    yield* Fiber.interrupt(stream)
  }
})
