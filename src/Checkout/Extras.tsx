/** Shows money that came and does not pay: the amount, its state, and what to do. */
import { amountText } from "./amounts.ts"
import type { Extra } from "./extras.ts"
import { networkNames, type Wording } from "./wording.ts"

export interface ExtrasProps {
  readonly of: ReadonlyArray<Extra>
  readonly currency: string
  readonly wording: Wording
  /** The shop's name. */
  readonly shop: string | undefined
}

export const Extras = ({ currency, of, shop, wording: { language, network, t } }: ExtrasProps) => {
  const money = ({ currency: symbol, decimals }: Extra, units: bigint) =>
    decimals === undefined ? symbol : amountText(units, decimals, symbol, language)
  const fate = (one: Extra) =>
    one.status === "open" && one.sentBack > 0n ? t.fate.partly(money(one, one.sentBack)) : t.fate[one.status]
  return of.length === 0 ? undefined : (
    <section class="notice extras">
      {of.map((one, place) => (
        <p key={place}>
          <b>{t.extra[one.kind](money(one, one.amount), networkNames[one.chain], currency, network)}</b> {fate(one)}
          {one.refunds.map((txHash) => (
            <code class="hash" key={txHash}>
              {txHash}
            </code>
          ))}
        </p>
      ))}
      {of.some(({ status }) => status === "open") && <p>{t.contact(shop)}</p>}
    </section>
  )
}
