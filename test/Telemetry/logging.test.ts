import { expect, it } from "@effect/vitest"
import { Cause, Effect, type Layer, Logger } from "effect"
import { vi } from "vitest"
import { logProcessWarnings } from "../../src/Telemetry/host.ts"
import { commandLogger, loggingLayer } from "../../src/Telemetry/logging.ts"
import { collected } from "../lib/logs.ts"
import { liveTest } from "../lib/scopedTest.ts"

/** A provider's text: it clears the screen, sets the title, goes back to the start of the line and turns the rest round. */
const outside = "\u001b[2J\u001b]0;title\u0007\r\u009b31m\u202e"

/** What is written to standard error. */
const written = (log: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const spy = vi.spyOn(console, "error").mockImplementation((...parts) => void lines.push(parts.join(" ")))
    yield* Effect.ensuring(
      log,
      Effect.sync(() => spy.mockRestore())
    )
    return lines.join("\n")
  })

const all = Effect.logError(`failed: ${outside}`, Cause.fail(new Error(`cause: ${outside}`))).pipe(
  Effect.annotateLogs({ reason: `reason: ${outside}` })
)

it.live.each<[string, Layer.Layer<never>]>([
  ["the daemon's, as JSON", loggingLayer({ format: "json", level: "info" })],
  ["the daemon's, for people", loggingLayer({ format: "pretty", level: "info" })],
  ["the commands'", Logger.replace(Logger.defaultLogger, commandLogger)]
])("no text from outside controls a terminal through a log: %s", ([, logger]) =>
  Effect.gen(function* () {
    const text = yield* written(Effect.provide(all, logger))
    for (const part of ["failed: ", "cause: ", "reason: "]) expect(text).toContain(part)
    // The logger's own colours aside, which it writes to a terminal.
    expect(text.replace(/\p{Cc}\[\d*m/gu, "")).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u)
  })
)

liveTest("a span keeps no lines, so that one that never ends does not grow", function* () {
  const events: Array<string> = []
  const span = yield* Effect.makeSpan("endless")
  vi.spyOn(span, "event").mockImplementation((name) => void events.push(name))
  const work = Effect.withParentSpan(Effect.logInfo("a line"), span)
  expect(yield* written(Effect.provide(work, loggingLayer({ format: "json", level: "info" })))).toContain("a line")
  expect(events).toEqual([])
})

liveTest("a warning of Node is a line of the log", function* () {
  const { lines, logger } = collected()
  yield* Effect.provide(logProcessWarnings, logger)
  process.emitWarning("something is odd", "OddWarning")
  yield* Effect.promise(() => new Promise(setImmediate))
  expect(lines).toMatchObject([
    { level: "WARN", message: "Node warns: something is odd", annotations: { name: "OddWarning" } }
  ])
})
