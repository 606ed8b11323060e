/** A view in words, in the reader's language: what the parts of the page have in common. */

import { formatUnits, parseUnits } from "viem"
import { chainTraits } from "../Domain/Chain.ts"
import { isToken, type PriceCurrency } from "../Domain/Currency.ts"
import type { Texts } from "./english.ts"
import { checkoutTexts, type Language } from "./languages.ts"
import { type CheckoutView, isTooLate, misplaced } from "./view.ts"

/** Amounts as people write them, in their language. */

/** Intl's maximum on Node 20; a token with more is shown unformatted. */
const mostDecimals = 20

/** An amount without grouping and without zeros at the end, as wallets take it: `1234.5`. */
export const plainAmount = (units: bigint, decimals: number): string => formatUnits(units, decimals)

/** An amount with its currency, every digit of it: `25 USDC`, `1,234.50 USDC`. They stay on one line. */
export const amountText = (units: bigint, decimals: number, currency: string, language: Language): string => {
  const plain = plainAmount(units, decimals)
  const leastDecimals = plain.includes(".") ? Math.min(2, decimals) : 0
  const format = new Intl.NumberFormat(language, {
    minimumFractionDigits: leastDecimals,
    maximumFractionDigits: mostDecimals
  })
  // A string is formatted digit by digit, a number would be rounded.
  return `${decimals > mostDecimals ? plain : format.format(plain as `${number}`)}\u00a0${currency}`
}

/** Money of a fiat currency, with its symbol; `amount` is a decimal. */
export const fiatText = (amount: string, currency: PriceCurrency, language: Language): string =>
  isToken(currency)
    ? `${new Intl.NumberFormat(language, { maximumFractionDigits: 18 }).format(amount as `${number}`)}\u00a0${currency}`
    : new Intl.NumberFormat(language, { style: "currency", currency }).format(amount as `${number}`)

/** The share of a decimal amount that `part` has of `whole`, rounded down at its 18th decimal. */
export const shareOf = (amount: string, part: bigint, whole: bigint): string =>
  formatUnits((parseUnits(amount, 18) * part) / whole, 18)

/** A duration in words, rounded up: `40 seconds`, `20 minutes`. */
export const spelledTime = (seconds: number, language: Language): string => {
  const [value, unit] = seconds < 90 ? [Math.ceil(seconds / 10) * 10, "second"] : [Math.ceil(seconds / 60), "minute"]
  return new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "long" }).format(value)
}

/** The class of an amount by its length, so that its number is never broken. */
export const lengthOf = ({ length }: string): "long" | "longest" | undefined =>
  length > 28 ? "longest" : length > 16 ? "long" : undefined

export interface Wording {
  readonly language: Language
  readonly t: Texts
  readonly network: string
  /** An amount of the payment's currency. */
  readonly money: (units: bigint) => string
  /** The payment's state in one line: the page's heading, its title, and the screen reader's announcement. */
  readonly headline: string
}

export const wordingOf = (view: CheckoutView, language: Language): Wording => {
  const { amount, chain, currency, decimals, state } = view
  const t = checkoutTexts[language]
  const network = chainTraits[chain].displayName
  const money = (units: bigint) => amountText(units, decimals, currency, language)
  const headline = () => {
    if (isTooLate(view)) return t.headline.tooLate
    const wrong = misplaced(view)
    if (wrong !== undefined) return t.headline[wrong]
    if (state.kind === "failed" && state.reason === "insufficient_amount") {
      return t.headline.tooLittle(money(state.receipt.received), money(amount))
    }
    if (state.kind === "waiting") return t.headline.waiting(money(amount), network)
    return state.kind === "partPaid" ? t.headline.partPaid(money(state.ask.due)) : t.headline[state.kind]
  }
  return { language, t, network, money, headline: headline() }
}
