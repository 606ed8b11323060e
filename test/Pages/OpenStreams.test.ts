import { expect } from "@effect/vitest"
import { Effect, Exit, Fiber, Stream } from "effect"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { OpenStreams } from "../../src/Pages/OpenStreams.ts"
import { clockTest } from "../lib/scopedTest.ts"

/** Opens as many as it may, up to 2,000; they stay open until they are interrupted. */
const fill = Effect.fnUntraced(function* (
  streams: OpenStreams,
  names: (n: number) => readonly [payment: string, client: string]
) {
  const open: Array<Fiber.Fiber<void>> = []
  while (open.length < 2_000 && streams.mayOpen(...names(open.length))) {
    open.push(yield* Effect.fork(Stream.runDrain(streams.counted(...names(open.length), Stream.never))))
    yield* eventLoopTurn
  }
  return open
})

clockTest("a payment has three streams, a client twenty, and all have a thousand, or what else is set", function* () {
  const most = { ofAll: 4, ofSubject: 3, ofClient: 2 }
  expect(yield* fill(new OpenStreams(), (n) => ["one", `client ${n}`])).toHaveLength(3)
  expect(yield* fill(new OpenStreams(), (n) => [`payment ${n}`, "one"])).toHaveLength(20)
  expect(yield* fill(new OpenStreams(), (n) => [`payment ${n}`, `client ${n}`])).toHaveLength(1_000)
  expect(yield* fill(new OpenStreams(most), (n) => [`payment ${n}`, `client ${n}`])).toHaveLength(4)
  expect(yield* fill(new OpenStreams(most), (n) => [`payment ${n}`, "one"])).toHaveLength(2)
})

clockTest("a stream that has ended makes room for another, and leaves nothing behind", function* () {
  const streams = new OpenStreams()
  const [first, ...others] = yield* fill(streams, () => ["one", "one"])
  if (first !== undefined) yield* Fiber.interrupt(first)
  const more = yield* fill(streams, () => ["one", "one"])
  expect(more).toHaveLength(1)
  yield* Fiber.interruptAll([...others, ...more])
  expect(streams.size).toBe(0)
  yield* Stream.runDrain(streams.counted("one", "one", Stream.make(1)))
  expect(streams.size).toBe(0)
})

clockTest("of streams that were allowed together, those beyond the limit are what was said for them", function* () {
  const streams = new OpenStreams({ ofAll: 1, ofSubject: 1, ofClient: 1 })
  const beyond = Stream.fromEffect(Effect.interrupt)
  const [one, other] = [0, 1].map((n) => streams.counted("one", "one", Stream.never, n === 0 ? undefined : beyond))
  const kept = yield* Effect.fork(Stream.runDrain(one ?? Stream.empty))
  yield* eventLoopTurn
  const ended = yield* Effect.exit(Stream.runDrain(other ?? Stream.empty))
  expect(Exit.isInterrupted(ended)).toBe(true)
  yield* Fiber.interrupt(kept)
  expect(streams.size).toBe(0)
})
