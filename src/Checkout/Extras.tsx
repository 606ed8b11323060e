/** Money that came and does not pay, for every mishap the same: what came, where it is, whether to pay again, whom to ask. */
import { chainTraits } from "../Domain/Chain.ts"
import { clockTime } from "../lib/clock.ts"
import { iso } from "../lib/moment.ts"
import type { Language } from "./languages.ts"
import type { Choice, ShopLook } from "./look.ts"
import { askOfView, type CheckoutView, type Extra, isUnpaid } from "./view.ts"
import { amountText, type Wording } from "./wording.ts"

/** A time in UTC, which the island puts into the zone of the browser. `at` in Unix milliseconds. */
export const LocalTime = ({ at, language }: { readonly at: number; readonly language: Language }) => (
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
  readonly isSecond?: boolean
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
export const Contact = ({
  isSecond = false,
  look: { contact, name },
  view: { merchantRef },
  wording: { t }
}: ContactProps) =>
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
