/**
 * Below the heading of a payment: money that came and does not pay, for every mishap the same (what came, where it is, whether
 * to pay again, whom to ask), and the state of one that asks for no money at the moment.
 */
import { chainTraits } from "../Domain/Chain.ts"
import { clockTime } from "../lib/clock.ts"
import { iso } from "../lib/moment.ts"
import { explorerUrl } from "../Pages/explorers.ts"
import { Mark } from "../Pages/marks.tsx"
import type { Choice, Language, ShopLook } from "./languages.ts"
import { askOfView, type CheckoutView, type Confirmations, type Extra, isUnpaid } from "./view.ts"
import { amountText, spelledTime, type Wording } from "./wording.ts"

/** A time in UTC, which the island puts into the zone of the browser. `at` in Unix milliseconds. */
const LocalTime = ({ at, language }: { readonly at: number; readonly language: Language }) => (
  <time dateTime={iso(at)} data-local={at}>
    {clockTime(at, language, "UTC")}
  </time>
)

/** What the parts of a page show. */
export interface Shown {
  readonly view: CheckoutView
  readonly wording: Wording
  readonly choice: Choice
  readonly look: ShopLook
}

interface ContactProps extends Shown {
  /** Whether something else is to be done first. */
  readonly isSecond?: boolean | undefined
}

const isMail = (contact: string): boolean => contact.startsWith("mailto:")

const hrefOf = (contact: string, merchantRef: string): string =>
  isMail(contact) ? `${contact}?subject=${encodeURIComponent(merchantRef)}` : contact

/** A text that leads to where the shop answers. */
export const ContactLink = ({ look: { contact }, text, view: { merchantRef } }: Shown & { readonly text: string }) =>
  contact === undefined ? (
    <span>{text}</span>
  ) : (
    <a href={hrefOf(contact, merchantRef)} target="_top" rel="noopener noreferrer">
      {text}
    </a>
  )

/** The link to where the shop answers, with the payment's reference; otherwise only words. */
const Contact = ({ isSecond, look: { contact, name }, view: { merchantRef }, wording: { t } }: ContactProps) =>
  contact === undefined ? (
    <p>{t.contact(name)}</p>
  ) : (
    <p>
      <a
        class={isSecond ? "button quiet" : "button"}
        href={hrefOf(contact, merchantRef)}
        target="_top"
        rel="noopener noreferrer"
      >
        {t.contactShop(name)}
      </a>
      {isMail(contact) && <span class="mailto">{contact.slice("mailto:".length)}</span>}
    </p>
  )

export const Extras = (props: Shown) => {
  const { view, wording } = props
  const { currency, extras } = view
  const { language, network, t } = wording
  const money = ({ currency: symbol, decimals }: Extra, units: bigint) =>
    decimals === undefined ? symbol : amountText(units, decimals, symbol, language)
  const isAsking = askOfView(view) !== undefined
  const isSurplus = ({ kind, sentBack, status }: Extra) => kind === "overpaid" && status === "open" && sentBack === 0n
  const fate = (one: Extra) => {
    if (isSurplus(one)) return <ContactLink {...props} text={t.askBack} />
    // `eitherWay` says it, with what else can be done.
    if (one.sentBack === 0n && one.status === "open" && isAsking) return ""
    if (one.sentBack === 0n || one.status === "refunded") return t.fate[one.status]
    return t.fate[one.status === "open" ? "partly" : "rest"](money(one, one.sentBack))
  }
  const isOpen = extras.some(({ status }) => status === "open")
  return extras.length === 0 ? undefined : (
    <section class={isOpen ? "notice extras" : "notice extras settled"}>
      {extras.map((one, place) => (
        <p key={place}>
          <b>{t.extra[one.kind](money(one, one.amount), chainTraits[one.chain].displayName, currency, network)}</b>{" "}
          {fate(one)}
          {one.refunds.map((txHash) => (
            <span key={txHash}>
              {t.transaction} <code class="hash">{txHash}</code>
            </span>
          ))}
        </p>
      ))}
      {isOpen && isAsking && <p>{t.eitherWay}</p>}
      {isOpen && isUnpaid(view) && (
        <p>
          <b>{t.tooLate}</b>
        </p>
      )}
      {extras.some((one) => one.status === "open" && !isSurplus(one)) && (
        <Contact {...props} isSecond={view.state.kind === "paid"} />
      )}
    </section>
  )
}

/** The shop's reference, a row of a list. */
export const Reference = ({ merchantRef, t }: Pick<CheckoutView, "merchantRef"> & Pick<Wording, "t">) => (
  <div data-copy={merchantRef} data-copy-id="copy-reference">
    <dt>{t.reference}</dt>
    <dd>
      <bdi>{merchantRef}</bdi>
    </dd>
  </div>
)

/** What is known of a payment: when it was paid, by which transactions, and the shop's reference. */
export const FactList = ({ view: { merchantRef, state }, wording: { language, money, t } }: Shown) => {
  const { paidAt, transactions = [] } = "receipt" in state ? state.receipt : {}
  return (
    <dl class="facts">
      {paidAt !== undefined && (
        <div>
          <dt>{t.paidAt}</dt>
          <dd>
            <LocalTime at={paidAt} language={language} />
          </dd>
        </div>
      )}
      {transactions.map(({ amount, chainId, txHash }, place) => {
        const url = explorerUrl(chainId, "tx", txHash)
        return (
          <div key={txHash} data-copy={txHash} data-copy-id={`copy-tx-${place}`}>
            <dt>
              {t.transaction}
              {transactions.length > 1 && amount !== undefined && `: ${money(amount)}`}
            </dt>
            <dd>
              <code class="hash">{txHash}</code>
              {url && (
                <a href={url} target="_top" rel="noopener noreferrer" aria-label={t.explorer}>
                  <Mark of="external" />
                </a>
              )}
            </dd>
          </div>
        )
      })}
      <Reference merchantRef={merchantRef} t={t} />
    </dl>
  )
}

interface ProgressProps extends Shown {
  readonly confirmations: Confirmations
}

const Progress = ({ confirmations: { count, needed }, view: { chain }, wording: { language, t } }: ProgressProps) => {
  const seconds = (needed - count) * chainTraits[chain].blockSeconds
  return (
    <>
      <progress value={count} max={needed} aria-labelledby="confirmations" />
      <p class="confirmations">
        <span id="confirmations">{t.confirmations(`${count}`, `${needed}`)}</span>
        {seconds > 0 ? <span>{t.timeToFinal(spelledTime(seconds, language))}</span> : undefined}
      </p>
      {count === needed ? <p>{t.lastCheck}</p> : undefined}
    </>
  )
}

type BackProps = Pick<ContactProps, "isSecond"> & Pick<Wording, "t"> & { readonly url: string | undefined }

/** The link back to the shop. */
export const Back = ({ isSecond, t, url }: BackProps) =>
  url === undefined ? undefined : (
    <p>
      <a id="back" class={isSecond ? "button quiet" : "button"} href={url} target="_top" rel="noopener noreferrer">
        {t.backToShop}
      </a>
    </p>
  )

/** After a payment it leads to where the shop wants the payer to go on. */
const ToShop = ({ isSecond, look, view: { shopUrl, state }, wording: { t } }: ContactProps) => {
  const url = (state.kind === "paid" ? state.returnTo : undefined) ?? look.website ?? shopUrl
  return <Back {...{ isSecond, t, url }} />
}

/** What is next once all that came was sent back. */
const SentBack = ({ view: { extras }, wording: { t } }: Shown) =>
  extras.length > 0 && extras.every(({ status }) => status === "refunded") ? <p>{t.startAgain}</p> : undefined

export const Outcome = (props: Shown) => {
  const { view, wording } = props
  const { money, network, t } = wording
  const { currency, extras, state } = view
  const contact = <Contact {...props} />
  const isOpen = extras.some(({ status }) => status === "open")
  switch (state.kind) {
    case "seen":
      return (
        <>
          {state.confirmations && <Progress {...props} confirmations={state.confirmations} />}
          <p>{t.seen}</p>
          <ToShop {...props} isSecond />
        </>
      )
    case "paid":
      return (
        <>
          <ToShop {...props} />
          {state.returnTo !== undefined && extras.length === 0 && (
            <p class="returning" hidden>
              {t.returning}{" "}
              <button type="button" id="stay">
                {t.stay}
              </button>
            </p>
          )}
        </>
      )
    case "closing": {
      const said = state.received > 0n ? t.closingPart(money(state.received), money(view.amount)) : t.closing
      return (
        <>
          <p>{state.received === 0n && extras.length > 0 ? t.closingOther : said}</p>
          {!isOpen && props.look.contact !== undefined && <Contact {...props} isSecond />}
        </>
      )
    }
    case "unavailable":
      return (
        <>
          <p>{t.unavailable}</p>
          {contact}
        </>
      )
    case "expired":
    case "cancelled":
      return (
        <>
          {extras.length === 0 && <p>{t[state.kind]}</p>}
          {extras.length === 0 && <p>{t.sentAnyway}</p>}
          <SentBack {...props} />
          <ToShop {...props} isSecond={isOpen} />
          {!isOpen && props.look.contact !== undefined && <Contact {...props} isSecond />}
        </>
      )
    case "failed": {
      // The money that came instead is shown already, with what to do.
      const isSaid = extras.some(({ kind }) => kind === state.reason || state.reason === "insufficient_amount")
      return (
        <>
          {!isSaid && <p>{t.failed(currency, network)[state.reason]}</p>}
          <SentBack {...props} />
          {!isOpen && contact}
          <ToShop {...props} isSecond />
        </>
      )
    }
    default:
      return undefined
  }
}
