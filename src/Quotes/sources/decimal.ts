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
