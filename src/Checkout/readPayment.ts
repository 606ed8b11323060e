/**
 * Reads what a checkout page shows: the payment and its exceptions, and its receipts only while it is being confirmed and
 * once it is. Called for each page, and by the streams that follow one.
 */
import { Clock, Duration, Effect, Schema } from "effect"
import { scan } from "../Chains/ledger/LedgerRepo.ts"
import { Chains } from "../Chains.ts"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import { Fiat } from "../Domain/Currency.ts"
import { CheckoutToken } from "../Domain/Ids.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { QuoteObject } from "../Domain/Quote.ts"
import { paymentObject } from "../Events/paymentObject.ts"
import { firstOfPayment } from "../Payments/ExceptionListRepo.ts"
import * as Payments from "../Payments/PaymentsRepo.ts"
import * as Receipts from "../Payments/ReceiptsRepo.ts"
import * as Quotes from "../Quotes/QuotesRepo.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import { confirmationsOf } from "./confirmations.ts"
import { extrasOf } from "./extras.ts"
import { paidByOf } from "./paidBy.ts"
import { viewOf } from "./view.ts"

/** An amount of fiat money, a decimal. */
export interface Worth {
  readonly amount: string
  readonly currency: Fiat
}

const isToken = Schema.is(CheckoutToken)
const isFiat = Schema.is(Fiat)

/** What the payment is worth by its quote, where one side of that is fiat money. */
const worthOfQuote = ({ chargeAmount, fromAmount, fromCurrency, toCurrency }: QuoteObject): Worth | undefined => {
  if (isFiat(fromCurrency)) return { amount: fromAmount, currency: fromCurrency }
  return isFiat(toCurrency) ? { amount: chargeAmount, currency: toCurrency } : undefined
}

/** Exceptions that a page tells of: the payer needs no more to turn to the shop. */
const mostExtras = 10

/** Less than this rounds to nothing, USD. */
const leastWorth = 0.005

export const makeReadPayment = Effect.gen(function* () {
  const reader = yield* Reader
  const settings = yield* Settings
  const chains = yield* Chains
  const { settleGrace, toleranceBps } = settings.payments
  const rules = { settleGrace: Duration.toMillis(settleGrace), toleranceBps }

  const confirmations = Effect.fnUntraced(function* (payment: Payment, needed: number) {
    const head = (yield* scan(reader, payment))?.head.number
    if (head === undefined) return undefined
    return confirmationsOf(payment, yield* Receipts.ofPayment(reader, payment.id), head, needed, rules)
  })

  const chainIdIn = (mode: Mode) => (chain: ChainName) =>
    settings.chains.find((one) => one.chain === chain && one.mode === mode)?.chainId

  const paidBy = (payment: Payment) =>
    Effect.map(Receipts.ofPayment(reader, payment.id), (receipts) =>
      paidByOf(payment, receipts, chainIdIn(payment.mode), rules)
    )

  /** The payment of a token, found by its index; undefined for a token that is malformed or of no payment. */
  const find = (token: string) => (isToken(token) ? Payments.byCheckoutToken(reader, token) : Effect.succeed(undefined))

  const view = Effect.fnUntraced(function* (payment: Payment) {
    const network = settings.chains.find(({ chain, mode }) => chain === payment.chain && mode === payment.mode)
    const health = (yield* chains.health).find(({ chain, mode }) => chain === payment.chain && mode === payment.mode)
    const needed = network?.confirmations ?? 0
    const lags = health === undefined || !health.ready || (health.lagBlocks ?? 0) > needed
    const { exceptions } = yield* firstOfPayment(reader, payment.id, mostExtras)
    return viewOf({
      payment,
      object: paymentObject(payment, settings),
      confirmations: payment.status === "detecting" ? yield* confirmations(payment, needed) : undefined,
      extras: extrasOf(payment, exceptions, settings.chains),
      paidBy: payment.status === "confirmed" ? yield* paidBy(payment) : [],
      lags,
      now: yield* Clock.currentTimeMillis
    })
  })

  /** What the payment was worth when it was made; undefined where that is not known. */
  const worth = Effect.fnUntraced(function* ({ quoteId, usdValue }: Payment) {
    const quote = quoteId === undefined ? undefined : yield* Quotes.byId(reader, quoteId)
    const quoted = quote && worthOfQuote(quote)
    if (quoted !== undefined || usdValue === undefined || Number(usdValue) < leastWorth) return quoted
    return { amount: usdValue, currency: "USD" } satisfies Worth
  })

  return { find, view, worth }
})

export type ReadPayment = Effect.Effect.Success<typeof makeReadPayment>
