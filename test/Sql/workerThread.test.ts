import { expect } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"
import { NoThread, threadOf } from "../../src/Sql/workerThread.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"

const running = (source: string) => new URL(`data:text/javascript,${encodeURIComponent(source)}`)

// A thread that answers the first message when it gets the second one.
const late = running(`
  import { parentPort } from "node:worker_threads"
  let held
  parentPort.on("message", (question) => {
    if (held !== undefined || question !== "first") parentPort.postMessage("answer to " + (held ?? question))
    held = question
  })
`)

// A thread that answers one message, or dies of it.
const dying = running(`
  import { parentPort } from "node:worker_threads"
  parentPort.once("message", (question) => {
    if (question === "die") throw new Error("no")
    parentPort.postMessage("answer to " + question)
  })
`)

clockTest("a late response is not taken for the response to the next message", function* () {
  const ask = yield* threadOf<string, string>(late, "10 seconds")
  const first = yield* Effect.fork(Effect.flip(ask("first")))
  yield* TestClock.adjust("10 seconds")
  expect(yield* Fiber.join(first)).toBeInstanceOf(NoThread)
  expect(yield* ask("second")).toBe("answer to second")
})

liveTest("a thread that dies is replaced at once", function* () {
  const ask = yield* threadOf<string, string>(dying, "10 seconds")
  expect(yield* Effect.flip(ask("die"))).toBeInstanceOf(NoThread)
  expect(yield* ask("second")).toBe("answer to second")
})
