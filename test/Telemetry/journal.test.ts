import { closeSync, fstatSync, openSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { LogLevel } from "effect"
import { isJournal, withPriority } from "../../src/Telemetry/logging.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"

it.each([
  [LogLevel.Fatal, 2],
  [LogLevel.Error, 3],
  [LogLevel.Warning, 4],
  [LogLevel.Info, 6],
  [LogLevel.Debug, 7],
  [LogLevel.Trace, 7]
] as const)("each line of level %s has its priority", (level, priority) => {
  expect(withPriority(level, "one\ntwo")).toBe(`<${priority}>one\n<${priority}>two`)
})

clockTest("only the stream that JOURNAL_STREAM names is the journal's", function* () {
  const folder = yield* temporaryFolder
  const [stream, other] = [openSync(join(folder, "1"), "w"), openSync(join(folder, "2"), "w")]
  const { dev, ino } = fstatSync(stream)
  const env = { JOURNAL_STREAM: `${dev}:${ino}` }
  expect(isJournal(env, stream)).toBe(true)
  expect(isJournal(env, other)).toBe(false)
  expect(isJournal({}, stream)).toBe(false)
  closeSync(stream)
  closeSync(other)
})
