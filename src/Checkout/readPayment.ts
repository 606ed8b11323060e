/**
 * Reads the data of a checkout page: the payment and its exceptions, its receipts once money has come, its worth and its
 * shop. Called for each page, and by the streams that follow one: what has been read is kept until the next commit,
 * whatever that changes.
 */

import { Clock, Effect, Schema } from "effect"
import { shopOf } from "../Auth/shops.ts"
import { scan } from "../Chains/ledger/LedgerRepo.ts"
import { Chains } from "../Chains.ts"
import { required } from "../Domain/Amount.ts"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import { Fiat, type PriceCurrency } from "../Domain/Currency.ts"
import { CheckoutToken } from "../Domain/Ids.ts"
import type { Invoice } from "../Domain/Invoice.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { QuoteObject } from "../Domain/Quote.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import type { Shop } from "../Domain/Shop.ts"
import { paymentObject } from "../Events/paymentObject.ts"
import { BoundedMap } from "../lib/BoundedMap.ts"
import { firstOfPayment, firstOfPayments } from "../Payments/ExceptionsRepo.ts"
import * as Invoices from "../Payments/InvoicesRepo.ts"
import * as Payments from "../Payments/PaymentsRepo.ts"
import * as Receipts from "../Payments/ReceiptsRepo.ts"
import { counted } from "../Payments/statusMachine.ts"
import * as Quotes from "../Quotes/QuotesRepo.ts"
import { Settings } from "../Settings.ts"
import type { Db } from "../Sql/Db.ts"
import { Reader, type StoreUnavailable } from "../Sql.ts"
import { type Confirmations, extrasOf, type Facts, isFinal, paidByOf, viewOf } from "./view.ts"

/**
 * The confirmations of the receipt that completes the payment, in chain order: the receipts before it have more.
 * Undefined while too little money came.
 *
 * @param head number of the chain's scanned head
 * @param needed the confirmations that the chain is configured with
 */
export const confirmationsOf = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  head: number,
  needed: number
): Confirmations | undefined => {
  const enough = required(payment)
  let reached = 0n
  for (const { amount, blockNumber } of counted(payment, receipts)) {
    reached += amount
    if (reached >= enough) return { count: Math.min(needed, Math.max(0, head - blockNumber + 1)), needed }
  }
  return undefined
}

/**
 * A number that differs after every commit of another connection: data read at this version is still current.
 * https://sqlite.org/pragma.html#pragma_data_version
 */
const dataVersion = (reader: Db) =>
  Effect.map(reader.get<{ data_version: number }>("PRAGMA data_version"), (row) => row?.data_version ?? 0)

/** An amount of fiat money, or of the token that a price is in; a decimal. */
export interface Worth {
  readonly amount: string
  readonly currency: PriceCurrency
}

/** An invoice that nobody chose for yet. */
export interface Unchosen {
  readonly invoice: Invoice
  readonly payment?: undefined
  readonly shop: Shop
}

/** The stored data of a payment. */
export interface Stored extends Omit<Facts, "lags" | "now"> {
  readonly invoice?: Invoice
  /** The payment's worth at its creation; undefined if unknown. */
  readonly worth: Worth | undefined
  readonly shop: Shop
  /** The confirmations that it needs. */
  readonly needed: number
}

/** Maximum number of cached payments. */
const capacity = 256

const isToken = Schema.is(CheckoutToken)
const isFiat = Schema.is(Fiat)

/** The payment's worth by its quote, where one side of that is fiat money. */
const worthOfQuote = ({ chargeAmount, fromAmount, fromCurrency, toCurrency }: QuoteObject): Worth | undefined => {
  if (isFiat(fromCurrency)) return { amount: fromAmount, currency: fromCurrency }
  return isFiat(toCurrency) ? { amount: chargeAmount, currency: toCurrency } : undefined
}

/** Maximum number of exceptions on a page: the payer needs no more to turn to the shop. */
const mostExtras = 10

/** Less than this rounds to nothing, USD. */
const leastWorth = 0.005

export const makeReadPayment = Effect.gen(function* () {
  const reader = yield* Reader
  const settings = yield* Settings
  const chains = yield* Chains

  const confirmations = Effect.fnUntraced(function* (payment: Payment, needed: number) {
    const head = (yield* scan(reader, payment))?.head.number
    if (head === undefined) return undefined
    return confirmationsOf(payment, yield* Receipts.ofPayment(reader, payment), head, needed)
  })

  const chainIdIn = (mode: Mode) => (chain: ChainName) =>
    settings.chains.find((one) => one.chain === chain && one.mode === mode)?.chainId

  const paidBy = (payment: Payment) =>
    Effect.map(Receipts.ofPayment(reader, payment), (receipts) => paidByOf(payment, receipts, chainIdIn(payment.mode)))

  const worth = Effect.fnUntraced(function* ({ quoteId, usdValue }: Payment) {
    const quote = quoteId === undefined ? undefined : yield* Quotes.byId(reader, quoteId)
    const quoted = quote && worthOfQuote(quote)
    if (quoted !== undefined || usdValue === undefined || Number(usdValue) < leastWorth) return quoted
    return { amount: usdValue, currency: "USD" } satisfies Worth
  })

  const read = Effect.fnUntraced(function* (payment: Payment) {
    const network = settings.chains.find(({ chain, mode }) => chain === payment.chain && mode === payment.mode)
    const needed = network?.confirmations ?? 0
    const { exceptions } = yield* firstOfPayment(reader, payment.id, mostExtras)
    const stored: Stored = {
      payment,
      object: paymentObject(payment, settings),
      confirmations: payment.status === "detecting" ? yield* confirmations(payment, needed) : undefined,
      extras: extrasOf(payment, exceptions, settings.chains),
      paidBy: payment.amountReceived !== undefined || payment.status === "confirmed" ? yield* paidBy(payment) : [],
      worth: yield* worth(payment),
      shop: yield* shopOf(reader, payment.account),
      needed
    }
    return stored
  })

  /** With the payment that paid it, or else that of the last choice, and with what came for the other choices. */
  const readInvoice = Effect.fnUntraced(function* (
    invoice: Invoice
  ): Effect.fn.Return<Stored | Unchosen, StoreUnavailable> {
    const all = yield* Payments.ofInvoice(reader, invoice.id)
    const shown = all.find(({ status }) => status === "confirmed") ?? all.find(({ id }) => id === invoice.payment)
    if (shown === undefined) return { invoice, shop: yield* shopOf(reader, invoice.account) }
    const stored = yield* read(shown)
    const others = all.filter((one) => one !== shown)
    const ids = others.map(({ id }) => id)
    const exceptionsOf = yield* firstOfPayments(reader, ids, mostExtras)
    const former = others.flatMap((one) => extrasOf(one, exceptionsOf(one.id).exceptions, settings.chains, true))
    return { ...stored, invoice, extras: [...former, ...stored.extras].slice(0, mostExtras) }
  })

  const readBy = Effect.fnUntraced(function* (token: CheckoutToken) {
    const payment = yield* Payments.byCheckoutToken(reader, token)
    if (payment !== undefined && payment.invoice === undefined) return yield* read(payment)
    const invoice = yield* payment?.invoice === undefined
      ? Invoices.byCheckoutToken(reader, token)
      : Invoices.byId(reader, payment.invoice.id)
    return invoice && (yield* readInvoice(invoice))
  })

  const kept = new BoundedMap<string, Stored | Unchosen>(capacity)
  let keptAt: number | undefined

  /** What a token is of, a payment or an invoice; undefined for a token that is malformed or of neither. */
  const find = Effect.fnUntraced(function* (token: string) {
    if (!isToken(token)) return undefined
    // Before the first read, so that concurrent commits are read again.
    const version = yield* dataVersion(reader)
    if (version !== keptAt) kept.clear()
    keptAt = version
    const before = kept.get(token)
    if (before !== undefined) return before
    const stored = yield* readBy(token)
    if (stored !== undefined && keptAt === version) kept.set(token, stored)
    return stored
  })

  /** The page's view of it now, for one who looks at it. */
  const view = Effect.fnUntraced(function* (stored: Stored) {
    const { chain, mode } = stored.payment
    const health = (yield* chains.health).find((one) => one.chain === chain && one.mode === mode)
    const lags = health === undefined || !health.ready || (health.lagBlocks ?? 0) > stored.needed
    const view = viewOf({ ...stored, lags, now: yield* Clock.currentTimeMillis })
    if (!isFinal(view)) chains.viewed({ chain, mode })
    return view
  })

  return { find, view }
})

export type ReadPayment = Effect.Effect.Success<typeof makeReadPayment>
