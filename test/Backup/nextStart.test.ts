import { expect } from "@effect/vitest"
import { Redacted } from "effect"
import { renderRestored } from "../../src/commands/restore.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { liveXpub, testChain } from "../lib/settings.ts"
import { installation, wallet } from "./backing.ts"

liveTest("a report says at its end that tilld will start", function* () {
  const { backUp, restore } = yield* installation
  yield* backUp("a.db")
  const restored = yield* restore("a.db")
  expect(restored.refusals).toEqual([])
  const report = renderRestored(restored)
  expect(report).toMatch(/\n\nStart tilld now\.$/)
  expect(report).not.toContain("NOT WATCHED")
})

liveTest("names the wallets whose skipped addresses no start watches, and what to do", function* () {
  const { backUp, restore } = yield* installation
  yield* backUp("a.db")
  const over = { wallets: { live: undefined, test: Redacted.make(liveXpub) } }
  const report = renderRestored(yield* restore("a.db", { force: true, over }))
  expect(report).toContain(`NOT WATCHED: the skipped addresses of ${wallet}, whose extended public key`)
  expect(report).toContain("Configure that key for the next start")
})

liveTest(
  "ends with the reason why the next start fails, where the configuration lacks what payments need",
  function* () {
    const { backUp, restore } = yield* installation
    yield* backUp("a.db")
    const restored = yield* restore("a.db", { over: { chains: [testChain({ chain: "polygon" })] } })
    expect(restored.refusals).toMatchObject([{ at: "chains.base.test", need: "3 open payments need this chain" }])
    const report = renderRestored(restored)
    expect(report).not.toContain("Start tilld now")
    expect(report).toMatch(
      /\n\ntilld does not start with this configuration.*\n {2}chains\.base\.test: 3 open payments need this chain: put it back .*--chain base --mode test\n.*config check.*$/
    )
  }
)
