// tilld status beside a daemon whose chains no provider serves.
import { appendFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { liveTest } from "../lib/scopedTest.ts"
import { liveXpub } from "../lib/settings.ts"
import { installation } from "./installation.ts"

liveTest("says what is wrong, worst first, and fails while customers or money are concerned", function* () {
  const { folder, start, tilld } = yield* installation
  const absent = yield* tilld(["status"])
  expect(absent).toMatchObject({ code: 2, stderr: expect.stringContaining("systemctl start tilld") })
  const env = { TILLD_WALLETS__LIVE: liveXpub, TILLD_RATES__SOURCES: '["fixed"]', TILLD_RATES__FIXED__ETH: "2500" }
  appendFileSync(join(folder, "tilld.toml"), `[chains.base.live]\nrpc_urls = ["http://127.0.0.1:1"]\n`)
  yield* start(env)
  const { code, stderr, stdout } = yield* tilld(["status"], env)
  expect([code, stderr]).toEqual([1, "tilld: 1 condition concerns customers or money now\n"])
  const [first, sales, money, ...conditions] = stdout.trimEnd().split("\n")
  expect(first).toMatch(/^tilld \S+, process \d+, runs since \d{4}-\S+Z$/)
  expect([sales, money]).toEqual([
    "Are sales refused? no",
    "Is money missed? YES, chain_not_read base.live; balances last compared with the ledger: not yet"
  ])
  expect(conditions[0]).toMatch(
    /^PAGE {4}chain_not_read base\.live, since a moment ago: base\.live is not read, .*\. Remedy: /
  )
  const rest = conditions.slice(1).map((line) => line.split(",")[0])
  expect(rest).toContain("NOTE    chain_not_read base.test")
  expect(rest).toContain("NOTE    nobody_is_told")
  const json = JSON.parse((yield* tilld(["status", "--json"], env)).stdout)
  expect(json.moneyMissed).toEqual(["chain_not_read base.live"])
  expect(json.conditions[0]).toMatchObject({ key: "chain_not_read", subject: "base.live", severity: "page" })
})
