import { expect, it } from "vitest"
import { decimalsOn, formatAmount } from "../../src/Domain/Currency.ts"
import { worthText } from "../../src/Domain/LedgerRow.ts"

const base = { chain: "base", mode: "test" } as const
const networks = [{ ...base, tokens: [{ symbol: "USDC", decimals: 8 }] }]

it("decimals are those configured on the network, otherwise those of the public networks", () => {
  expect(decimalsOn(networks, base, "USDC")).toBe(8)
  expect(decimalsOn(networks, base, "ETH")).toBe(18)
  expect(decimalsOn(networks, { chain: "base", mode: "live" }, "USDC")).toBe(6)
  expect(decimalsOn(networks, base, "USDC.e")).toBeUndefined()
  expect(decimalsOn(networks, base, `0x${"1".repeat(40)}`)).toBeUndefined()
})

it.each([
  ["54615517", "USDC", 6, "54.615517 USDC"],
  ["25000000", "USDC", 6, "25.000000 USDC"],
  ["1", "ETH", 18, "0.000000000000000001 ETH"],
  ["0", "WBTC", 8, "0.00000000 WBTC"],
  ["7", "USDC", 0, "7 USDC"],
  ["1000", "USDC.e", undefined, "1000 base units of USDC.e"]
])("%s base units of %s with %s decimals are %s", (amount, currency, decimals, text) => {
  expect(formatAmount(amount, currency, decimals)).toBe(text)
})

it.each([
  [1_100_000n, "USD", "110.00"],
  [1_100_012n, "USD", "110.0012"],
  [-1_105_000n, "EUR", "-110.50"],
  [1_105_000n, "JPY", "110.5"],
  [0n, "JPY", "0"]
] as const)("%s hundredths of a cent of %s are %s", (worth, currency, text) => {
  expect(worthText(worth, currency)).toBe(text)
})
