/**
 * The page on which a payer chooses the token and the network for a price in fiat money: each is a button of one form. The
 * island moves to the top what was chosen last in this browser.
 */
import { type ChainName, chainTraits, type Mode } from "../Domain/Chain.ts"
import { decimalsOf, type PaymentCurrency } from "../Domain/Currency.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import { Disc } from "../Pages/marks.tsx"
import { pageReply } from "../Pages/reply.tsx"
import { TimeLeft } from "./Asking.tsx"
import { type CheckoutPageProps, Framed, renderFramed } from "./CheckoutPage.tsx"
import { checkoutTexts, type Language } from "./languages.ts"
import { mark, type RenderedPage } from "./RenderedPages.ts"
import type { Worth } from "./readPayment.ts"
import { fiatText } from "./wording.ts"

/** What a payer can choose. */
export interface ShownOffer {
  readonly currency: PaymentCurrency
  readonly chain: ChainName
  /** Of the currency, a decimal, at the current rate; undefined without one: then it cannot be chosen. */
  readonly amount: string | undefined
  /** What the network takes for the transfer, in the price's currency, a decimal; undefined if unknown. */
  readonly fee: string | undefined
}

export interface ChoosingProps extends Pick<CheckoutPageProps, "choice" | "language" | "look"> {
  readonly price: Worth
  /** The cheapest first; what has no price is shown last. */
  readonly offers: ReadonlyArray<ShownOffer>
  readonly mode: Mode
  /** When the price was made, and its deadline. Unix milliseconds. */
  readonly startsAt: number
  readonly endsAt: number
  /** Where the form posts `choice=USDC-base` to, with the language in its query. */
  readonly action: string
  /** The rate of the former choice has expired, and nothing was sent. */
  readonly isRateExpired: boolean
}

/** Six digits are enough to choose by: the payment has the exact amount, at the rate of its choice. */
const roundAmount = (amount: string, currency: string, language: Language): string =>
  `${new Intl.NumberFormat(language, { maximumSignificantDigits: 6 }).format(Number(amount))}\u00a0${currency}`

const OfferButton = ({ language, offer, price }: ChoosingProps & { readonly offer: ShownOffer }) => {
  const { amount, chain, currency, fee } = offer
  const t = checkoutTexts[language]
  // Never said as nothing.
  const least = fee && `${Math.max(Number(fee), 10 ** -decimalsOf[price.currency])}`
  const terms = [
    amount === undefined ? t.unpriced : t.worth(roundAmount(amount, currency, language)),
    ...(amount === undefined || least === undefined ? [] : [t.fee(fiatText(least, price.currency, language))])
  ]
  return (
    <button type="submit" name="choice" value={`${currency}-${chain}`} disabled={amount === undefined}>
      <b>
        <Disc of={currency} /> {t.onNetwork(currency, chainTraits[chain].displayName)}
      </b>
      {terms.join(" · ")}
    </button>
  )
}

const ChoosingPage = (props: ChoosingProps) => {
  const { action, choice, isRateExpired, language, look, mode, offers, price } = props
  const t = checkoutTexts[language]
  const title = t.choose(fiatText(price.amount, price.currency, language))
  return (
    <Framed title={title} {...{ language, choice, look }}>
      <main data-state="choosing" data-now={mark.now}>
        {mode === "test" && <p class="test">{t.test}</p>}
        <h1>{title}</h1>
        <TimeLeft {...props} t={t} />
        {isRateExpired && <p class="notice">{t.rateExpired}</p>}
        <form class="offers" method="post" action={action}>
          {offers
            .toSorted((a, b) => Number(a.amount === undefined) - Number(b.amount === undefined))
            .map((offer) => (
              <OfferButton key={`${offer.currency} ${offer.chain}`} {...props} offer={offer} />
            ))}
        </form>
      </main>
    </Framed>
  )
}

/** To be sent by `piecesAt`, with its `endsAt`. */
export const renderChoosing = (props: ChoosingProps): RenderedPage =>
  renderFramed(<ChoosingPage {...props} />, props.look)

/** The page of an invoice that has ended before anything was chosen. */
export const endedPage = ({
  choice,
  isCancelled,
  language,
  look
}: Pick<ChoosingProps, "choice" | "language" | "look"> & { readonly isCancelled: boolean }): HttpReply => {
  const t = checkoutTexts[language]
  const kind = isCancelled ? "cancelled" : "expired"
  const { frameAncestors = [], website } = look
  return pageReply(
    <Framed title={t.headline[kind]} {...{ language, choice, look }}>
      <main class={kind} data-state={kind}>
        <h1>{t.headline[kind]}</h1>
        <p>{t[kind]}</p>
        {website && (
          <p>
            <a id="back" class="button" href={website} target="_top" rel="noopener noreferrer">
              {t.backToShop}
            </a>
          </p>
        )}
      </main>
    </Framed>,
    { frameAncestors }
  )
}
