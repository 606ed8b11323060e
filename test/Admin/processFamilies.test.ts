import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { exposition, makeProcessFamilies } from "../../src/Admin/metrics.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { readScrape } from "../lib/prometheus.ts"

/** Longer than any delay of the event loop by a busy machine. */
const blockedMillis = 2_000
const wasBlocked = (seconds = 0) => seconds > 1.5

it.scoped("every scrape reports the longest delay of the event loop, until its minute is over", () =>
  Effect.gen(function* () {
    const families = yield* makeProcessFamilies
    const worst = Effect.zipRight(
      eventLoopTurn,
      Effect.sync(() => readScrape(exposition(families())).value("tilld_event_loop_lag_max_seconds"))
    )
    // The first scrape starts the measurement.
    yield* Effect.repeat(worst, { until: (seconds = 0) => seconds > 0 })
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockedMillis)
    const first = yield* Effect.repeat(worst, { until: wasBlocked })
    expect(yield* worst).toBe(first)
    yield* TestClock.adjust("1 minute")
    expect([yield* worst, yield* worst]).toEqual([first, first])
    yield* TestClock.adjust("1 minute")
    expect(yield* worst).not.toSatisfy(wasBlocked)
  })
)
