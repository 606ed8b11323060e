import { BigDecimal, Option } from "effect"
import { formatUnits } from "viem"

/** Long enough for every price, and bounded, so that no text becomes a number of a million digits. */
const form = /^\d{1,30}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?$/

/** Parses a decimal above zero exactly; none for anything else. */
export const positiveDecimal = (text: unknown): Option.Option<BigDecimal.BigDecimal> =>
  typeof text === "string" && form.test(text)
    ? Option.filter(BigDecimal.fromString(text), ({ value }) => value > 0n)
    : Option.none()

/** The decimal without an exponent. */
export const showDecimal = (decimal: BigDecimal.BigDecimal): string => {
  const { scale, value } = BigDecimal.scale(decimal, Math.max(decimal.scale, 0))
  return formatUnits(value, scale)
}

/** Digits of a published rate. */
const significantDigits = 12n

export const pow10 = (exponent: bigint): bigint => 10n ** exponent

/** A positive quotient, rounded to an integer, ties to the even one. */
const divideHalfEven = (numerator: bigint, denominator: bigint): bigint => {
  const floor = numerator / denominator
  const twiceRest = (numerator % denominator) * 2n
  const up = twiceRest > denominator || (twiceRest === denominator && floor % 2n === 1n)
  return up ? floor + 1n : floor
}

/** `a / b` as a fraction of integers. Both above zero. */
export const ratio = (
  a: BigDecimal.BigDecimal,
  b: BigDecimal.BigDecimal
): readonly [numerator: bigint, denominator: bigint] => {
  const shift = BigInt(b.scale - a.scale)
  return shift >= 0n ? [a.value * pow10(shift), b.value] : [a.value, b.value * pow10(-shift)]
}

/** The scale at which the quotient has exactly the significant digits of a rate in its integer part. */
const scaleOf = (numerator: bigint, denominator: bigint): bigint => {
  // Exact, or one too small: that depends on the leading digits.
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

/** One unit of the target in the source: 12 significant digits. */
export const inverseOf = (rate: BigDecimal.BigDecimal): BigDecimal.BigDecimal => rateOf(BigDecimal.make(1n, 0), rate)
