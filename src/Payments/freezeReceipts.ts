/** Freezes the worth of receipts in the transaction that first stores them. */
import { Effect } from "effect"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import type { Fiat } from "../Domain/Currency.ts"
import { type FrozenRate, type PricedMoment, rateNow, rateOfQuote } from "../Quotes/frozenRates.ts"
import { Tx } from "../Sql.ts"

interface UnratedRow {
  readonly chain: ChainName
  readonly mode: Mode
  readonly block_hash: string
  readonly address: string
  readonly position: string
  readonly block_time: number
  readonly currency: string
  /** Of the account. */
  readonly fiat: Fiat | null
  /** The quote of the payment, where the money is in its currency. */
  readonly quote: string | null
  /** JSON: the rate that the same transfer had in another block. */
  readonly kept: string | null
}

/**
 * Freezes the worth of receipts that have none yet: those of this commit. What is too small to be credited gets none, so that a
 * hundred thousand such transfers cost nothing more. A transfer that a reorg has moved to another block
 * keeps its first rate.
 */
export const freezeReceipts = Effect.fnUntraced(function* ({ now, prices }: PricedMoment) {
  const tx = yield* Tx
  const rows = yield* tx.all<UnratedRow>(
    `SELECT r.chain, r.mode, r.block_hash, r.address, r.position, r.block_time, r.currency, s.currency AS fiat, q.body AS quote,
       (SELECT json_array(rate, rate_currency, rate_source) FROM receipts AS gone INDEXED BY receipts_replaced
        WHERE gone.payment_id = r.payment_id AND gone.tx_hash = r.tx_hash AND gone.currency = r.currency
          AND gone.amount = r.amount AND gone.canonical = 0 AND gone.chain = r.chain AND rate_currency IS NOT NULL
        ORDER BY seen_at LIMIT 1) AS kept
     FROM receipts AS r INDEXED BY receipts_unrated LEFT JOIN payments AS p ON p.id = r.payment_id
       LEFT JOIN shops AS s ON s.account_id = r.account_id
       LEFT JOIN quotes AS q ON q.id = p.quote_id AND p.currency = r.currency
     WHERE r.rate_currency IS NULL AND r.canonical = 1 AND r.listed IS NOT NULL`
  )
  yield* tx.runEach(
    `UPDATE receipts SET rate = ?, rate_currency = ?, rate_source = ?
     WHERE chain = ? AND mode = ? AND block_hash = ? AND address = ? AND position = ?`,
    rows.map(({ block_hash, block_time, chain, currency, fiat, kept, mode, quote, address, position }) => {
      const own = fiat ?? "USD"
      const quoted = quote === null ? undefined : rateOfQuote(JSON.parse(quote), currency, own)
      const rate: FrozenRate =
        kept === null ? (quoted ?? rateNow(prices, currency, own, block_time, now)) : JSON.parse(kept)
      return [...rate, chain, mode, block_hash, address, position]
    })
  )
})
