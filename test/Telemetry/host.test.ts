import { expect, it } from "@effect/vitest"
import { Clock, Effect, TestClock } from "effect"
import { type Descriptors, readDescriptors, watchClock, watchDescriptors } from "../../src/Telemetry/host.ts"
import { Metrics } from "../../src/Telemetry/Metrics.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { collected } from "../lib/logs.ts"
import { counted } from "../lib/prometheus.ts"
import { scopedTest } from "../lib/scopedTest.ts"

/** A clock whose times are that far ahead of the other's. */
const movedClock = (
  clock: Clock.Clock,
  by: () => { readonly millis: number; readonly nanos: bigint }
): Clock.Clock => ({
  ...clock,
  [Clock.ClockTypeId]: clock[Clock.ClockTypeId],
  sleep: (time) => clock.sleep(time),
  currentTimeMillis: Effect.suspend(() => Effect.map(clock.currentTimeMillis, (now) => now + by().millis)),
  currentTimeNanos: Effect.suspend(() => Effect.map(clock.currentTimeNanos, (now) => now + by().nanos)),
  unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis() + by().millis,
  unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos() + by().nanos
})

scopedTest(Metrics.layer)("a clock step is logged with its size, and counted; a slewed clock is not", function* () {
  const { lines, logger } = collected()
  let setBy = 0
  const moved = movedClock(yield* Effect.clock, () => ({ millis: setBy, nanos: 0n }))
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
  expect(yield* counted(clockJumps)).toBe(2)
})

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
    yield* TestClock.adjust("130 seconds")
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
