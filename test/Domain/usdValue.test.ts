import { expect, it } from "@effect/vitest"
import { BigDecimal } from "effect"
import { usdValueOf } from "../../src/Domain/Quote.ts"

it.each([
  [1_500_000n, 6, "1.0001", "1.50015"],
  [10n ** 18n, 18, "2500", "2500"],
  [1n, 18, "2500", "0.0000000000000025"],
  [3n, 0, "2e3", "6000"],
  [2n ** 256n - 1n, 6, "1", "115792089237316195423570985008687907853269984665640564039457584007913129.639935"]
] as const)("%s units of %i decimals at %s USD are worth %s", (amount, decimals, price, expected) => {
  expect(usdValueOf(amount, decimals, BigDecimal.unsafeFromString(price))).toBe(expected)
})
