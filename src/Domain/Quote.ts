import { BigDecimal, Schema } from "effect"
import { formatUnits } from "viem"
import { idPattern, text, timestamp } from "../lib/annotations.ts"
import { ChainName } from "./Chain.ts"
import { Fiat, Token } from "./Currency.ts"

/** The USD value of `amount` smallest units of a token at a price per whole token: a plain decimal. */
export const usdValueOf = (amount: bigint, decimals: number, price: BigDecimal.BigDecimal): string =>
  price.scale < 0
    ? formatUnits(amount * price.value * 10n ** BigInt(-price.scale), decimals)
    : formatUnits(amount * price.value, decimals + price.scale)

/** Compares plain decimals. */
export const isLess = (one: string, other: string): boolean =>
  BigDecimal.lessThan(BigDecimal.unsafeFromString(one), BigDecimal.unsafeFromString(other))

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

/** The currencies that can be priced: MATIC too, which no payment takes. */
export const QuoteCurrency = Schema.Literal(...Fiat.literals, ...Token.literals)
export type QuoteCurrency = typeof QuoteCurrency.Type

/** A request for a quote, each field checked on its own. */
export interface CreateQuote {
  readonly fromCurrency: QuoteCurrency
  readonly toCurrency: QuoteCurrency
  /** A decimal above zero. */
  readonly amount: string
  readonly chain?: ChainName | undefined
}

const decimal = (description: string) => text(description, { pattern: "^(0|[1-9][0-9]*)(\\.[0-9]+)?$" })

/**
 * The quote object of the API. `rate` is units of `toCurrency` for one `fromCurrency`; every amount but `fromAmount` is
 * in `toCurrency`, and chargeAmount = floor(fromAmount × rate) = toAmount + fees.network + fees.service, to the last digit.
 */
export const QuoteObject = Schema.Struct({
  id: text("Identifier of the quote: the `quoteId` of a payment.", idPattern("quote")),
  fromCurrency: QuoteCurrency.annotations({ description: "Source currency, as asked for." }),
  toCurrency: QuoteCurrency.annotations({ description: "Target currency, as asked for." }),
  fromAmount: decimal("What is converted, a decimal in `fromCurrency`, as asked for."),
  toAmount: decimal("What is received, a decimal in `toCurrency`; all fees are taken off."),
  chargeAmount: decimal(
    "What to charge a payer for what costs `fromAmount`, a decimal in `toCurrency`: `toAmount` and both fees together."
  ),
  rate: decimal("Units of `toCurrency` for one `fromCurrency`, 12 significant digits."),
  chain: text("The chain that token prices and the network fee are of.", { enum: ChainName.literals }),
  validUntil: timestamp("Until when the quote can be used, 30 seconds after its creation"),
  fees: Schema.Struct({
    network: decimal("Estimated cost of the transfer on the chain, in `toCurrency`."),
    service: decimal(
      "The fee of whoever runs this service, 0.5 % unless they set another, rounded up, in `toCurrency`."
    )
  }).annotations({ description: "What `toAmount` lacks of `fromAmount` × `rate`, rounded down." })
}).annotations({ identifier: "Quote", description: "A price that holds for 30 seconds, for one payment." })
export type QuoteObject = typeof QuoteObject.Type
