import { BigDecimal } from "effect"
import { formatUnits } from "viem"
import type { QuoteCurrency } from "./Quote.ts"

/** The USD value of `amount` smallest units of a token at a price per whole token: a plain decimal. */
export const usdValueOf = (amount: bigint, decimals: number, price: BigDecimal.BigDecimal): string =>
  price.scale < 0
    ? formatUnits(amount * price.value * 10n ** BigInt(-price.scale), decimals)
    : formatUnits(amount * price.value, decimals + price.scale)

/** The price of one unit in USD; undefined where none is known. */
export type PriceOf = (symbol: QuoteCurrency) => BigDecimal.BigDecimal | undefined

/** USD for an amount in base units, undefined where its price is not known. */
export const usdOf = (
  price: PriceOf,
  { decimals, symbol }: { readonly symbol: QuoteCurrency; readonly decimals: number },
  amount: bigint
): BigDecimal.BigDecimal | undefined => {
  const one = price(symbol)
  return one === undefined ? undefined : BigDecimal.multiply(one, BigDecimal.make(amount, decimals))
}

/** USD with two digits behind the point, rounded down. */
export const usdText = (usd: BigDecimal.BigDecimal | undefined): string | undefined => {
  if (usd === undefined) return undefined
  const cents = BigDecimal.scale(usd, 2).value
  return `${cents / 100n}.${(cents % 100n).toString().padStart(2, "0")}`
}
