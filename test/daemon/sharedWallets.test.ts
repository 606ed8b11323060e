import { readFileSync, writeFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import { homeOn, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { liveXpub } from "../lib/settings.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"

liveTest("a start with one wallet in both modes ends with 2 and names who uses it", function* () {
  const { home } = yield* homeOn("base")
  const wallet = `${home.folder}/shop.xpub`
  writeFileSync(wallet, `${liveXpub}\n`)
  const daemon = yield* serveHere(home)
  const made = ["accounts", "create", "--name", "Shop", "--live-xpub", wallet, "--config", home.config]
  const { id } = yield* tilldJson<{ id: string }>(made)
  yield* daemon.end("SIGTERM")
  writeFileSync(home.config, readFileSync(home.config, "utf8").replace(/test = "xpub\w+"/, `test = "${liveXpub}"`))
  const { code, stderr } = yield* tilld(["serve", "--config", home.config])
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(`account ${id} (live)`) })
  expect(stderr).toContain("the configuration (wallets.test)")
  expect(stderr).not.toContain("xpub")
})
