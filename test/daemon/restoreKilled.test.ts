import { readdirSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import type { Restored } from "../../src/Backup/restore.ts"
import { homeOn, rows, serve } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { root, tilld, tilldJson } from "../lib/tilld.ts"

const order = { chain: "optimism", currency: "USDC", amount: "25000000" } as const

const killedAt = (step: number) => ({
  KILL_AT: String(step),
  NODE_OPTIONS: `--import=${join(root, "test/lib/killAt.mjs")}`
})

const wholeDatabase = (path: string) =>
  Effect.sync(() => {
    const database = new Database(path)
    const found = [
      database.pragma("integrity_check", { simple: true }),
      database.prepare("SELECT count(*) FROM payments").pluck().get()
    ]
    database.close()
    return found
  })

liveTest(
  "a backup and a restore that are killed before any of their steps lose nothing, and work when they are repeated",
  function* () {
    const { home } = yield* homeOn("optimism")
    const folder = yield* temporaryFolder
    const file = join(folder, "a.db")
    const config = ["--config", home.config]
    const daemon = yield* serve(home)
    yield* daemon.create(order)

    const outcomes: Array<string> = []
    for (let step = 1; outcomes.at(-1) !== "done"; step++) {
      const { code, signal } = yield* tilld(["backup", file, ...config], { env: killedAt(step) })
      if (signal === "SIGKILL")
        expect([[], ["a.db"]]).toContainEqual(readdirSync(folder).filter((name) => !name.endsWith("partial")))
      // Killed after it had its name: that is a whole backup, which a second run does not replace.
      const has = readdirSync(folder).includes("a.db")
      if (has) expect(yield* wholeDatabase(file)).toEqual(["ok", 1])
      outcomes.push(code === 0 || has ? "done" : "killed")
    }
    expect(outcomes.length).toBeGreaterThan(1)
    const { code } = yield* tilld(["backup", file, "--force", ...config])
    expect([code, readdirSync(folder)]).toEqual([0, ["a.db"]])

    yield* daemon.create(order)
    yield* daemon.end("SIGKILL")
    let killed = 0
    for (let step = 1; ; step++) {
      const { code, signal, stderr } = yield* tilld(["restore", file, "--force", ...config], { env: killedAt(step) })
      const [{ n } = { n: 0 }] = yield* rows<{ n: number }>(home, "SELECT count(*) AS n FROM payments")
      expect(n, `step ${step}: ${stderr}`).toBe(signal === "SIGKILL" && killed === step - 1 && n === 2 ? 2 : 1)
      if (signal === "SIGKILL") killed++
      if (n === 1) {
        expect([code, signal]).toContain(signal === null ? 0 : "SIGKILL")
        break
      }
    }
    expect(killed).toBeGreaterThan(3)
    const restored = yield* tilldJson<Restored>(["restore", file, "--force", ...config])
    expect(restored.wallets).toMatchObject([{ from: 1, next: 1002 }])
    const kept = readdirSync(home.folder).filter((name) => /before-restore-\d+T\d+Z$/.test(name))
    const counts = yield* Effect.forEach(kept, (name) => wholeDatabase(join(home.folder, name)))
    expect(counts).toContainEqual(["ok", 2])
    const again = yield* serve(home, daemon.key)
    yield* again.create(order)
  }
)
