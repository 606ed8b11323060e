/**
 * What money is worth in its account's currency, frozen in the transaction that first stores it: the rate of then, from the
 * prices in memory. No later rate changes it. Settlement freezes receipts, `tilld sweep broadcast` what it moved and paid.
 */
import { BigDecimal, Effect, Option } from "effect"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import { type Fiat, isToken } from "../Domain/Currency.ts"
import type { AccountId } from "../Domain/Ids.ts"
import type { QuoteObject } from "../Domain/Quote.ts"
import { Prices } from "../Quotes/Prices.ts"
import { rateOf, showDecimal } from "../Quotes/sources/rate.ts"
import { type Db, Tx } from "../Sql.ts"

/** Why a rate is not known: the token has no price, no source had a fresh one, or the money was seen a day after its block. */
export const unknownRates = ["unknown_token", "no_fresh_price", "seen_late"] as const

/** The columns `rate`, `rate_currency` and `rate_source`. Without a rate, the source is the reason. */
export type FrozenRate = readonly [rate: string | null, currency: Fiat, source: string]

const unknown = (currency: Fiat, reason: (typeof unknownRates)[number]): FrozenRate => [null, currency, reason]

/** Milliseconds after its block from which money's worth is not the one of now. */
const longestAgo = 86_400_000

/** Where no prices are read, as without a daemon, no rate is known. Asked outside of transactions, which have no services. */
export const pricesOf = Effect.map(Effect.serviceOption(Prices), Option.getOrUndefined)

/** The rate at which a token is worth so much of the currency now. `at`: of its block, Unix seconds; `now` in milliseconds. */
const rateNow = (
  prices: Prices["Type"] | undefined,
  symbol: string,
  currency: Fiat,
  at: number,
  now: number
): FrozenRate => {
  if (!isToken(symbol)) return unknown(currency, "unknown_token")
  if (now - at * 1000 > longestAgo) return unknown(currency, "seen_late")
  const [token, fiat] = [prices?.of(symbol), prices?.of(currency)]
  if (token?.price === undefined || fiat?.price === undefined) return unknown(currency, "no_fresh_price")
  const sources = new Set([token.source ?? "", ...(currency === "USD" ? [] : [fiat.source ?? ""])])
  const rate = currency === "USD" ? token.price : rateOf(token.price, fiat.price)
  return [showDecimal(rate), currency, [...sources].join(", ")]
}

/** The rate of a quote between the token and the currency: what costs the one amount is charged at the other. */
const rateOfQuote = (
  { chargeAmount, fromAmount, fromCurrency, toCurrency }: QuoteObject,
  symbol: string,
  currency: Fiat
): FrozenRate | undefined => {
  const [from, to] = [BigDecimal.unsafeFromString(fromAmount), BigDecimal.unsafeFromString(chargeAmount)]
  const rate = (...pair: Parameters<typeof rateOf>): FrozenRate => [showDecimal(rateOf(...pair)), currency, "quote"]
  if (fromCurrency === currency && toCurrency === symbol) return rate(from, to)
  return fromCurrency === symbol && toCurrency === currency ? rate(to, from) : undefined
}

/** A moment, Unix milliseconds, and the prices of it. */
export interface PricedMoment {
  readonly now: number
  readonly prices: Prices["Type"] | undefined
}

/** The rate of an account's token now. `at`: of the block, Unix seconds. */
export const accountRate = (
  db: Db,
  { now, prices }: PricedMoment,
  account: AccountId | undefined,
  symbol: string,
  at: number
) =>
  Effect.map(
    db.get<{ currency: Fiat | null }>("SELECT currency FROM shops WHERE account_id = ?", [account ?? ""]),
    (shop) => rateNow(prices, symbol, shop?.currency ?? "USD", at, now)
  )

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
 *
 * @param now Unix milliseconds
 */
export const freezeReceipts = Effect.fnUntraced(function* (prices: Prices["Type"] | undefined, now: number) {
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
