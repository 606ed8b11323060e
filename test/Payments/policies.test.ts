import { describe, expect, it } from "@effect/vitest"
import { BigDecimal } from "effect"
import { requirementOf, usdValueOf } from "../../src/Payments/policies.ts"

describe("what a payment's value asks for", () => {
  const policies = [
    { aboveUsd: "100", require: "safe" },
    { aboveUsd: "10000", require: "finalized" }
  ] as const

  it.each([
    ["100", undefined],
    ["100.01", "safe"],
    ["10000", "safe"],
    ["10000.000000000000000001", "finalized"],
    [undefined, "finalized"]
  ] as const)("worth %s: %s", (value, expected) => {
    expect(requirementOf(policies, value)).toBe(expected)
  })

  it("nothing where the chain has no policy", () => {
    expect(requirementOf([], undefined)).toBeUndefined()
    expect(requirementOf([], "1000000")).toBeUndefined()
  })
})

it.each([
  [1_500_000n, 6, "1.0001", "1.50015"],
  [10n ** 18n, 18, "2500", "2500"],
  [1n, 18, "2500", "0.0000000000000025"],
  [3n, 0, "2e3", "6000"],
  [2n ** 256n - 1n, 6, "1", "115792089237316195423570985008687907853269984665640564039457584007913129.639935"]
] as const)("%s units of %i decimals at %s USD are worth %s", (amount, decimals, price, expected) => {
  expect(usdValueOf(amount, decimals, BigDecimal.unsafeFromString(price))).toBe(expected)
})
