/**
 * The page on which a payer chooses the token and the network for a price in fiat money: each is a button of one form. The
 * island moves to the top what was chosen last in this browser. A posted choice makes the payment, and leads back to the page,
 * which then says what to pay.
 */

import { Effect, Schema } from "effect"
import { formatUnits } from "viem"
import { type ChainName, chainTraits, type Mode } from "../Domain/Chain.ts"
import { decimalsOf, decimalsOn, type PaymentCurrency } from "../Domain/Currency.ts"
import { ChoiceName, chosenBy, type Invoice } from "../Domain/Invoice.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { Invoices } from "../Invoices.ts"
import { Disc } from "../Pages/marks.tsx"
import { errorPage, pageReply, seeOther } from "../Pages/reply.tsx"
import { Settings } from "../Settings.ts"
import type { StoreUnavailable } from "../Sql.ts"
import { TimeLeft } from "./Asking.tsx"
import { type CheckoutPageProps, copyWords, Framed, renderFramed } from "./CheckoutPage.tsx"
import { Back, Reference } from "./Extras.tsx"
import { checkoutTexts, hrefOf, type Language } from "./languages.ts"
import { mark, piecesAt, type RenderedPage } from "./RenderedPages.ts"
import type { Stored, Unchosen, Worth } from "./readPayment.ts"
import { type CheckoutView, misplaced, versionOf } from "./view.ts"
import { fiatText, wordingOf } from "./wording.ts"

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
  /** The choice that is still to be paid, which this page leads back to. */
  readonly current?: CheckoutView | undefined
  readonly now: number
}

/** Choices in sight. Two more are not worth folding. */
const inSight = 6

/** Six digits are enough to choose by: the payment has the exact amount, at the rate of its choice. */
const roundAmount = (amount: string, currency: string, language: Language): string => {
  const rounded = Number(Number(amount).toPrecision(6))
  const minimumFractionDigits = Number.isInteger(rounded) ? 0 : 2
  const format = new Intl.NumberFormat(language, { minimumFractionDigits, maximumFractionDigits: 20 })
  return `${format.format(rounded)}\u00a0${currency}`
}

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
  const { action, choice, current, endsAt, isRateExpired, language, look, mode, now, offers, price } = props
  const t = checkoutTexts[language]
  const title = t.choose(fiatText(price.amount, price.currency, language))
  const buttons = offers
    .toSorted((a, b) => Number(a.amount === undefined) - Number(b.amount === undefined))
    .map((offer) => <OfferButton key={`${offer.currency} ${offer.chain}`} {...props} offer={offer} />)
  const more = buttons.splice(offers.length > inSight + 2 ? inSight : inSight + 2)
  return (
    <Framed
      title={title}
      head={
        <noscript>
          <meta http-equiv="refresh" content={`${Math.ceil((endsAt - now) / 1000) + 1}`} />
        </noscript>
      }
      {...{ language, choice, look }}
    >
      <main data-state="choosing" data-version={current && versionOf(current)} data-now={mark.now}>
        {mode === "test" && <p class="test">{t.test}</p>}
        <h1>{title}</h1>
        <TimeLeft {...props} t={t} />
        {isRateExpired && <p class="notice">{t.rateExpired}</p>}
        {current && (
          <p class="notice">
            {misplaced(current) === undefined && t.alreadySent}{" "}
            <a href={hrefOf({ language, code: undefined })}>{wordingOf(current, language).headline}</a>
          </p>
        )}
        <p>{t.whichToChoose}</p>
        <form class="offers" method="post" action={action}>
          {buttons}
          {more.length > 0 && (
            <details>
              <summary>{t.moreChoices(more.length)}</summary>
              {more}
            </details>
          )}
        </form>
      </main>
    </Framed>
  )
}

/** To be sent by `piecesAt`, with its `endsAt`. */
export const renderChoosing = (props: ChoosingProps): RenderedPage =>
  renderFramed(<ChoosingPage {...props} />, props.look)

type Shown = Pick<ChoosingProps, "choice" | "language" | "look">

/** The page of an invoice that has ended before anything was chosen. */
export const endedPage = ({
  choice,
  invoice: { id, merchantRef = id, mode, redirectUrl, status },
  language,
  look
}: Shown & {
  readonly invoice: Pick<Invoice, "id" | "merchantRef" | "mode" | "redirectUrl" | "status">
}): HttpReply => {
  const t = checkoutTexts[language]
  const kind = status === "cancelled" ? status : "expired"
  const { frameAncestors = [], website } = look
  return pageReply(
    <Framed title={t.headline[kind]} {...{ language, choice, look }}>
      <main class={kind} data-state={kind} {...copyWords(t)}>
        {mode === "test" && <p class="test">{t.test}</p>}
        <h1>{t.headline[kind]}</h1>
        <p>{t.startAgain}</p>
        <Back t={t} url={website ?? (redirectUrl && new URL(redirectUrl).origin)} />
        <dl class="facts">
          <Reference merchantRef={merchantRef} t={t} />
        </dl>
      </main>
    </Framed>,
    { frameAncestors }
  )
}

/**
 * Whether the page asks for a choice: nothing was chosen yet, or the rate of the last choice has expired without money, or
 * the customer goes back to it while nothing was seen. Money that waits for the shop's decision comes before a further
 * choice. `now` in Unix milliseconds.
 */
export const isChoosing = (stored: Stored | Unchosen, goesBack: boolean, now: number): boolean => {
  const { invoice, payment } = stored
  if (invoice?.status !== "open" || now >= invoice.expiresAt) return false
  if (payment === undefined) return true
  if (payment.status === "pending") return goesBack && now < payment.expiresAt
  return goesBack || stored.extras.every(({ status }) => status !== "open")
}

const isChoice = Schema.is(ChoiceName)

export const makeChoosing = Effect.gen(function* () {
  const invoices = yield* Invoices
  const { chains } = yield* Settings

  /** `page`: its path. */
  const show = Effect.fnUntraced(function* (
    invoice: Invoice,
    shown: Shown & Pick<ChoosingProps, "isRateExpired" | "current">,
    page: string,
    now: number
  ) {
    const { createdAt, expiresAt, mode, price } = invoice
    const offers = (yield* invoices.offers(invoice)).map(({ chain, currency, fee, units }) => {
      const decimals = decimalsOn(chains, { chain, mode }, currency) ?? decimalsOf[currency]
      return { chain, currency, fee, amount: units === undefined ? undefined : formatUnits(units, decimals) }
    })
    const { document, headers } = renderChoosing({
      ...{ ...shown, offers, price, mode, startsAt: createdAt, endsAt: expiresAt, now },
      action: `${page}/choose?lang=${shown.language}`
    })
    return {
      status: 200,
      headers,
      text: "",
      bytes: piecesAt(document, now, expiresAt, shown.language)
    } satisfies HttpReply
  })

  const choose = (
    { account, id, mode }: Invoice,
    page: string,
    language: Language,
    { body, requestId }: Pick<PageRequest, "body" | "requestId">
  ): Effect.Effect<HttpReply, StoreUnavailable> => {
    const choice = new URLSearchParams(body?.toString("utf8") ?? "").get("choice")
    const back = `${page}?lang=${language}`
    const again = Effect.succeed(seeOther(`${back}&choose`))
    if (!isChoice(choice)) return again
    return invoices.choose({ account, mode }, id, chosenBy(choice)).pipe(
      Effect.as(seeOther(back)),
      Effect.catchAll((error) => {
        switch (error._tag) {
          case "StoreUnavailable":
            return error
          case "InvoiceNotOpen":
            return Effect.succeed(seeOther(back))
          case "ChoiceUnpriced":
          case "NotAChoice":
            return again
          default: {
            const { headline, unavailable } = checkoutTexts[language]
            const text = { lang: language, status: 503, title: headline.unavailable, text: unavailable }
            return Effect.as(
              Effect.logWarning("a customer's choice could not be made", error._tag),
              errorPage("checkout", text, requestId)
            )
          }
        }
      })
    )
  }

  return { show, choose }
})
