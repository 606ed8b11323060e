import type { BigDecimal } from "effect"
import { pow10, ratio } from "./sources/rate.ts"

/** The decimals of every chain's native token. */
const nativeDecimals = 18n

const ceilDivide = (numerator: bigint, denominator: bigint): bigint => (numerator + denominator - 1n) / denominator

/** floor(amount × rate), in smallest units of a target currency with that many decimals. */
export const grossOf = (amount: BigDecimal.BigDecimal, rate: BigDecimal.BigDecimal, decimals: number): bigint => {
  const shift = BigInt(decimals - amount.scale - rate.scale)
  const product = amount.value * rate.value
  return shift >= 0n ? product * pow10(shift) : product / pow10(-shift)
}

/** The operator's fee, `bps` (1/100 %) of the gross amount, rounded up. Smallest units. */
export const serviceFeeOf = (gross: bigint, bps: number): bigint => ceilDivide(gross * BigInt(bps), 10_000n)

/**
 * Converts `wei` of a native token with the price `native` to a currency with the price `target` and that many decimals:
 * smallest units, rounded up. Both prices in the same currency.
 */
export const networkFeeOf = (
  wei: bigint,
  native: BigDecimal.BigDecimal,
  target: BigDecimal.BigDecimal,
  decimals: number
): bigint => {
  const [numerator, denominator] = ratio(native, target)
  return ceilDivide(wei * numerator * pow10(BigInt(decimals)), denominator * pow10(nativeDecimals))
}
