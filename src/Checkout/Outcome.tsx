/** The state of a payment that asks for no money at the moment, and what to do. */
import { chainTraits } from "../Domain/Chain.ts"
import { explorerUrl } from "../Pages/explorers.ts"
import { Contact, LocalTime, type Shown } from "./Extras.tsx"
import type { CheckoutState, Confirmations, PaidReceipt } from "./view.ts"
import { amountText, spelledTime } from "./wording.ts"

interface ReceiptFactsProps extends Shown {
  readonly receipt: PaidReceipt
}

/** What paid: as it was asked for, or the other money that the shop has accepted. */
const receivedOf = ({ receipt, view: { extras }, wording: { language, money, network, t } }: ReceiptFactsProps) =>
  receipt.received > 0n
    ? [t.onNetwork(money(receipt.received), network)]
    : extras
        .filter(({ status }) => status === "accepted")
        .map(({ amount, chain, currency, decimals, sentBack }) => {
          const shown = decimals === undefined ? currency : amountText(amount - sentBack, decimals, currency, language)
          return t.onNetwork(shown, chainTraits[chain].displayName)
        })

const ReceiptFacts = (props: ReceiptFactsProps) => {
  const { receipt, wording } = props
  const { language, money, t } = wording
  return (
    <dl class="rows receipt">
      {receivedOf(props).map((text) => (
        <div key={text}>
          <dt>{t.received}</dt>
          <dd>{text}</dd>
        </div>
      ))}
      {receipt.paidAt !== undefined && (
        <div>
          <dt>{t.paidAt}</dt>
          <dd>
            <LocalTime at={receipt.paidAt} language={language} />
          </dd>
        </div>
      )}
      {receipt.transactions.map(({ amount, chainId, txHash }, place) => {
        const url = explorerUrl(chainId, "tx", txHash)
        return (
          <div key={txHash} data-copy={txHash} data-copy-id={`copy-tx-${place}`} data-copy-label={t.copyTransaction}>
            <dt>
              {t.transaction}
              {receipt.transactions.length > 1 && amount !== undefined && `: ${money(amount)}`}
            </dt>
            <dd>
              <code class="hash">{txHash}</code>
              {url && (
                <a href={url} target="_top" rel="noopener noreferrer">
                  {t.explorer}
                </a>
              )}
            </dd>
          </div>
        )
      })}
    </dl>
  )
}

interface ProgressProps extends Shown {
  readonly confirmations: Confirmations
}

const Progress = ({ confirmations: { count, needed }, view: { chain }, wording }: ProgressProps) => {
  const { language, t } = wording
  const text = t.confirmations(wording.count(count), wording.count(needed))
  const seconds = (needed - count) * chainTraits[chain].blockSeconds
  return (
    <>
      <progress value={count} max={needed} aria-labelledby="confirmations" />
      <p class="confirmations">
        <span id="confirmations">{text}</span>
        {seconds > 0 ? <span>{t.timeToFinal(spelledTime(seconds, language))}</span> : undefined}
      </p>
      {count === needed ? <p>{t.lastCheck}</p> : undefined}
    </>
  )
}

/** The link back where nothing leads back by itself. */
const ToShop = ({
  isSecond = false,
  look,
  view: { shopUrl },
  wording: { t }
}: Shown & { readonly isSecond?: boolean }) => {
  const url = look.website ?? shopUrl
  return (
    url && (
      <p>
        <a class={isSecond ? "button quiet" : "button"} href={url} target="_top" rel="noopener noreferrer">
          {t.backToShop}
        </a>
      </p>
    )
  )
}

/** What is next once all that came was sent back. */
const SentBack = ({ view: { extras }, wording: { t } }: Shown) =>
  extras.length > 0 && extras.every(({ status }) => status === "refunded") ? <p>{t.startAgain}</p> : undefined

const Paid = (props: Shown & { readonly state: Extract<CheckoutState, { readonly kind: "paid" }> }) => {
  const { state, wording } = props
  const { t } = wording
  return (
    <>
      <ReceiptFacts {...props} receipt={state.receipt} />
      {state.returnTo === undefined ? (
        <ToShop {...props} />
      ) : (
        <>
          {props.view.extras.length === 0 && (
            <p class="returning" hidden>
              {t.returning}{" "}
              <button type="button" id="stay">
                {t.stay}
              </button>
            </p>
          )}
          <p>
            <a id="back" class="button" href={state.returnTo} target="_top">
              {t.backToShop}
            </a>
          </p>
        </>
      )}
      <p class="print" data-print={t.print} hidden />
    </>
  )
}

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
          <p>{t.seen}</p>
          {state.surplus > 0n && (
            <p class="notice">
              <b>{t.extra.overpaid(money(state.surplus), network, currency, network)}</b> {t.fate.open}
            </p>
          )}
          {state.confirmations && <Progress {...props} confirmations={state.confirmations} />}
          {state.receipt.transactions.length > 0 && <ReceiptFacts {...props} receipt={state.receipt} />}
          <ToShop {...props} isSecond />
        </>
      )
    case "paid":
      return <Paid {...props} state={state} />
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
          {state.receipt.transactions.length > 0 && <ReceiptFacts {...props} receipt={state.receipt} />}
          <ToShop {...props} isSecond />
        </>
      )
    }
    default:
      return undefined
  }
}
