import type { BigDecimal } from "effect"
import { formatUnits } from "viem"

/** The USD value of `amount` smallest units of a token at a price per whole token: a plain decimal. */
export const usdValueOf = (amount: bigint, decimals: number, price: BigDecimal.BigDecimal): string =>
  price.scale < 0
    ? formatUnits(amount * price.value * 10n ** BigInt(-price.scale), decimals)
    : formatUnits(amount * price.value, decimals + price.scale)
