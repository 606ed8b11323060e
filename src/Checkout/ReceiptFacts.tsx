/** The receipt of a paid payment: amount, time and transactions. Printable. */
import { explorerUrl } from "../Pages/explorers.ts"
import { LocalTime } from "./LocalTime.tsx"
import type { PaidReceipt } from "./view.ts"
import type { Wording } from "./wording.ts"

export const ReceiptFacts = ({ receipt, wording }: { readonly receipt: PaidReceipt; readonly wording: Wording }) => {
  const { language, money, network, t } = wording
  return (
    <dl class="receipt">
      {receipt.received > 0n && (
        <div>
          <dt>{t.received}</dt>
          <dd>{t.onNetwork(money(receipt.received), network)}</dd>
        </div>
      )}
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
