import type { BigDecimal } from "effect"
import { formatUnits } from "viem"

/** What `amount` smallest units of a token are worth at a price of a whole one, in USD: a plain decimal. */
export const usdValueOf = (amount: bigint, decimals: number, price: BigDecimal.BigDecimal): string =>
  price.scale < 0
    ? formatUnits(amount * price.value * 10n ** BigInt(-price.scale), decimals)
    : formatUnits(amount * price.value, decimals + price.scale)
