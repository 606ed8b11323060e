import { BigDecimal, Option } from "effect"
import { formatUnits } from "viem"

/** Long enough for every price, and short enough that no text makes numbers of a million digits. */
const form = /^\d{1,30}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?$/

/** A decimal above zero, exactly as it is written. */
export const positiveDecimal = (text: unknown): Option.Option<BigDecimal.BigDecimal> =>
  typeof text === "string" && form.test(text)
    ? Option.filter(BigDecimal.fromString(text), ({ value }) => value > 0n)
    : Option.none()

/** The decimal without an exponent. */
export const showDecimal = (decimal: BigDecimal.BigDecimal): string => {
  const { scale, value } = BigDecimal.scale(decimal, Math.max(decimal.scale, 0))
  return formatUnits(value, scale)
}
