import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { LogLimit } from "../../src/Telemetry/LogLimit.ts"
import { collected } from "../lib/logs.ts"
import { clockTest } from "../lib/scopedTest.ts"

clockTest(
  "the lines a minute are limited for each key and in total, and a line reports what was left out",
  function* () {
    const { lines, logger } = collected()
    const limit = new LogLimit({ perKey: 2, inAll: 3 })
    const say = (key: string) => limit.write(key, Effect.logInfo(key)).pipe(Effect.provide(logger))
    for (const key of ["a", "a", "a", "a", "b", "b", "c"]) yield* say(key)
    expect(lines.map(({ annotations, message }) => [message, annotations["omitted"]])).toEqual([
      ["a", undefined],
      ["a", undefined],
      ["b", 2]
    ])
    yield* TestClock.adjust("1 minute")
    yield* say("a")
    expect(lines.at(-1)).toMatchObject({ message: "a", annotations: { omitted: 2 } })
    // A clock that is set back silences nothing.
    yield* TestClock.setTime(0)
    yield* say("c")
    expect(lines.at(-1)).toMatchObject({ message: "c" })
  }
)
