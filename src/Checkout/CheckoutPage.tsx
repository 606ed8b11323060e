/**
 * The checkout page as a document. Everything that changes is in `<main>`, which the island replaces when the payment's
 * version changes; the live region beside it announces a new headline once. A page depends only on its properties: the
 * time of sending is left open in it.
 */
import type { HttpReply } from "../Http/HttpReply.ts"
import { assets } from "../Pages/assets.ts"
import { Disc, Mark } from "../Pages/marks.tsx"
import { Document, pageReply } from "../Pages/reply.tsx"
import { Asking } from "./Asking.tsx"
import { Extras, type Shown } from "./Extras.tsx"
import { checkoutTexts, type Language, languages } from "./languages.ts"
import { type Choice, hrefOf, type ShopLook } from "./look.ts"
import { Outcome } from "./Outcome.tsx"
import { cutAtMarks, mark, type RenderedPage } from "./RenderedPages.ts"
import type { Worth } from "./readPayment.ts"
import { askOfView, type CheckoutView, isFinal, misplaced } from "./view.ts"
import { fiatText, lengthOf, shareOf, type Wording, wordingOf } from "./wording.ts"

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
}

/** The automatic action of a page without scripts. */
const Refresh = ({ view }: Pick<CheckoutPageProps, "view">) =>
  isFinal(view) ? undefined : (
    <noscript>
      <meta http-equiv="refresh" content={`${reloadAfter}`} />
    </noscript>
  )

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

/** How many steps are done, and whether the payment ended in the one that follows. */
const progressOf = ({ extras, state }: CheckoutView): readonly [done: number, isBroken: boolean] => {
  const sent = extras.length > 0 || (state.kind === "failed" && state.receipt.received > 0n) ? 2 : 0
  switch (state.kind) {
    case "paid":
      return [3, false]
    case "seen":
      return [2, false]
    case "closing":
      return [state.received > 0n ? 2 : 1, false]
    case "failed":
      return [state.reason === "reorged" ? 2 : sent, true]
    case "expired":
    case "cancelled":
      return [sent, true]
    default:
      return [0, false]
  }
}

/** The way of the payment, on top of every state. The island moves it on once a wallet has sent. */
const Steps = ({ view, wording: { t } }: Pick<CheckoutPageProps, "view"> & { readonly wording: Wording }) => {
  const [done, isBroken] = progressOf(view)
  return (
    <ol class={isBroken ? "steps broken" : "steps"}>
      {t.steps.map((name, place) => (
        <li
          key={name}
          class={place < done ? "done" : undefined}
          aria-current={place === done && !isBroken ? "step" : undefined}
        >
          <Mark of={place === done && isBroken ? "cross" : "tick"} />
          {name}
        </li>
      ))}
    </ol>
  )
}

const Body = ({ worth, ...shown }: Shown & Pick<CheckoutPageProps, "worth">) => {
  const { choice, view, wording } = shown
  const { language, network, t } = wording
  const { amount, chain, lags, merchantRef, mode, state } = view
  const ask = askOfView(view)
  const asked = ask?.due ?? amount
  // Details that the heading omits; while money is asked for, about that.
  const terms = [
    ask === undefined ? t.onNetwork(wording.money(amount), network) : network,
    ...(worth === undefined ? [] : [t.worth(fiatText(shareOf(worth.amount, asked, amount), worth.currency, language))])
  ]
  return (
    <>
      {mode === "test" && <p class="test">{t.test}</p>}
      <Steps view={view} wording={wording} />
      <h1 tabIndex={-1} class={lengthOf(wording.money(asked))}>
        {state.kind === "paid" && <Mark of="tick" />}
        {wording.headline}
      </h1>
      {state.kind === "paid" && state.receipt.received < amount ? undefined : (
        <p class="terms">
          <Disc of={chain} /> {terms.join(" · ")}
        </p>
      )}
      {lags && (
        <p class="notice">
          <Mark of="clock" /> {t.lagging(network)}
        </p>
      )}
      {state.kind === "partPaid" && <p>{t.partPaid(wording.money(state.received), wording.money(amount))}</p>}
      {state.kind === "paid" && <p>{t.paid}</p>}
      <Extras {...shown} />
      {ask === undefined ? (
        <Outcome {...shown} />
      ) : misplaced(view) !== undefined && choice.code === undefined ? (
        // The money that came is the news: to pay again is a decision.
        <p>
          <a class="button quiet" id="pay-again" href={hrefOf({ ...choice, code: "payment" })} data-in-place>
            {t.payAgain(network)}
          </a>
        </p>
      ) : (
        <Asking {...shown} ask={ask} />
      )}
      <dl class="rows reference">
        <div data-copy={merchantRef} data-copy-id="copy-reference" data-copy-label={t.copyReference}>
          <dt>{t.reference}</dt>
          <dd>
            <bdi>{merchantRef}</bdi>
          </dd>
        </div>
      </dl>
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

/** The page of a link that leads to no payment. */
export const notFoundPage = (language: Language, choice: Choice): HttpReply => {
  const { text, title } = checkoutTexts[language].notFound
  return pageReply(
    <Document lang={language} title={title} assets={assets().urls("checkout")} bodyClass="checkout">
      <main class="not-found">
        <h1>
          <Mark of="cross" /> {title}
        </h1>
        <p>{text}</p>
      </main>
      <Languages choice={choice} language={language} />
    </Document>,
    { status: 404 }
  )
}

const CheckoutPage = (props: CheckoutPageProps) => {
  const { choice, language, look, version, view, worth } = props
  const { state } = view
  const wording = wordingOf(view, language)
  const isOther = state.kind === "paid" && state.receipt.received < view.amount
  const title =
    state.kind === "waiting" || isOther ? wording.headline : `${wording.headline} · ${wording.money(view.amount)}`
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
      <p class="notice" id="offline" role="status" hidden>
        {wording.t.offline}
      </p>
      <main
        class={state.kind}
        data-state={state.kind}
        data-version={version}
        data-final={isFinal(view)}
        data-now={mark.now}
        data-copied={wording.t.copied}
        data-by-hand={wording.t.copyByHand}
      >
        <Body {...{ view, wording, choice, look, worth }} />
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
