import { execFileSync } from "node:child_process"
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { LogSink, StandardError, watchLog } from "../../src/Telemetry/LogSink.ts"
import { Metrics } from "../../src/Telemetry/Metrics.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { collected } from "../lib/logs.ts"
import { counted } from "../lib/prometheus.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"

const opened = (path: string, flags: string | number) =>
  Effect.acquireRelease(
    Effect.sync(() => openSync(path, flags)),
    (descriptor) => Effect.sync(() => closeSync(descriptor))
  )

const drained = (sink: LogSink) => Effect.async<void>((resume) => sink.drain(() => resume(Effect.void)))

const failing = (code: string) => Object.assign(new Error(code), { code })

clockTest("a full disk loses only the lines that do not fit", function* () {
  const full = yield* opened("/dev/full", "w")
  const sink = new LogSink((bytes) => writeSync(full, bytes))
  for (const line of ["one\n", "two\n"]) sink.write(Buffer.from(line))
  expect(sink).toMatchObject({ dropped: 2, failure: "ENOSPC" })
})

it("a line that was written in part on a full disk is not continued by the next one", () => {
  let room = 6
  let file = ""
  const sink = new LogSink((bytes) => {
    if (room === 0) throw failing("ENOSPC")
    const taken = Math.min(room, bytes.length)
    room -= taken
    file += Buffer.from(bytes.subarray(0, taken)).toString()
    return taken
  })
  sink.write(Buffer.from("one\n"))
  sink.write(Buffer.from("three\n"))
  sink.write(Buffer.from("four\n"))
  expect(sink).toMatchObject({ dropped: 2, failure: "ENOSPC" })
  room = 100
  sink.write(Buffer.from("five\n"))
  sink.write(Buffer.from("six\n"))
  expect(file).toBe("one\nth\nfive\nsix\n")
  expect(sink).toMatchObject({ dropped: 2, failure: undefined })
})

liveTest("a reader that stops blocks no writer; when it goes on it gets the waiting lines, in order", function* () {
  const path = join(yield* temporaryFolder, "pipe")
  execFileSync("mkfifo", [path])
  const pipe = yield* opened(path, constants.O_RDWR | constants.O_NONBLOCK)
  const sink = new LogSink((bytes) => writeSync(pipe, bytes))
  const line = (number: number) => `${String(number).padStart(1_023)}\n`
  const count = 8_192
  for (let number = 0; number < count; number++) sink.write(Buffer.from(line(number)))
  expect(sink.dropped).toBeGreaterThan(1_000)
  expect(sink.failure).toBe("its reader does not read")
  const written = count - sink.dropped
  let text = ""
  const pieces = Buffer.alloc(1 << 20)
  while (text.length < written * 1_024) {
    text += pieces.toString("utf8", 0, readSync(pipe, pieces))
    // Its last line is read in the next round.
    yield* Effect.raceFirst(drained(sink), Effect.sleep(0))
  }
  expect(text === Array.from({ length: written }, (_, number) => line(number)).join("")).toBe(true)
  expect(sink.failure).toBeUndefined()
})

it.scoped("missing lines are counted with their reason and, when the log can be written again, logged", () =>
  Effect.gen(function* () {
    const { lines, logger } = collected()
    let full = true
    const sink = new LogSink((bytes) => {
      if (full) throw failing("ENOSPC")
      return bytes.length
    })
    yield* Effect.forkScoped(watchLog).pipe(Effect.provide(logger), Effect.provideService(StandardError, sink))
    const { health } = yield* Workers
    const { logLinesDropped } = yield* Metrics
    yield* TestClock.adjust("5 seconds")
    expect(lines).toEqual([])
    expect(yield* health).toEqual([{ name: "log", ready: true }])
    for (const line of ["one\n", "two\n"]) sink.write(Buffer.from(line))
    expect(yield* health).toEqual([
      { name: "log", ready: true, reason: expect.stringMatching(/\(ENOSPC\): 2 lines are missing/) }
    ])
    full = false
    yield* TestClock.adjust("1 minute")
    expect(lines).toMatchObject([{ level: "WARN", annotations: { lines: 2, service: "log" } }])
    expect(yield* counted(logLinesDropped)).toBe(2)
    sink.write(Buffer.from("three\n"))
    expect(yield* health).toEqual([{ name: "log", ready: true }])
  }).pipe(Effect.provide(Layer.merge(Metrics.layer, Workers.layer)))
)
