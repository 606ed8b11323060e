import { chmodSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { examineReadSocket } from "../../src/Doctor.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"

clockTest("the doctor says whom the second socket is for, and what its folder lacks", function* () {
  const folder = join(yield* temporaryFolder, "run")
  const look = (readSocket: string) => examineReadSocket(testSettings("tilld.db", { control: { readSocket } }))
  const socket = join(folder, "read.sock")
  expect(yield* look("")).toEqual([])
  expect(yield* look(socket)).toMatchObject([{ status: "warn", finding: expect.stringContaining("cannot be entered") }])
  mkdirSync(folder)
  expect(yield* look(socket)).toMatchObject([{ status: "warn", finding: expect.stringContaining("not setgid") }])
  chmodSync(folder, 0o2750)
  expect(yield* look(socket)).toMatchObject([{ status: "ok", finding: expect.stringContaining("only read") }])
})
