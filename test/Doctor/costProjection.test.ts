import { expect, it } from "@effect/vitest"
import { Duration } from "effect"
import { project, type Sizes } from "../../src/Doctor/chains.ts"
import { testChain } from "../lib/settings.ts"

const sizes: Sizes = { look: 1_000, read: 1_000, block: 0, balances: 100 }
const chain = testChain({ pollInterval: Duration.seconds(2), balanceInterval: Duration.seconds(15) })

it("counts a look and a read each time that the head may have moved, and a balance call every interval", () => {
  const { hot } = project(chain, 2, sizes)
  // 43,200 looks and as many reads of two calls each; once a minute the tag with what it makes final.
  expect(hot.calls).toBe(4 * 43_200 + 3 * 1_440 + 5_760)
  expect(hot.bytes).toBe(2 * 43_200 * 1_000 + 1_440 * 1_500 + 5_760 * 100)
})

it("reads no more often than there are blocks, and blocks whole only where they are read so", () => {
  const slow = project(chain, 12, sizes)
  expect(slow.hot.calls).toBe(2 * 43_200 + 2 * 7_200 + 3 * 1_440 + 5_760)
  const whole = project(chain, 12, { ...sizes, block: 300_000 })
  expect(whole.hot.calls - slow.hot.calls).toBe(7_200)
  expect(whole.hot.bytes - slow.hot.bytes).toBe(7_200 * 300_000)
})

it("looks at price feeds twice a minute where there are some", () => {
  const calls = (mode: "live" | "test", name: "base" | "arbitrum", chainId: number) =>
    project({ ...chain, chain: name, mode, chainId }, 2, sizes).hot.calls
  expect(calls("live", "base", 8453) - calls("test", "base", 84532)).toBe(2_880)
})

it("asks for tags more often where payments may wait for one", () => {
  const policies = [{ aboveUsd: "10000", require: "finalized" as const }]
  const difference = project({ ...chain, policies }, 2, sizes).hot.calls - project(chain, 2, sizes).hot.calls
  expect(difference).toBe(3 * (7_200 - 1_440))
})

it("looks every fifteen seconds while only older payments are open, whatever the poll interval is below that", () => {
  const { open } = project(chain, 2, sizes)
  expect(open.calls).toBe(4 * 5_760 + 3 * 1_440 + 5_760)
  expect(project({ ...chain, pollInterval: Duration.millis(100) }, 2, sizes).open).toEqual(open)
  const seldom = project({ ...chain, pollInterval: Duration.minutes(1) }, 2, sizes)
  expect(seldom.open).toEqual(seldom.hot)
})

it("looks every four minutes while no payment is open, and still reads every block whole where they are read so", () => {
  const { idle } = project(chain, 2, sizes)
  expect(idle.calls).toBe(4 * 360 + 3 * 48 + 1)
  expect(project(chain, 12, { ...sizes, block: 1 }).idle.calls - idle.calls).toBe(7_200)
})
