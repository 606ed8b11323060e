import { Data, Schema } from "effect"
import type { ChainName } from "./Chain.ts"
import { Fiat, Token } from "./Currency.ts"

/** What can be priced. */
export const QuoteCurrency = Schema.Literal(...Fiat.literals, ...Token.literals)
export type QuoteCurrency = typeof QuoteCurrency.Type

/** What a merchant asks to have priced, each field checked in itself. */
export interface CreateQuote {
  readonly fromCurrency: QuoteCurrency
  readonly toCurrency: QuoteCurrency
  /** A decimal above zero. */
  readonly amount: string
  readonly chain?: ChainName | undefined
}

/**
 * The quote object of the API. `rate` is units of `toCurrency` for one `fromCurrency`; every amount but `fromAmount` is
 * in `toCurrency`, and floor(fromAmount × rate) = toAmount + fees.network + fees.service, to the last digit.
 */
export const QuoteObject = Schema.Struct({
  id: Schema.String,
  fromCurrency: QuoteCurrency,
  toCurrency: QuoteCurrency,
  fromAmount: Schema.String,
  toAmount: Schema.String,
  rate: Schema.String,
  chain: Schema.String,
  validUntil: Schema.String,
  fees: Schema.Struct({ network: Schema.String, service: Schema.String })
}).annotations({ identifier: "Quote" })
export type QuoteObject = typeof QuoteObject.Type

/** The fields do not go together: everything that is wrong, by field. */
export class QuoteImpossible extends Data.TaggedError("QuoteImpossible")<{
  readonly problems: ReadonlyArray<{ readonly path: string; readonly message: string }>
}> {}

/** No fresh price, or no recent gas price, is known. Asking again later may help. */
export class RateUnavailable extends Data.TaggedError("RateUnavailable")<{ readonly message: string }> {}

/** The fees eat up the amount. Both in `toCurrency`. */
export class AmountTooSmall extends Data.TaggedError("AmountTooSmall")<{
  readonly gross: string
  readonly fees: { readonly network: string; readonly service: string }
}> {}
