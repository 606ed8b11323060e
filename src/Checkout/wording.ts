/** A view in words, in the reader's language: what the parts of the page have in common. */
import { chainTraits } from "../Domain/Chain.ts"
import { amountText, countText } from "./amounts.ts"
import { checkoutTexts, type Language } from "./languages.ts"
import type { Texts } from "./Texts.ts"
import { type CheckoutView, isTooLate, misplaced } from "./view.ts"

export interface Wording {
  readonly language: Language
  readonly t: Texts
  readonly network: string
  /** An amount of the payment's currency. */
  readonly money: (units: bigint) => string
  readonly count: (count: number) => string
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
    if (wrong !== undefined) return wrong === "wrong_chain" ? t.headline.wrongChain : t.headline.wrongToken
    if (state.kind === "failed" && state.reason === "insufficient_amount") {
      return t.headline.tooLittle(money(state.receipt.received), money(amount))
    }
    if (state.kind === "waiting") return t.headline.waiting(money(amount), network)
    return state.kind === "partPaid" ? t.headline.partPaid(money(state.ask.due)) : t.headline[state.kind]
  }
  return { language, t, network, money, count: (count) => countText(count, language), headline: headline() }
}
