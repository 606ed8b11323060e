import { execFile } from "node:child_process"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"

it.live("contracts.json is what its sources compile to", () =>
  Effect.gen(function* () {
    const complaint = yield* Effect.async<string>((resume) => {
      execFile(process.execPath, ["scripts/contracts.mjs", "--check"], (error, _stdout, stderr) =>
        resume(Effect.succeed(error === null ? "" : stderr || error.message))
      )
    })
    expect(complaint).toBe("")
  })
)
