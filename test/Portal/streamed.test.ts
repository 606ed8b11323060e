import { expect } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Queue, Stream, TestClock } from "effect"
import { sessionOf } from "../../src/Auth/sessions.ts"
import type { Owner } from "../../src/Domain/Account.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import type { PortalRoute } from "../../src/Portal/route.ts"
import { changeRoutes } from "../../src/Portal/routes.ts"
import { makeStreamed } from "../../src/Portal.ts"
import { Reader } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute } from "../lib/store.ts"
import { portalStore, portalWith } from "./room.ts"

const test = scopedTest(portalStore())

/** A portal with a file and a stream of events for admins, of which a line comes whenever it is given. */
const lines = Effect.gen(function* () {
  const given = yield* Queue.unbounded<string>()
  const route = (path: string, type: string): PortalRoute<never> => ({
    ...{ method: "GET", path, role: "admin" },
    handle: () =>
      Effect.succeed({ status: 200, headers: { "content-type": type }, text: "", rest: Stream.fromQueue(given) })
  })
  const { enter, visitor } = yield* portalWith([route("/file", "text/csv"), route("/events", "text/event-stream")])
  const give = (line: string) => Effect.zipRight(Queue.offer(given, line), Effect.repeatN(eventLoopTurn, 3))
  const end = Effect.zipRight(Queue.shutdown(given), Effect.repeatN(eventLoopTurn, 3))
  return { end, enter, give, visitor }
})

const at = (path: string) => `/portal/a/shop/test${path}`

for (const path of ["/file", "/events"]) {
  for (const [what, sql] of [
    ["session", "DELETE FROM sessions"],
    ["person", "UPDATE people SET disabled_at = 1"],
    ["role", "UPDATE people SET role = 'viewer'"]
  ] as const) {
    test(`${path} tells nothing once the ${what} has ended`, function* () {
      const { enter, give } = yield* lines
      const grace = yield* enter({ account: "shop", name: "Grace", role: "admin" })
      const reading = yield* Effect.fork(grace.get(at(path)))
      yield* give("one")
      expect(yield* Fiber.poll(reading)).toMatchObject({ _tag: "None" })
      yield* execute(sql)
      yield* give("two")
      expect(Exit.isInterrupted(yield* Fiber.await(reading))).toBe(true)
    })
  }
}

test("somebody exports two files at a time, and a page says so; one that is complete makes room", function* () {
  const { end, enter, give } = yield* lines
  const grace = yield* enter({ account: "shop", name: "Grace", role: "admin" })
  const files = yield* Effect.replicateEffect(Effect.fork(grace.get(at("/file"))), 2)
  yield* give("one")
  const third = yield* grace.get(at("/file"))
  expect([third.status, third.text.includes("Other exports are running")]).toEqual([429, true])
  yield* Fiber.interruptAll(files.slice(0, 1))
  const again = yield* Effect.fork(grace.get(at("/file")))
  yield* give("two")
  expect(yield* Fiber.poll(again)).toMatchObject({ _tag: "None" })
  yield* end
  yield* Fiber.interruptAll([...files, again])
})

test("the people of an account export six files at a time, whatever those of others do", function* () {
  const { enter, give } = yield* lines
  const file = (name: string, account = "shop") =>
    Effect.map(enter({ account, name, role: "admin" }), (person) => person.get(`/portal/a/${account}/test/file`))
  const files: Array<Fiber.Fiber<unknown>> = []
  for (const name of ["Ada", "Bob", "Cleo"]) {
    const one = yield* file(name)
    for (const each of [one, one]) files.push(yield* Effect.fork(each))
    yield* give("a line")
  }
  const seventh = yield* yield* file("Dan")
  expect([seventh.status, seventh.text.includes("Other exports are running")]).toEqual([429, true])
  const other = yield* Effect.fork(yield* file("Eve", "default"))
  yield* give("a line")
  expect(yield* Fiber.poll(other)).toMatchObject({ _tag: "None" })
  yield* Fiber.interruptAll([...files, other])
})

test("of files that are answered together, those beyond the limit are cut off: nobody takes them for empty", function* () {
  const { enter } = yield* lines
  const grace = yield* enter({ account: "shop", name: "Grace", role: "admin" })
  const signedIn = yield* sessionOf(grace.secret())
  const streamed = makeStreamed(yield* Reader)
  const file = { status: 200, headers: { "content-type": "text/csv" }, text: "", rest: Stream.never }
  const answers = [1, 2, 3].map(() => signedIn && streamed(file, signedIn, "shop", "admin"))
  const [one, two, three] = yield* Effect.forEach(
    answers,
    (answer) => Effect.fork(Stream.runDrain(answer?.rest ?? Stream.empty)),
    { concurrency: 1 }
  )
  expect(three && Exit.isInterrupted(yield* Fiber.await(three))).toBe(true)
  for (const fiber of [one, two]) expect(fiber && (yield* Fiber.poll(fiber))).toMatchObject({ _tag: "None" })
})

const changes = "/portal/a/shop/test/changes"
const bells: Array<{ readonly to: unknown; readonly bell: Queue.Queue<void> }> = []

const outbox = Layer.succeed(Outbox, {
  publish: () => Effect.dieMessage("nothing is published"),
  publishInvoice: () => Effect.dieMessage("nothing is published"),
  publishPlugin: () => Effect.dieMessage("nothing is published"),
  tellPlugins: () => Effect.never,
  listen: (to: Owner | string) =>
    Effect.map(Queue.unbounded<void>(), (bell) => {
      bells.push({ to, bell })
      return Queue.take(bell)
    })
})
const following = scopedTest(Layer.merge(portalStore(), outbox))

following("a stream says that something has changed, and nothing of what, and ends by itself", function* () {
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

following("a session has three at most, and one that ends makes room", function* () {
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

following("streams that have ended leave room to the others of their account, however many there were", function* () {
  const { enter } = yield* portalWith(changeRoutes)
  const grace = yield* enter({ account: "shop", name: "Grace" })
  for (let n = 0; n < 21; n++) {
    const stream = yield* Effect.fork(grace.get(changes))
    yield* TestClock.adjust("1 second")
    expect([n, yield* Fiber.poll(stream)]).toMatchObject([n, { _tag: "None" }])
    yield* Fiber.interrupt(stream)
  }
})
