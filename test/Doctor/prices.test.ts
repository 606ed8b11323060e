import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import { examinePrices } from "../../src/Doctor.ts"
import { standardFiat } from "../../src/Domain/Currency.ts"
import type { SettingsShape } from "../../src/Settings.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testChain, testRates, testSettings } from "../lib/settings.ts"

const examine = (rates: SettingsShape["rates"], over: Partial<SettingsShape> = {}) =>
  Effect.map(examinePrices(testSettings("", { rates, ...over })), (findings) =>
    Object.fromEntries(findings.map(({ finding, name, status }) => [name, `${status}: ${finding}`]))
  ).pipe(Effect.provide(Rpc.layer))

const live = { chains: [testChain({ chain: "ethereum", mode: "live", chainId: 1 })] }

liveTest("fixed prices are fine for tests, and a warning where real money is quoted at them", function* () {
  expect(yield* examine(testRates({ ETH: "2500" }))).toEqual({
    "price of ETH": "ok: 2500 USD, as configured",
    prices: expect.stringMatching(/^warn: none is configured for (\w+, )+\w+: quotes in them are refused$/)
  })
  expect((yield* examine(testRates({ ETH: "2500" }), live))["price of ETH"]).toBe(
    "warn: 2500 USD, as configured, and live payments are quoted at it"
  )
})

liveTest("a currency without a price is a failure that says why, by each source", function* () {
  const sources = ["chainlink", "coinbase", "kraken"] as const
  const rates = { ...testRates(), sources, currencies: [...standardFiat, "CHF"] as const }
  const found = yield* examine(rates, live)
  expect(Object.keys(found)).toHaveLength(10)
  expect(found["price of CHF"]).toMatch(/^fail: .*coinbase: no answer/)
  expect(found["price of ETH"]).toMatch(
    /^fail: chainlink on ethereum: eth_chainId failed \(unreachable\); coinbase: no answer \(.*\); kraken: no answer/
  )
})
