/** What has become of a payment that nobody is asked to pay for at the moment, and what to do. */
import type { CheckoutView, Confirmations } from "./view.ts"
import type { Wording } from "./wording.ts"

export interface OutcomeProps {
  readonly view: CheckoutView
  readonly wording: Wording
}

const Progress = ({
  confirmations: { count, needed },
  wording
}: {
  confirmations: Confirmations
  wording: Wording
}) => {
  const { t } = wording
  const text = t.confirmations(wording.count(count), wording.count(needed))
  return (
    <>
      <p id="confirmations">{text}</p>
      <progress value={count} max={needed} aria-labelledby="confirmations" />
      {count === needed ? <p>{t.lastCheck}</p> : undefined}
    </>
  )
}

export const Outcome = ({ view, wording }: OutcomeProps) => {
  const { money, network, t } = wording
  const { amount, currency, state } = view
  switch (state.kind) {
    case "seen":
      return (
        <>
          <p>{t.seen}</p>
          {state.confirmations && <Progress confirmations={state.confirmations} wording={wording} />}
        </>
      )
    case "paid":
      return (
        <>
          <p>{t.paid}</p>
          {state.returnTo && (
            <>
              <p>{t.returning}</p>
              <p>
                <a id="back" class="button" href={state.returnTo} target="_top">
                  {t.backToShop}
                </a>
              </p>
            </>
          )}
        </>
      )
    case "closing":
    case "unavailable":
      return <p>{t[state.kind]}</p>
    case "expired":
    case "cancelled":
      return (
        <>
          <p>{t[state.kind]}</p>
          <p>{t.sentAnyway}</p>
        </>
      )
    case "failed":
      return (
        <>
          <p>{t.failed(money(state.received), money(amount), currency, network)[state.reason]}</p>
          <p>{t.sentAnyway}</p>
        </>
      )
    default:
      return undefined
  }
}
