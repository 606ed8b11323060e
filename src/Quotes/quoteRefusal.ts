import { parseUnits } from "viem"
import type { ChainName } from "../Domain/Chain.ts"
import { isToken, PaymentCurrency } from "../Domain/Currency.ts"
import { alternatives } from "../Domain/must.ts"
import { QuoteRefused } from "../Domain/PaymentErrors.ts"
import type { QuoteCurrency, QuoteObject } from "../Domain/Quote.ts"
import type { StoredQuote } from "./QuotesRepo.ts"

/** The terms of a payment that names a quote. Amount in base units. */
export interface Priced {
  readonly currency: PaymentCurrency
  readonly chain: ChainName
  readonly amount: bigint
}

interface Accepted {
  readonly currency: PaymentCurrency
  /** Base units, as digits. */
  readonly amounts: ReadonlyArray<string>
}

const isPayable = (currency: QuoteCurrency): currency is PaymentCurrency => isToken(currency) && currency !== "MATIC"

/** The terms that a payment may have with this quote: the amount bought, with or without fees, or the amount sold. */
const acceptedBy = (
  { chargeAmount, fromAmount, fromCurrency, toAmount, toCurrency }: QuoteObject,
  decimalsOn: (currency: PaymentCurrency) => number
): ReadonlyArray<Accepted> => {
  const accepted = (currency: PaymentCurrency, ...amounts: ReadonlyArray<string>) => ({
    currency,
    amounts: amounts.map((amount) => parseUnits(amount, decimalsOn(currency)).toString())
  })
  return [
    ...(isPayable(toCurrency) ? [accepted(toCurrency, toAmount, chargeAmount)] : []),
    ...(isPayable(fromCurrency) ? [accepted(fromCurrency, fromAmount)] : [])
  ]
}

const mismatchText = ({ fromCurrency, toCurrency }: QuoteObject, accepted: ReadonlyArray<Accepted>): string => {
  if (accepted.length > 0) return "The payment does not ask for what the quote prices: details has what would do."
  const none = "The quote prices nothing that a payment can be made in"
  return fromCurrency === "MATIC" || toCurrency === "MATIC"
    ? `${none}: MATIC can be quoted, but not paid in.`
    : `${none}: one of its currencies must be ${alternatives(PaymentCurrency.literals)}.`
}

const mismatch = (quote: QuoteObject, accepted: ReadonlyArray<Accepted>) =>
  new QuoteRefused({
    code: "QUOTE_MISMATCH",
    message: mismatchText(quote, accepted),
    details: { chain: quote.chain, accepted }
  })

/** How long a quote can be used, milliseconds. */
export const validityMillis = 30_000
/** By how much the clock may be set back while a quote is valid, milliseconds: as time servers do. */
const clockStep = 5_000

/**
 * Why `payment`, made at `now` (Unix milliseconds), cannot use the quote; undefined where it can.
 *
 * @param decimalsOn decimals of a currency on the payment's chain
 */
export const quoteRefusalOf = (
  { quote, used, validUntil }: Omit<StoredQuote, "id">,
  payment: Priced,
  decimalsOn: (currency: PaymentCurrency) => number,
  now: number
): QuoteRefused | undefined => {
  if (used) {
    return new QuoteRefused({ code: "QUOTE_ALREADY_USED", message: "A payment uses this quote: create a new quote." })
  }
  // A quote dated well after now was made before the clock was set back: by any other clock it may have expired.
  if (now > validUntil || validUntil - now > validityMillis + clockStep) {
    return new QuoteRefused({
      code: "QUOTE_EXPIRED",
      message: `The quote was valid until ${quote.validUntil}: create a new quote.`
    })
  }
  const accepted = acceptedBy(quote, decimalsOn)
  const amount = payment.amount.toString()
  const fits =
    quote.chain === payment.chain &&
    accepted.some(({ amounts, currency }) => currency === payment.currency && amounts.includes(amount))
  return fits ? undefined : mismatch(quote, accepted)
}
