import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { dirname, join } from "node:path"
import { expect } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, TestClock } from "effect"
import { serveHttp } from "../../src/Http/listener.ts"
import { runDaemon } from "../../src/main.ts"
import { acquire } from "../../src/Sql/InstanceLock.ts"
import { retryPatiently } from "../../src/Telemetry/patience.ts"
import { configuration } from "../commands/installation.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { silentListener } from "../lib/silentListener.ts"
import { temporaryDatabase } from "../lib/store.ts"

const silentLogger = (warnings: Array<unknown>) =>
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ message }) => warnings.push(message))
  )

clockTest("a temporary failure is waited out for a minute, with a warning for each reason", function* () {
  const warnings: Array<unknown> = []
  let tries = 0
  const failing = Effect.suspend(() => Effect.fail({ message: ++tries < 10 ? "held by one" : "held by two" }))
  const fiber = yield* failing.pipe(
    retryPatiently(() => true),
    Effect.provide(silentLogger(warnings)),
    Effect.fork
  )
  yield* TestClock.adjust("59 seconds")
  expect(yield* Fiber.poll(fiber)).toMatchObject({ _tag: "None" })
  yield* TestClock.adjust("2 seconds")
  expect(yield* Fiber.await(fiber)).toEqual(Exit.fail({ message: "held by two" }))
  expect(warnings).toEqual([["held by one"], ["held by two"]])
  tries = 0
  expect(yield* Effect.exit(retryPatiently(() => false)(failing))).toEqual(Exit.fail({ message: "held by one" }))
  expect(tries).toBe(1)
})

liveTest("a port in use is listened on when it is free", function* () {
  const holder = createServer()
  const port = yield* Effect.async<number>((resume) => {
    holder.listen({ host: "127.0.0.1", port: 0 }, () => {
      const address = holder.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
  const warned = yield* Deferred.make<unknown>()
  const logger = Logger.make(({ message }) => Deferred.unsafeDone(warned, Effect.succeed(message)))
  const listening = yield* serveHttp(() => Effect.never, { host: "127.0.0.1", port }).pipe(
    Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
    Effect.fork
  )
  expect(yield* Deferred.await(warned)).toEqual([expect.stringContaining(`127.0.0.1:${port}: the port is taken`)])
  yield* Effect.async<void>((resume) => void holder.close(() => resume(Effect.void)))
  expect(yield* Fiber.join(listening)).toEqual({ host: "127.0.0.1", port })
})

clockTest("a port that stays in use is a temporary error", function* () {
  const { port } = yield* silentListener()
  const ofNode: Array<Error> = []
  const note = (warning: Error) => void ofNode.push(warning)
  process.on("warning", note)
  const warned = yield* Deferred.make<void>()
  const logger = Logger.make(() => Deferred.unsafeDone(warned, Effect.void))
  const listening = yield* serveHttp(() => Effect.never, { host: "127.0.0.1", port }).pipe(
    Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
    Effect.flip,
    Effect.fork
  )
  yield* Deferred.await(warned)
  yield* TestClock.adjust("61 seconds")
  expect(yield* Fiber.join(listening)).toMatchObject({ _tag: "AddressUnavailable" })
  process.off("warning", note)
  // Such as listeners that each try leaves behind.
  expect(ofNode).toEqual([])
})

clockTest("a lock that stays held ends a start with a temporary error that names the holder", function* () {
  const database = yield* temporaryDatabase
  const path = join(dirname(database), "tilld.toml")
  writeFileSync(path, configuration)
  yield* acquire(database, "rescan")
  const env = { TILLD_DATABASE__PATH: database, TILLD_LOG__LEVEL: "error" }
  const start = yield* Effect.fork(Effect.flip(runDaemon({ path, env })))
  yield* TestClock.adjust("59 seconds")
  expect(yield* Fiber.poll(start)).toMatchObject({ _tag: "None" })
  yield* TestClock.adjust("2 seconds")
  expect(yield* Fiber.join(start)).toMatchObject({
    _tag: "DatabaseHeld",
    message: expect.stringContaining(`tilld rescan, process ${process.pid}`)
  })
})
