/**
 * The checkout page as a document. Everything that changes is in `<main>`, which the island replaces when the payment's
 * version changes; the live region beside it announces a new headline once. A page depends only on its properties: the
 * time of sending is left open in it.
 */
import type { ComponentChildren, VNode } from "preact"
import { chainTraits } from "../Domain/Chain.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import { assets } from "../Pages/assets.ts"
import { Mark } from "../Pages/marks.tsx"
import { Document, pageReply } from "../Pages/reply.tsx"
import { Asking, Codes } from "./Asking.tsx"
import { Extras, FactList, Outcome, type Shown } from "./Extras.tsx"
import { type Choice, checkoutTexts, hrefOf, type Language, languages, type ShopLook } from "./languages.ts"
import { cutAtMarks, mark, type RenderedPage } from "./RenderedPages.ts"
import type { Worth } from "./readPayment.ts"
import { askOfView, type CheckoutView, isFinal, misplaced } from "./view.ts"
import { amountText, fiatText, lengthOf, shareOf, type Wording, wordingOf } from "./wording.ts"

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
  /** Where something else can be chosen to pay with, while nothing has come. */
  readonly changeUrl?: string | undefined
}

const Shop = ({ look: { logo, name, website } }: Pick<CheckoutPageProps, "look">) => {
  if (name === undefined && logo === undefined) return undefined
  const shown = (
    <>
      {logo && <img src={logo} alt="" />}
      {name}
    </>
  )
  return (
    <header>
      {website === undefined || name === undefined ? (
        shown
      ) : (
        <a href={website} target="_top" rel="noopener noreferrer">
          <Mark of="back" />
          {shown}
        </a>
      )}
    </header>
  )
}

/** What the payment is about, which the heading of an open request says already: the shop may have accepted other money. */
const sumsOf = ({ extras, state, ...view }: CheckoutView, { language, money, network, t }: Wording) => {
  if (state.kind !== "paid" || state.receipt.received >= view.amount) return [t.onNetwork(money(view.amount), network)]
  if (state.receipt.received > 0n) return [t.onNetwork(money(state.receipt.received), network)]
  return extras
    .filter(({ status }) => status === "accepted")
    .map(({ amount, chain, currency, decimals, sentBack }) => {
      const shown = decimals === undefined ? currency : amountText(amount - sentBack, decimals, currency, language)
      return t.onNetwork(shown, chainTraits[chain].displayName)
    })
}

const Body = ({ changeUrl, worth, ...shown }: Shown & Pick<CheckoutPageProps, "changeUrl" | "worth">) => {
  const { choice, view, wording } = shown
  const { language, network, t } = wording
  const { amount, lags, mode, state } = view
  const ask = askOfView(view)
  const asked = ask?.due ?? amount
  // The money that came is the news: to pay again is a decision.
  const isNews = ask !== undefined && misplaced(view) !== undefined && choice.code === undefined
  const asking = ask && !isNews && { ...shown, ask }
  const isPaid = state.kind === "paid"
  const isOther = isPaid && state.receipt.received < amount
  return (
    <>
      <div class="pay">
        {mode === "test" && <p class="test">{t.test}</p>}
        <h1 tabIndex={-1} class={lengthOf(wording.money(asked))}>
          {isPaid && <Mark of="tick" />}
          {wording.headline}
        </h1>
        {ask === undefined && sumsOf(view, wording).map((sum) => <p class="sum">{sum}</p>)}
        {worth && !isOther && !isNews && (
          <p class="worth">{t.worth(fiatText(shareOf(worth.amount, asked, amount), worth.currency, language))}</p>
        )}
        {lags && (
          <p class="notice">
            <Mark of="clock" /> {t.lagging(network)}
          </p>
        )}
        {state.kind === "partPaid" && <p>{t.partPaid(wording.money(state.received), wording.money(amount))}</p>}
        {!isPaid && <Extras {...shown} />}
        {ask === undefined && <Outcome {...shown} />}
        {asking && <Asking {...asking} />}
        {isNews && (
          <p>
            <a class="button quiet" id="pay-again" href={hrefOf({ ...choice, code: "payment" })} data-in-place>
              {t.payAgain(network)}
            </a>
          </p>
        )}
        {changeUrl && (
          <p class="change">
            <a href={changeUrl}>{t.changeChoice}</a>
          </p>
        )}
        <FactList {...shown} />
        {isPaid && <Extras {...shown} />}
        {isPaid && <p class="print" data-print={t.print} hidden />}
      </div>
      {asking && <Codes {...asking} />}
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

interface FramedProps extends Pick<CheckoutPageProps, "choice" | "language"> {
  readonly title: string
  readonly look?: ShopLook
  /** More elements of the head. */
  readonly head?: ComponentChildren
  readonly children: ComponentChildren
}

/** The frame of every page: the shop above it, the languages below. */
export const Framed = ({ children, choice, head, language, look = {}, title }: FramedProps) => (
  <Document
    lang={language}
    title={look.name === undefined ? title : `${title} · ${look.name}`}
    assets={assets().urls("checkout")}
    head={[look.style && <link rel="stylesheet" href={look.style} />, head]}
    bodyClass="checkout"
  >
    <Shop look={look} />
    {children}
    <Languages choice={choice} language={language} />
  </Document>
)

/** A page that only the shop's own origins may show in a frame. */
export const renderFramed = (page: VNode, { frameAncestors = [] }: ShopLook): RenderedPage => {
  const { headers, text } = pageReply(page, { frameAncestors })
  return { headers, document: cutAtMarks(text) }
}

/** The page of a link that leads to no payment. */
export const notFoundPage = (language: Language, choice: Choice): HttpReply => {
  const { text, title } = checkoutTexts[language].notFound
  return pageReply(
    <Framed title={title} language={language} choice={choice}>
      <main class="not-found">
        <h1>
          <Mark of="cross" /> {title}
        </h1>
        <p>{text}</p>
      </main>
    </Framed>,
    { status: 404 }
  )
}

/** What the buttons that copy say. */
export const copyWords = ({ copy, copied, copyByHand }: Wording["t"]) => ({
  ...{ "data-copy-word": copy, "data-copied": copied, "data-by-hand": copyByHand }
})

const CheckoutPage = (props: CheckoutPageProps) => {
  const { changeUrl, choice, language, look, version, view, worth } = props
  const { state } = view
  const wording = wordingOf(view, language)
  const isOther = state.kind === "paid" && state.receipt.received < view.amount
  const title =
    state.kind === "waiting" || isOther ? wording.headline : `${wording.headline} · ${wording.money(view.amount)}`
  return (
    <Framed
      head={
        !isFinal(view) && (
          <noscript>
            <meta http-equiv="refresh" content={`${reloadAfter}`} />
          </noscript>
        )
      }
      {...{ title, language, choice, look }}
    >
      <p class="notice" id="offline" role="status" hidden>
        {wording.t.offline}
      </p>
      <main
        class={state.kind}
        data-state={state.kind}
        data-version={version}
        data-final={isFinal(view)}
        data-now={mark.now}
        {...copyWords(wording.t)}
      >
        <Body {...{ view, wording, choice, look, worth, changeUrl }} />
      </main>
      <p class="visually-hidden" role="status" id="announcement" />
    </Framed>
  )
}

/** The page of a payment. */
export const renderCheckout = (props: CheckoutPageProps): RenderedPage =>
  renderFramed(<CheckoutPage {...props} />, props.look)
