import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger, TestClock } from "effect"
import { notifyServiceManager } from "../../src/Telemetry/serviceManager.ts"
import { needs } from "../lib/needs.ts"
import { notifySocket } from "../lib/notifySocket.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"

const socket = { NOTIFY_SOCKET: "/nowhere" }

/** The notifications in this environment, and the warnings when they cannot be sent. */
const spoken = (env: Readonly<Record<string, string>>, fails = false) =>
  Effect.gen(function* () {
    const said: Array<string> = []
    const warnings: Array<unknown> = []
    const ready = yield* Deferred.make<void>()
    const fiber = yield* notifyServiceManager(env, Deferred.await(ready), (...variables) => {
      said.push(...variables)
      return fails ? Effect.fail("there is none") : Effect.void
    }).pipe(
      Effect.provide(
        Logger.replace(
          Logger.defaultLogger,
          Logger.make(({ message }) => warnings.push(message))
        )
      ),
      Effect.fork
    )
    yield* TestClock.adjust("1 second")
    return { said, warnings, ready: Deferred.succeed(ready, undefined), stop: Fiber.interrupt(fiber) }
  })

clockTest(
  "says that it is ready when it is, that it lives at half of the watchdog's time, and that it stops",
  function* () {
    const { ready, said, stop } = yield* spoken({ ...socket, WATCHDOG_USEC: "60000000" })
    expect(said).toEqual([])
    yield* ready
    yield* TestClock.adjust("1 second")
    expect(said.splice(0)).toEqual(["READY=1", "WATCHDOG=1"])
    yield* TestClock.adjust("28 seconds")
    expect(said).toEqual([])
    yield* TestClock.adjust("61 seconds")
    expect(said.splice(0)).toEqual(["WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"])
    yield* stop
    expect(said).toEqual(["STOPPING=1"])
  }
)

it.effect.each<[string, Readonly<Record<string, string>>, ReadonlyArray<string>]>([
  ["nothing without a socket", { WATCHDOG_USEC: "1000000" }, []],
  ["no sign of life that is not asked for", socket, ["READY=1", "STOPPING=1"]],
  ["none for another process", { ...socket, WATCHDOG_USEC: "1", WATCHDOG_PID: "1" }, ["READY=1", "STOPPING=1"]]
])("says %s", ([, env, expected]) =>
  Effect.gen(function* () {
    const { ready, said, stop } = yield* spoken(env)
    yield* ready
    yield* TestClock.adjust("1 hour")
    yield* stop
    expect(said).toEqual(expected)
  })
)

clockTest("a failure to notify is one warning", function* () {
  const { ready, said, warnings } = yield* spoken({ ...socket, WATCHDOG_USEC: "2000000" }, true)
  yield* ready
  yield* TestClock.adjust("10 seconds")
  expect(said.length).toBeGreaterThan(5)
  expect(warnings).toEqual([[expect.stringContaining("(there is none): install systemd-notify")]])
})

describe("the service manager", () => {
  needs("perl", "systemd-notify")

  liveTest("is heard at a real socket, and goes on without systemd-notify", function* () {
    const { env, line } = yield* notifySocket
    const heard = yield* Effect.fork(notifyServiceManager({ ...env, WATCHDOG_USEC: "100000" }, Effect.void))
    yield* line("READY=1")
    yield* line("WATCHDOG=1")
    yield* Fiber.interrupt(heard)
    yield* line("STOPPING=1")

    const warned = yield* Deferred.make<unknown>()
    const logger = Logger.make(({ message }) => Deferred.unsafeDone(warned, Effect.succeed(message)))
    const unheard = yield* notifyServiceManager({ ...env, PATH: "/nowhere" }, Effect.void).pipe(
      Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
      Effect.fork
    )
    expect(yield* Deferred.await(warned)).toEqual([expect.stringContaining("ENOENT")])
    expect(yield* Fiber.poll(unheard)).toMatchObject({ _tag: "None" })
  })
})
