import { execFile } from "node:child_process"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { liveTest } from "../lib/scopedTest.ts"

liveTest("contracts.json is what its sources compile to", function* () {
  const complaint = yield* Effect.async<string>((resume) => {
    execFile(process.execPath, ["scripts/contracts.mjs", "--check"], (error, _stdout, stderr) =>
      resume(Effect.succeed(error === null ? "" : stderr || error.message))
    )
  })
  expect(complaint).toBe("")
})
