import { expect } from "@effect/vitest"
import { Effect, Exit, Fiber, Queue, Stream } from "effect"
import { sessionOf } from "../../src/Auth/sessions.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import type { PortalRoute } from "../../src/Portal/route.ts"
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
    ["session", "UPDATE sessions SET hash = NULL"],
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
