import { spawnSync } from "node:child_process"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { liveTest } from "../lib/scopedTest.ts"
import { openShop, survives } from "./shop.ts"

/** Lets a process write no file beyond so many bytes; no limit unless given. Any user may lower and raise it. */
const limitFiles = (pid: number, bytes: number | "unlimited") =>
  Effect.sync(() => {
    const { status, stderr } = spawnSync("prlimit", ["--pid", String(pid), `--fsize=${bytes}:`], { encoding: "utf8" })
    expect(status, stderr).toBe(0)
  })

liveTest("a system that refuses every write to the database refuses payments, and loses none", function* () {
  const shop = yield* openShop()
  const { pid } = shop.daemon
  yield* survives(shop, limitFiles(pid, 4096), limitFiles(pid, "unlimited"), "the disk answered with an error")
})
