import { expect, it } from "@effect/vitest"
import { Clock, Effect, TestClock } from "effect"
import { watchClock } from "../../src/Telemetry/clockJumps.ts"
import { type Descriptors, readDescriptors, watchDescriptors } from "../../src/Telemetry/fileDescriptors.ts"
import { Metrics } from "../../src/Telemetry/Metrics.ts"
import { watchPauses } from "../../src/Telemetry/pauses.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { collected } from "../lib/logs.ts"
import { clockTest, scopedTest } from "../lib/scopedTest.ts"

scopedTest(Metrics.layer)("a clock step is logged with its size, and counted; a slewed clock is not", function* () {
  const { lines, logger } = collected()
  let setBy = 0
  const clock = yield* Effect.clock
  const moved: Clock.Clock = {
    ...clock,
    [Clock.ClockTypeId]: clock[Clock.ClockTypeId],
    sleep: (time) => clock.sleep(time),
    currentTimeNanos: Effect.suspend(() => clock.currentTimeNanos),
    unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
    unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis() + setBy,
    currentTimeMillis: Effect.map(
      Effect.suspend(() => clock.currentTimeMillis),
      (now) => now + setBy
    )
  }
  yield* Effect.forkScoped(watchClock).pipe(Effect.withClock(moved), Effect.provide(logger))
  for (const change of [0, 1_500, 3_600_000, 0, -7_200_000]) {
    setBy += change
    yield* TestClock.adjust("1 second")
  }
  expect(lines.map(({ annotations, level }) => [level, annotations["bySeconds"]])).toEqual([
    ["WARN", 3_601.5],
    ["WARN", -7_200]
  ])
  const { clockJumps } = yield* Metrics
  expect(clockJumps.family.samples).toEqual([{ labels: {}, value: 2 }])
})

clockTest(
  "a pause of the process is logged with its length, also where a timer ran before the signal arrived",
  function* () {
    for (const ticksFirst of [false, true]) {
      const { lines, logger } = collected()
      let ahead = 0n
      const clock = yield* Effect.clock
      const moved: Clock.Clock = {
        ...clock,
        [Clock.ClockTypeId]: clock[Clock.ClockTypeId],
        sleep: (time) => clock.sleep(time),
        currentTimeMillis: Effect.suspend(() => clock.currentTimeMillis),
        unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis(),
        unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos() + ahead,
        currentTimeNanos: Effect.map(
          Effect.suspend(() => clock.currentTimeNanos),
          (now) => now + ahead
        )
      }
      const running = Effect.gen(function* () {
        const { note: tick } = yield* watchPauses
        ahead = 1_000_000_000n
        yield* tick
        ahead += 98_000_000_000n
        yield* Effect.when(tick, () => ticksFirst)
        process.emit("SIGCONT", "SIGCONT")
      })
      yield* Effect.scoped(running).pipe(Effect.withClock(moved), Effect.provide(logger))
      expect(lines, String(ticksFirst)).toMatchObject([{ level: "WARN", message: "the process was paused for 98 s" }])
    }
  }
)

scopedTest(Workers.layer)(
  "a process out of descriptors is not ready, logs it once a minute, and once when they are free again",
  function* () {
    const { lines, logger } = collected()
    let found: Descriptors | undefined = { open: 57, limit: 64 }
    yield* Effect.forkScoped(watchDescriptors(() => found)).pipe(Effect.provide(logger))
    yield* TestClock.adjust("5 seconds")
    expect(lines).toEqual([])
    const { health } = yield* Workers
    expect(yield* health).toEqual([{ name: "descriptors", ready: true }])
    found = { open: 64, limit: 64 }
    expect(yield* health).toEqual([
      { name: "descriptors", ready: false, reason: expect.stringContaining("64 of 64 file descriptors are open") }
    ])
    yield* TestClock.adjust("2 minutes")
    found = undefined
    expect(yield* health).toEqual([{ name: "descriptors", ready: true }])
    yield* TestClock.adjust("10 seconds")
    expect(lines.map(({ level }) => level)).toEqual(["ERROR", "ERROR", "ERROR", "INFO"])
    expect(lines[0]?.annotations).toMatchObject({ open: 64, limit: 64, service: "descriptors" })
  }
)

it("the descriptors of this process are counted", () => {
  const { limit = 0, open = 0 } = readDescriptors() ?? {}
  expect(open).toBeGreaterThan(3)
  expect(limit).toBeGreaterThan(open)
})
