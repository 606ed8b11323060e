/**
 * The checkout page as a document. Everything that changes is in `<main>`, which the island replaces when the payment's
 * version changes; the live region beside it announces a new headline once. A page depends only on its properties: the
 * time of sending is left open in it.
 */
import { assets } from "../Pages/assets.ts"
import { Document } from "../Pages/Document.tsx"
import { pageReply } from "../Pages/reply.tsx"
import { Asking } from "./Asking.tsx"
import { fiatText, shareOf } from "./amounts.ts"
import { type Choice, hrefOf } from "./choice.ts"
import { Extras } from "./Extras.tsx"
import { checkoutTexts, type Language, languages } from "./languages.ts"
import type { ShopLook } from "./look.ts"
import { cutAtMarks, mark } from "./moment.ts"
import { Outcome } from "./Outcome.tsx"
import type { RenderedPage } from "./RenderedPages.ts"
import type { Worth } from "./readPayment.ts"
import { askOfView, type CheckoutView, isFinal } from "./view.ts"
import { type Wording, wordingOf } from "./wording.ts"

/** Seconds until a page without scripts reloads itself. */
const reloadAfter = 10

export interface CheckoutPageProps {
  readonly view: CheckoutView
  /** Of the view. */
  readonly version: string
  readonly worth: Worth | undefined
  readonly language: Language
  readonly choice: Choice
  readonly look: ShopLook
  /** Whether the remaining time is short enough to show. */
  readonly isHurried: boolean
}

/** The automatic action of a page without scripts. */
const Refresh = ({ view }: Pick<CheckoutPageProps, "view">) =>
  isFinal(view) ? undefined : (
    <noscript>
      <meta http-equiv="refresh" content={`${reloadAfter}`} />
    </noscript>
  )

const Shop = ({ look: { logo, name } }: Pick<CheckoutPageProps, "look">) =>
  name === undefined && logo === undefined ? undefined : (
    <header>
      {logo && <img src={logo} alt="" />}
      {name}
    </header>
  )

const Body = ({ choice, isHurried, look, view, wording, worth }: CheckoutPageProps & { readonly wording: Wording }) => {
  const { language, network, t } = wording
  const { amount, currency, extras, lags, merchantRef, mode, state } = view
  const ask = askOfView(view)
  const asked = ask?.due ?? amount
  // Details that the heading omits; while money is asked for, about that.
  const terms = [
    ...(ask === undefined ? [t.onNetwork(wording.money(amount), network)] : []),
    ...(worth === undefined ? [] : [t.worth(fiatText(shareOf(worth.amount, asked, amount), worth.currency, language))])
  ]
  return (
    <>
      {mode === "test" && <p class="test">{t.test}</p>}
      <h1 tabIndex={-1}>{wording.headline}</h1>
      {terms.length > 0 && <p class="terms">{terms.join(" · ")}</p>}
      {lags && <p class="notice">{t.lagging(network)}</p>}
      {state.kind === "partPaid" && <p>{t.partPaid(wording.money(state.received), wording.money(amount))}</p>}
      <Extras of={extras} currency={currency} wording={wording} shop={look.name} />
      {ask === undefined ? (
        <Outcome view={view} wording={wording} look={look} />
      ) : (
        <Asking view={view} ask={ask} wording={wording} choice={choice} isHurried={isHurried} />
      )}
      <p class="reference">
        {t.reference}: <bdi>{merchantRef}</bdi>
      </p>
    </>
  )
}

const Languages = ({ choice, language }: Pick<CheckoutPageProps, "choice" | "language">) => (
  <footer>
    <nav aria-label={checkoutTexts[language].languages}>
      <ul>
        {languages.map((one) => (
          <li key={one}>
            <a
              href={hrefOf({ ...choice, language: one })}
              lang={one}
              hreflang={one}
              aria-current={one === language ? "true" : undefined}
            >
              {checkoutTexts[one].name}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  </footer>
)

const CheckoutPage = (props: CheckoutPageProps) => {
  const { choice, language, look, version, view } = props
  const { state } = view
  const wording = wordingOf(view, language)
  const title = state.kind === "waiting" ? wording.headline : `${wording.headline} · ${wording.money(view.amount)}`
  return (
    <Document
      lang={language}
      title={look.name === undefined ? title : `${title} · ${look.name}`}
      assets={assets().urls("checkout")}
      head={
        <>
          {look.style && <link rel="stylesheet" href={look.style} />}
          <Refresh view={view} />
        </>
      }
      bodyClass="checkout"
    >
      <Shop look={look} />
      <main
        class={state.kind}
        data-state={state.kind}
        data-version={version}
        data-final={isFinal(view)}
        data-now={mark.now}
        data-copied={wording.t.copied}
      >
        <Body {...props} wording={wording} />
      </main>
      <p class="visually-hidden" role="status" id="announcement" />
      <Languages choice={choice} language={language} />
    </Document>
  )
}

/** The page of a payment, which only the shop's own origins may show in a frame. */
export const renderCheckout = (props: CheckoutPageProps): RenderedPage => {
  const { headers, text } = pageReply(<CheckoutPage {...props} />, { frameAncestors: props.look.frameAncestors ?? [] })
  return { headers, document: cutAtMarks(text) }
}
