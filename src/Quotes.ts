/**
 * Quotes: prices that hold for 30 seconds, and payments made at them.
 *
 * `create` prices a conversion from the prices in memory (`Quotes/Prices.ts`) and the chain's gas price, takes off the
 * network and service fees, and stores the quote. `lock` is called by `Payments.create` in its transaction: it checks that
 * the payment asks for what the quote prices. A quote serves one payment.
 */
import { BigDecimal, Clock, Context, Effect, Layer, Option } from "effect"
import { formatUnits } from "viem"
import { keepWithin } from "./Auth/UsageRepo.ts"
import { Chains } from "./Chains.ts"
import type { QuotaExceeded } from "./Domain/AccountErrors.ts"
import { type ChainName, chainTraits, type Mode } from "./Domain/Chain.ts"
import { decimalsOf, nativeToken, type PaymentCurrency } from "./Domain/Currency.ts"
import { newQuoteId, type QuoteId } from "./Domain/Ids.ts"
import type { Owner } from "./Domain/Owner.ts"
import { QuoteRefused } from "./Domain/PaymentErrors.ts"
import {
  AmountTooSmall,
  type CreateQuote,
  type QuoteCurrency,
  QuoteImpossible,
  type QuoteObject,
  RateUnavailable
} from "./Domain/Quote.ts"
import { iso } from "./Domain/Timestamp.ts"
import { grossOf, networkFeeOf, serviceFeeOf } from "./Quotes/fees.ts"
import { Prices } from "./Quotes/Prices.ts"
import * as Repo from "./Quotes/QuotesRepo.ts"
import { type Priced, quoteRefusalOf, validityMillis } from "./Quotes/quoteRefusal.ts"
import { chainOf, termProblemsOf, transferGas, transferred } from "./Quotes/quoteTerms.ts"
import { rateOf } from "./Quotes/sources/rate.ts"
import { Settings } from "./Settings.ts"
import { type CommitWith, type StoreUnavailable, type Tx, Writer } from "./Sql.ts"

export type QuoteError = QuoteImpossible | RateUnavailable | AmountTooSmall | QuotaExceeded | StoreUnavailable

const noSuchQuote =
  "There is no such quote in this account and mode: request one with POST /v1/quotes, and use its id at once."

export class Quotes extends Context.Tag("tilld/Quotes")<
  Quotes,
  {
    readonly create: (
      owner: Owner,
      request: CreateQuote,
      alsoCommit?: CommitWith<QuoteObject>
    ) => Effect.Effect<QuoteObject, QuoteError>
    /**
     * Checks that `payment`, made at `now` (Unix milliseconds) in the same transaction, may use the quote: the quote is of
     * this account and mode, unused and valid, and prices exactly what the payment asks for. The payment's row marks it as
     * used.
     */
    readonly lock: (
      owner: Owner,
      quoteId: string,
      payment: Priced,
      now: number
    ) => Effect.Effect<QuoteId, QuoteRefused | StoreUnavailable, Tx>
  }
>() {
  static readonly layer = Layer.effect(
    Quotes,
    Effect.gen(function* () {
      const settings = yield* Settings
      const writer = yield* Writer
      const chains = yield* Chains
      const prices = yield* Prices

      const priceOf = (currency: QuoteCurrency) => {
        const { price, reason } = prices.of(currency)
        return price === undefined
          ? new RateUnavailable({ message: `No price of ${currency} can be given (${reason}): ask again later.` })
          : Effect.succeed(price)
      }

      /** In smallest units of the target currency. */
      const networkFee = Effect.fnUntraced(function* (mode: Mode, request: CreateQuote, chain: ChainName) {
        const token = transferred(request)
        if (token === undefined) return 0n
        const gas = yield* chains.gas({ chain, mode })
        if (gas === undefined) {
          return yield* new RateUnavailable({ message: `No recent gas price of ${chain} is known: ask again later.` })
        }
        const wei = gas.price * transferGas(token, chain) + gas.l1Fee
        const coin = nativeToken(chain)
        if (wei > chainTraits[chain].mostGas) {
          const message = `By the gas price of ${chain} a transfer costs ${formatUnits(wei, 18)} ${coin}, more than it can: ask again later.`
          return yield* new RateUnavailable({ message })
        }
        const native = yield* priceOf(coin)
        const target = yield* priceOf(request.toCurrency)
        return networkFeeOf(wei, native, target, decimalsOf[request.toCurrency])
      })

      const price = Effect.fnUntraced(function* (mode: Mode, request: CreateQuote) {
        const watched = settings.chains.filter((network) => network.mode === mode).map((network) => network.chain)
        const problems = termProblemsOf(request, watched)
        const chain = chainOf(request)
        if (problems.length > 0 || chain === undefined) return yield* new QuoteImpossible({ problems })
        const rate = rateOf(yield* priceOf(request.fromCurrency), yield* priceOf(request.toCurrency))
        const decimals = decimalsOf[request.toCurrency]
        const gross = grossOf(Option.getOrThrow(BigDecimal.fromString(request.amount)), rate, decimals)
        const service = serviceFeeOf(gross, settings.quotes.serviceFeeBps)
        const network = yield* networkFee(mode, request, chain)
        const inUnits = (amount: bigint) => formatUnits(amount, decimals)
        const fees = { network: inUnits(network), service: inUnits(service) }
        if (gross <= service + network) return yield* new AmountTooSmall({ gross: inUnits(gross), fees })
        return {
          fromCurrency: request.fromCurrency,
          toCurrency: request.toCurrency,
          fromAmount: request.amount,
          toAmount: inUnits(gross - service - network),
          chargeAmount: inUnits(gross),
          rate: formatUnits(rate.value, rate.scale),
          chain,
          fees
        }
      })

      const create = Effect.fn("Quotes.create")(function* (
        owner: Owner,
        request: CreateQuote,
        alsoCommit?: CommitWith<QuoteObject>
      ) {
        const { fees, ...priced } = yield* price(owner.mode, request)
        const now = yield* Clock.currentTimeMillis
        const validUntil = now + validityMillis
        const quote: QuoteObject = { id: newQuoteId(), ...priced, validUntil: iso(validUntil), fees }
        const insert = Repo.insert(owner, quote, now, validUntil)
        const stored = alsoCommit === undefined ? insert : Effect.zipRight(insert, alsoCommit(quote))
        yield* writer.write(Effect.zipRight(keepWithin(owner, settings.accounts.quotaBytes), stored))
        return quote
      })

      const decimalsOn = (mode: Mode, chain: ChainName, currency: PaymentCurrency): number => {
        const network = settings.chains.find((candidate) => candidate.chain === chain && candidate.mode === mode)
        return network?.tokens.find((token) => token.symbol === currency)?.decimals ?? decimalsOf[currency]
      }

      const lock = Effect.fnUntraced(function* (owner: Owner, quoteId: string, payment: Priced, now: number) {
        const stored = yield* Repo.byOwner(owner, quoteId)
        if (stored === undefined) {
          return yield* new QuoteRefused({ code: "QUOTE_NOT_FOUND", message: noSuchQuote })
        }
        const decimals = (currency: PaymentCurrency) => decimalsOn(owner.mode, payment.chain, currency)
        const refusal = quoteRefusalOf(stored, payment, decimals, now)
        return refusal === undefined ? stored.id : yield* refusal
      })

      return { create, lock }
    })
  )
}
