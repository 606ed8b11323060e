import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { formatUnits } from "viem"
import { toBaseUnits } from "../../src/client/index.ts"
import { decimalsOf, PaymentCurrency } from "../../src/Domain/Currency.ts"

it("a decimal amount becomes the token's smallest units, and back again", () =>
  fc.assert(
    fc.property(fc.constantFrom(...PaymentCurrency.literals), fc.bigInt(1n, 2n ** 256n - 1n), (currency, units) => {
      expect(toBaseUnits(formatUnits(units, decimalsOf[currency]), currency)).toBe(units.toString())
    })
  ))

it.each([
  ["54.63", "USDC", "54630000"],
  ["0.000001", "USDC", "1"],
  ["007", "WBTC", "700000000"],
  ["1.500000", "USDT", "1500000"]
] as const)("%s %s are %s", (amount, currency, units) => expect(toBaseUnits(amount, currency)).toBe(units))

it.each(["usdc", "MATIC", "USDC.e", "toString"])(
  "the currency %j is refused: no one knows its decimals",
  (currency) => {
    expect(() => Reflect.apply(toBaseUnits, undefined, ["54.63", currency])).toThrow(RangeError)
  }
)

it.each(["", "0", "0.0", "-1", "1e3", "1,5", ".5", "1.", " 1", "0x10", "1.0000001", "NaN"])(
  "%j is refused",
  (amount) => {
    expect(() => toBaseUnits(amount, "USDC")).toThrow(RangeError)
  }
)
