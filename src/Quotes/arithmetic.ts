import { BigDecimal } from "effect"

/** Digits of a published rate. */
const significantDigits = 12n

/** Every chain's native coin has them. */
const nativeDecimals = 18n

const pow10 = (exponent: bigint): bigint => 10n ** exponent

const ceilDivide = (numerator: bigint, denominator: bigint): bigint => (numerator + denominator - 1n) / denominator

/** A positive quotient, rounded to an integer, ties to the even one. */
const divideHalfEven = (numerator: bigint, denominator: bigint): bigint => {
  const floor = numerator / denominator
  const twiceRest = (numerator % denominator) * 2n
  const up = twiceRest > denominator || (twiceRest === denominator && floor % 2n === 1n)
  return up ? floor + 1n : floor
}

/** `a / b` as a fraction of integers. Both above zero. */
const ratio = (
  a: BigDecimal.BigDecimal,
  b: BigDecimal.BigDecimal
): readonly [numerator: bigint, denominator: bigint] => {
  const shift = BigInt(b.scale - a.scale)
  return shift >= 0n ? [a.value * pow10(shift), b.value] : [a.value, b.value * pow10(-shift)]
}

/** The scale at which the quotient's integer part has exactly the digits of a rate. */
const scaleOf = (numerator: bigint, denominator: bigint): bigint => {
  // Right, or one too small: the first digits decide.
  const guess = significantDigits - BigInt(numerator.toString().length - denominator.toString().length) - 1n
  const scaled = (scale: bigint) =>
    scale >= 0n ? (numerator * pow10(scale)) / denominator : numerator / (denominator * pow10(-scale))
  return scaled(guess) >= pow10(significantDigits - 1n) ? guess : guess + 1n
}

/** Units of the target for one of the source, both prices above zero: 12 significant digits, half-even. */
export const rateOf = (from: BigDecimal.BigDecimal, to: BigDecimal.BigDecimal): BigDecimal.BigDecimal => {
  const [numerator, denominator] = ratio(from, to)
  const scale = scaleOf(numerator, denominator)
  return scale >= 0n
    ? BigDecimal.make(divideHalfEven(numerator * pow10(scale), denominator), Number(scale))
    : BigDecimal.make(divideHalfEven(numerator, denominator * pow10(-scale)) * pow10(-scale), 0)
}

/** floor(amount × rate), in smallest units of a target with that many decimals. */
export const grossOf = (amount: BigDecimal.BigDecimal, rate: BigDecimal.BigDecimal, decimals: number): bigint => {
  const shift = BigInt(decimals - amount.scale - rate.scale)
  const product = amount.value * rate.value
  return shift >= 0n ? product * pow10(shift) : product / pow10(-shift)
}

/** 0.5 % of the gross amount, rounded up. Smallest units. */
export const serviceFeeOf = (gross: bigint): bigint => ceilDivide(gross * 5n, 1000n)

/**
 * What `wei` of a native coin worth `native` are in a currency worth `target` with that many decimals: smallest units,
 * rounded up.
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
