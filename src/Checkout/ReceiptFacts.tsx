/** The receipt of a paid payment: amount, time and transactions. Printable. */

import { chainTraits } from "../Domain/Chain.ts"
import { explorerUrl } from "../Pages/explorers.ts"
import { amountText } from "./amounts.ts"
import type { Extra } from "./extras.ts"
import { LocalTime } from "./LocalTime.tsx"
import type { PaidReceipt } from "./view.ts"
import type { Wording } from "./wording.ts"

export interface ReceiptFactsProps {
  readonly receipt: PaidReceipt
  readonly extras: ReadonlyArray<Extra>
  readonly wording: Wording
}

/** What paid: as it was asked for, or the other money that the shop has accepted. */
const receivedOf = ({ extras, receipt, wording: { language, money, network, t } }: ReceiptFactsProps) =>
  receipt.received > 0n
    ? [t.onNetwork(money(receipt.received), network)]
    : extras
        .filter(({ status }) => status === "accepted")
        .map(({ amount, chain, currency, decimals, sentBack }) => {
          const shown = decimals === undefined ? currency : amountText(amount - sentBack, decimals, currency, language)
          return t.onNetwork(shown, chainTraits[chain].displayName)
        })

export const ReceiptFacts = (props: ReceiptFactsProps) => {
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
