import { BigDecimal, Option } from "effect"
import fc from "fast-check"
import { formatUnits } from "viem"
import { describe, expect, it } from "vitest"
import { rateOf } from "../../src/Quotes/sources/rate.ts"
import { grossOf, networkFeeOf, serviceFeeOf } from "../../src/Quotes.ts"

const decimal = (text: string) => Option.getOrThrow(BigDecimal.fromString(text))

/** A positive decimal as its digits and the number of them after the point. */
const positive = (maxScale: number, maxDigits = 30) =>
  fc
    .tuple(fc.bigInt(1n, 10n ** BigInt(maxDigits)), fc.integer({ min: 0, max: maxScale }))
    .map(([value, scale]) => ({ value, scale, decimal: BigDecimal.make(value, scale) }))

const pow10 = (n: number) => 10n ** BigInt(n)

/** Sign of a/b - c/d, for positive denominators. */
const compare = (a: bigint, b: bigint, c: bigint, d: bigint) => {
  const difference = a * d - c * b
  return difference === 0n ? 0 : difference > 0n ? 1 : -1
}

describe("the rate", () => {
  it.each([
    ["1", "1.10", "0.909090909091"],
    ["1", "2500", "0.0004"],
    // Halfway: to the even neighbour.
    ["1.000000000005", "1", "1"],
    ["1.000000000015", "1", "1.00000000002"],
    ["1.000000000025", "1", "1.00000000002"],
    ["1.0000000000250000000001", "1", "1.00000000003"],
    // Rounded up to one digit more.
    ["9.9999999999999", "1", "10"],
    ["123456789012345", "1", "123456789012000"]
  ])("of %s to %s is %s", (from, to, rate) => {
    const { scale, value } = rateOf(decimal(from), decimal(to))
    expect(formatUnits(value, scale)).toBe(rate)
  })

  it("has 12 significant digits and is the nearest such number, the even one of two", () => {
    void fc.assert(
      fc.property(positive(18), positive(18), (from, to) => {
        const rate = rateOf(from.decimal, to.decimal)
        // from/to as a fraction.
        const [a, b] = [from.value * pow10(to.scale), to.value * pow10(from.scale)]
        // The digits that count, and the unit of the last of them as a fraction.
        const digits = rate.value.toString().replace(/0+$/, "")
        expect(digits.length).toBeLessThanOrEqual(12)
        const exponent = rate.value.toString().length - 12 - rate.scale
        const [unitTop, unitBottom] = exponent >= 0 ? [pow10(exponent), 1n] : [1n, pow10(-exponent)]
        const [top, bottom] = [rate.value, pow10(rate.scale)]
        // |rate - a/b| <= unit / 2
        const error = top * b - a * bottom
        const side = compare((error < 0n ? -error : error) * 2n, bottom * b, unitTop, unitBottom)
        expect(side).toBeLessThanOrEqual(0)
        if (side === 0) expect(((top * unitBottom) / (bottom * unitTop)) % 2n).toBe(0n)
      }),
      { numRuns: 2_000 }
    )
  })
})

it("the gross amount is the product, rounded down at the target's decimals", () => {
  void fc.assert(
    fc.property(positive(18), positive(30, 12), fc.integer({ min: 0, max: 18 }), (amount, rate, decimals) => {
      const gross = grossOf(amount.decimal, rate.decimal, decimals)
      const [top, bottom] = [amount.value * rate.value * pow10(decimals), pow10(amount.scale + rate.scale)]
      expect(gross * bottom <= top && top < (gross + 1n) * bottom).toBe(true)
    })
  )
})

it("the service fee is its share of the gross amount, rounded up", () => {
  const half = (gross: bigint) => serviceFeeOf(gross, 50)
  expect([0n, 1n, 199n, 200n, 201n, 400n, 10_000n].map(half)).toEqual([0n, 1n, 1n, 1n, 2n, 2n, 50n])
  void fc.assert(
    fc.property(fc.bigInt(1n, 10n ** 40n), fc.integer({ min: 1, max: 5_000 }), (gross, bps) => {
      const fee = serviceFeeOf(gross, bps)
      expect(fee * 10_000n >= gross * BigInt(bps) && (fee - 1n) * 10_000n < gross * BigInt(bps)).toBe(true)
    })
  )
  expect(serviceFeeOf(10n ** 40n, 0)).toBe(0n)
})

it("the network fee is the cost at the two prices, rounded up", () => {
  void fc.assert(
    fc.property(
      fc.bigInt(0n, 10n ** 20n),
      positive(18, 24),
      positive(18, 24),
      fc.integer({ min: 0, max: 18 }),
      (wei, native, target, decimals) => {
        const fee = networkFeeOf(wei, native.decimal, target.decimal, decimals)
        const top = wei * native.value * pow10(target.scale) * pow10(decimals)
        const bottom = pow10(18) * target.value * pow10(native.scale)
        expect(fee * bottom >= top && (fee - 1n) * bottom < top).toBe(true)
      }
    )
  )
})
