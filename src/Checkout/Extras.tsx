/** Money that came and does not pay, for every mishap the same: what came, where it is, whether to pay again, whom to ask. */
import { chainTraits } from "../Domain/Chain.ts"
import { amountText } from "./amounts.ts"
import type { Extra } from "./extras.ts"
import type { ShopLook } from "./look.ts"
import { askOfView, type CheckoutView, isUnpaid } from "./view.ts"
import type { Wording } from "./wording.ts"

export interface ExtrasProps {
  readonly view: CheckoutView
  readonly wording: Wording
  readonly look: ShopLook
}

export interface ContactProps extends ExtrasProps {
  /** Whether something else is to be done first. */
  readonly isSecond?: boolean
}

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
        href={contact.includes("://") ? contact : `mailto:${contact}?subject=${encodeURIComponent(merchantRef)}`}
        target="_top"
        rel="noopener noreferrer"
      >
        {t.contactShop(name)}
      </a>
    </p>
  )

export const Extras = (props: ExtrasProps) => {
  const { view, wording } = props
  const { currency, extras } = view
  const { language, network, t } = wording
  const money = ({ currency: symbol, decimals }: Extra, units: bigint) =>
    decimals === undefined ? symbol : amountText(units, decimals, symbol, language)
  const fate = (one: Extra) =>
    one.status === "open" && one.sentBack > 0n ? t.fate.partly(money(one, one.sentBack)) : t.fate[one.status]
  const isOpen = extras.some(({ status }) => status === "open")
  return extras.length === 0 ? undefined : (
    <section class={isOpen ? "notice extras" : "notice extras settled"}>
      {extras.map((one, place) => (
        <p key={place}>
          <b>{t.extra[one.kind](money(one, one.amount), chainTraits[one.chain].displayName, currency, network)}</b>{" "}
          {fate(one)}
          {one.refunds.map((txHash) => (
            <code class="hash" key={txHash}>
              {txHash}
            </code>
          ))}
        </p>
      ))}
      {isOpen && askOfView(view) !== undefined && <p>{t.eitherWay}</p>}
      {isOpen && isUnpaid(view) && <p>{t.tooLate}</p>}
      {isOpen && <Contact {...props} isSecond={view.state.kind === "paid"} />}
    </section>
  )
}
