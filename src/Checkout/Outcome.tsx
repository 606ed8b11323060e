/** The state of a payment that asks for no money at the moment, and what to do. */
import { chainTraits } from "../Domain/Chain.ts"
import { explorerUrl } from "../Pages/explorers.ts"
import { Mark } from "../Pages/marks.tsx"
import { Contact, LocalTime, type Shown } from "./Extras.tsx"
import type { Confirmations } from "./view.ts"
import { spelledTime } from "./wording.ts"

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
          <div key={txHash} data-copy={txHash} data-copy-id={`copy-tx-${place}`} data-copy-label={t.copyTransaction}>
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
      <div data-copy={merchantRef} data-copy-id="copy-reference" data-copy-label={t.copyReference}>
        <dt>{t.reference}</dt>
        <dd>
          <bdi>{merchantRef}</bdi>
        </dd>
      </div>
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

/** The link back; after a payment to where the shop wants the payer to go on. */
const ToShop = ({
  isSecond = false,
  look,
  view: { shopUrl, state },
  wording: { t }
}: Shown & { readonly isSecond?: boolean }) => {
  const url = (state.kind === "paid" ? state.returnTo : undefined) ?? look.website ?? shopUrl
  return (
    url && (
      <p>
        <a id="back" class={isSecond ? "button quiet" : "button"} href={url} target="_top" rel="noopener noreferrer">
          {t.backToShop}
        </a>
      </p>
    )
  )
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
