/**
 * Quotes: prices that hold for 30 seconds, and payments made at them.
 *
 * `create` prices a conversion from the prices in memory (`Quotes/Prices.ts`) and the chain's gas price, takes off the
 * network and service fees, and stores the quote. `lock` is called by `Payments.create` in its transaction: it checks that
 * the payment asks for what the quote prices. A quote serves one payment.
 */
import { BigDecimal, Clock, Context, Data, Effect, Layer, Option } from "effect"
import { formatUnits, parseUnits } from "viem"
import { keepWithin } from "./Auth/UsageRepo.ts"
import { Chains } from "./Chains.ts"
import type { Owner } from "./Domain/Account.ts"
import { type ChainName, chainNames, chainTraits, type Mode } from "./Domain/Chain.ts"
import {
  decimalsOf,
  type Fiat,
  isToken,
  nativeToken,
  offText,
  PaymentCurrency,
  type PriceCurrency,
  type Token,
  tokenChains
} from "./Domain/Currency.ts"
import { newQuoteId } from "./Domain/Ids.ts"
import { QuoteRefused } from "./Domain/Payment.ts"
import type { CreateQuote, QuoteCurrency, QuoteObject } from "./Domain/Quote.ts"
import { alternatives } from "./lib/annotations.ts"
import { iso } from "./lib/moment.ts"
import { Prices, stablecoins, toleranceOf } from "./Quotes/Prices.ts"
import type { StoredQuote } from "./Quotes/QuotesRepo.ts"
import * as Repo from "./Quotes/QuotesRepo.ts"
import { pow10, rateOf, ratio } from "./Quotes/sources/rate.ts"
import { type ChainSettings, Settings } from "./Settings.ts"
import { type CommitWith, Reader, Tx, Writer } from "./Sql.ts"

/** The fields are not possible together: every problem, by field. */
export class QuoteImpossible extends Data.TaggedError("QuoteImpossible")<{
  readonly problems: ReadonlyArray<{ readonly path: string; readonly message: string }>
}> {}

/** No fresh price, or no recent gas price, is known. Asking again later may help. */
export class RateUnavailable extends Data.TaggedError("RateUnavailable")<{ readonly message: string }> {}

/** The fees are not less than the amount. Both in `toCurrency`. */
export class AmountTooSmall extends Data.TaggedError("AmountTooSmall")<{
  readonly gross: string
  readonly fees: { readonly network: string; readonly service: string }
}> {}

/** The terms of a payment that names a quote. Amount in base units. */
interface Priced {
  readonly currency: PaymentCurrency
  readonly chain: ChainName
  readonly amount: bigint
}

interface Accepted {
  readonly currency: PaymentCurrency
  /** Base units, as digits. */
  readonly amounts: ReadonlyArray<string>
}

const isPayable = (currency: QuoteCurrency): currency is PaymentCurrency => isToken(currency) && currency !== "MATIC"

/** The terms that a payment may have with this quote: the amount bought, with or without fees, or the amount sold. */
const acceptedBy = (
  { chargeAmount, fromAmount, fromCurrency, toAmount, toCurrency }: QuoteObject,
  decimalsOn: (currency: PaymentCurrency) => number
): ReadonlyArray<Accepted> => {
  const accepted = (currency: PaymentCurrency, ...amounts: ReadonlyArray<string>) => ({
    currency,
    amounts: amounts.map((amount) => parseUnits(amount, decimalsOn(currency)).toString())
  })
  return [
    ...(isPayable(toCurrency) ? [accepted(toCurrency, toAmount, chargeAmount)] : []),
    ...(isPayable(fromCurrency) ? [accepted(fromCurrency, fromAmount)] : [])
  ]
}

const mismatchText = ({ fromCurrency, toCurrency }: QuoteObject, accepted: ReadonlyArray<Accepted>): string => {
  if (accepted.length > 0) return "The payment does not ask for what the quote prices: details has what would do."
  const none = "The quote prices nothing that a payment can be made in"
  return fromCurrency === "MATIC" || toCurrency === "MATIC"
    ? `${none}: MATIC can be quoted, but not paid in.`
    : `${none}: one of its currencies must be ${alternatives(PaymentCurrency.literals)}.`
}

const mismatch = (quote: QuoteObject, accepted: ReadonlyArray<Accepted>) =>
  new QuoteRefused({
    code: "QUOTE_MISMATCH",
    message: mismatchText(quote, accepted),
    details: { chain: quote.chain, accepted }
  })

/** How long a quote can be used, milliseconds. */
const validityMillis = 30_000
/** By how much the clock may be set back while a quote is valid, milliseconds: as time servers do. */
const clockStep = 5_000

/**
 * Why `payment`, made at `now` (Unix milliseconds), cannot use the quote; undefined where it can.
 *
 * @param decimalsOn decimals of a currency on the payment's chain
 */
export const quoteRefusalOf = (
  { quote, used, validUntil }: Omit<StoredQuote, "id">,
  payment: Priced,
  decimalsOn: (currency: PaymentCurrency) => number,
  now: number
): QuoteRefused | undefined => {
  if (used) {
    return new QuoteRefused({ code: "QUOTE_ALREADY_USED", message: "A payment uses this quote: create a new quote." })
  }
  // A quote dated well after now was made before the clock was set back: by any other clock it may have expired.
  if (now > validUntil || validUntil - now > validityMillis + clockStep) {
    return new QuoteRefused({
      code: "QUOTE_EXPIRED",
      message: `The quote was valid until ${quote.validUntil}: create a new quote.`
    })
  }
  const accepted = acceptedBy(quote, decimalsOn)
  const amount = payment.amount.toString()
  const fits =
    quote.chain === payment.chain &&
    accepted.some(({ amounts, currency }) => currency === payment.currency && amounts.includes(amount))
  return fits ? undefined : mismatch(quote, accepted)
}

/** Gas of a plain transfer of the native coin (yellow paper, G_transaction). */
const nativeTransferGas = 21_000n

/**
 * Gas of an ERC-20 transfer to an address that held none of the token, as a payment's does: 21,000 for the transaction,
 * 22,100 and 5,000 for the two balances (EIP-2200, EIP-2929), calldata and log 2,500, and, for USDC, its proxy, pause
 * and block list 10,000: 60,600, rounded up.
 */
const tokenTransferGas = 65_000n

const transferGas = (token: Token, chain: ChainName): bigint =>
  token === nativeToken(chain) ? nativeTransferGas : tokenTransferGas

/** The token whose transfer a quote's network fee pays for: the one bought, else the one sold; none between fiats. */
const transferred = ({ fromCurrency, toCurrency }: CreateQuote): Token | undefined =>
  [toCurrency, fromCurrency].find(isToken)

/** The chain of a quote: as asked, else ethereum, else the only one that fits. Undefined when no chain has both tokens. */
const chainOf = (request: CreateQuote): ChainName | undefined => {
  if (request.chain !== undefined) return request.chain
  const possible = chainsOf(request)
  return possible.includes("ethereum") ? "ethereum" : possible[0]
}

const chainsOf = ({ fromCurrency, toCurrency }: CreateQuote): ReadonlyArray<ChainName> =>
  chainNames.filter((chain) =>
    [fromCurrency, toCurrency].every((currency) => !isToken(currency) || tokenChains[currency].includes(chain))
  )

/** What is wrong with a decimal amount of a currency that has fewer decimals. `path`: its field. */
export const decimalProblems = (path: string, amount: string, currency: QuoteCurrency) => {
  const most = decimalsOf[currency]
  const message = `must have at most ${most} decimals, which is what ${currency} has`
  return (amount.split(".")[1]?.length ?? 0) > most ? [{ path, message }] : []
}

/** What is wrong with fiat currencies, by field; `on`: those that are on. */
export const offProblems = (on: ReadonlyArray<Fiat>, fields: Readonly<Record<string, QuoteCurrency>>) =>
  Object.entries(fields)
    .filter(([, currency]) => !isToken(currency) && !on.includes(currency))
    .map(([path, currency]) => ({ path, message: offText(currency) }))

/** The problems of the fields together. `watched`: the chains of the key's mode that take these currencies anew. */
const termProblemsOf = (request: CreateQuote, watched: ReadonlyArray<ChainName>): QuoteImpossible["problems"] => {
  const { amount, fromCurrency, toCurrency } = request
  const problems: Array<{ readonly path: string; readonly message: string }> = []
  if (fromCurrency === toCurrency) problems.push({ path: "toCurrency", message: "must differ from fromCurrency" })
  problems.push(...decimalProblems("amount", amount, fromCurrency))
  const chain = chainOf(request)
  const possible = chainsOf(request)
  if (chain === undefined || possible.length === 0) {
    problems.push({ path: "toCurrency", message: `is on no chain together with ${fromCurrency}` })
  } else if (!possible.includes(chain)) {
    const tokens = [fromCurrency, toCurrency].filter(isToken).join(" and ")
    problems.push({ path: "chain", message: `has no ${tokens}: choose ${alternatives(possible)}` })
  } else if (transferred(request) !== undefined && !watched.includes(chain)) {
    const offered = possible.filter((name) => watched.includes(name))
    problems.push({
      path: "chain",
      message: `${chain} is not available to this key: ${offered.length === 0 ? "no chain is" : `choose ${alternatives(offered)}`}`
    })
  }
  return problems
}

/** The decimals of every chain's native token. */
const nativeDecimals = 18n

const ceilDivide = (numerator: bigint, denominator: bigint): bigint => (numerator + denominator - 1n) / denominator

/** floor(amount × rate), in smallest units of a target currency with that many decimals. */
export const grossOf = (amount: BigDecimal.BigDecimal, rate: BigDecimal.BigDecimal, decimals: number): bigint => {
  const shift = BigInt(decimals - amount.scale - rate.scale)
  const product = amount.value * rate.value
  return shift >= 0n ? product * pow10(shift) : product / pow10(-shift)
}

/** The operator's fee, `bps` (1/100 %) of the gross amount, rounded up. Smallest units. */
export const serviceFeeOf = (gross: bigint, bps: number): bigint => ceilDivide(gross * BigInt(bps), 10_000n)

/**
 * Converts `wei` of a native token with the price `native` to a currency with the price `target` and that many decimals:
 * smallest units, rounded up. Both prices in the same currency.
 */
export const networkFeeOf = (
  wei: bigint,
  native: BigDecimal.BigDecimal,
  target: BigDecimal.BigDecimal,
  decimals: number
): bigint => {
  const [numerator, denominator] = ratio(native, target)
  return ceilDivide(wei * numerator * pow10(BigInt(decimals)), denominator * pow10(nativeDecimals))
}

const noSuchQuote =
  "There is no such quote in this account and mode: request one with POST /v1/quotes, and use its id at once."

const makeQuotes = Effect.gen(function* () {
  const settings = yield* Settings
  const writer = yield* Writer
  const reader = yield* Reader
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
    const { fromCurrency, toCurrency } = request
    const isClosed = ({ accepting, tokens }: ChainSettings) =>
      !accepting || tokens.some((one) => one.accepting === false && [fromCurrency, toCurrency].includes(one.symbol))
    const watched = settings.chains
      .filter((network) => network.mode === mode && !isClosed(network))
      .map((network) => network.chain)
    const off = offProblems(settings.rates.currencies, { fromCurrency, toCurrency })
    const problems = [...off, ...termProblemsOf(request, watched)]
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

  /**
   * The rate of a price. A stablecoin is one unit of its own currency while its price is within the tolerance of that, and
   * where no source has one; not where sources contradict each other.
   */
  const rateIn = Effect.fnUntraced(function* (fiat: PriceCurrency, token: PaymentCurrency) {
    const { fresh, price } = prices.of(token)
    const par = BigDecimal.make(1n, 0)
    if (fiat === "USD" && stablecoins.has(token)) {
      const difference = price === undefined ? undefined : BigDecimal.abs(BigDecimal.subtract(price, par))
      const isNear =
        difference === undefined ? fresh.length === 0 : !BigDecimal.greaterThan(difference, toleranceOf(token))
      if (isNear) return par
    }
    return rateOf(yield* priceOf(fiat), yield* priceOf(token))
  })

  /**
   * What a price costs in a token on a chain, without fees: the payer pays all of it. `units`: the same in base units. Not
   * stored before `keep`.
   */
  const priceIn = Effect.fnUntraced(function* (
    mode: Mode,
    { amount, currency: fiat }: { readonly amount: string; readonly currency: PriceCurrency },
    { chain, currency }: { readonly currency: PaymentCurrency; readonly chain: ChainName }
  ) {
    const rate = yield* rateIn(fiat, currency)
    const decimals = decimalsOn(mode, chain, currency)
    const units = grossOf(BigDecimal.unsafeFromString(amount), rate, decimals)
    if (units === 0n)
      return yield* new RateUnavailable({ message: `${amount} ${fiat} is less than a unit of ${currency}` })
    const charge = formatUnits(units, decimals)
    const quote: QuoteObject = {
      ...{ id: newQuoteId(), fromCurrency: fiat, toCurrency: currency, fromAmount: amount, toAmount: charge },
      ...{ chargeAmount: charge, rate: formatUnits(rate.value, rate.scale), chain },
      validUntil: iso((yield* Clock.currentTimeMillis) + validityMillis),
      fees: { network: "0", service: "0" }
    }
    return { quote, units }
  })

  /** What a transfer of a token costs its sender, a decimal in a fiat currency, rounded up. */
  const feeOf = (
    mode: Mode,
    { chain, currency }: { readonly currency: PaymentCurrency; readonly chain: ChainName },
    fiat: PriceCurrency
  ) =>
    Effect.map(networkFee(mode, { fromCurrency: currency, toCurrency: fiat, amount: "1" }, chain), (fee) =>
      formatUnits(fee, decimalsOf[fiat])
    )

  /**
   * Checks that `payment`, made at `now` (Unix milliseconds) in the same transaction, may use the quote: the quote is of
   * this account and mode, unused and valid, and prices exactly what the payment asks for. The payment's row marks it as
   * used.
   */
  const lock = Effect.fnUntraced(function* (owner: Owner, quoteId: string, payment: Priced, now: number) {
    const stored = yield* Repo.byOwner(yield* Tx, owner, quoteId)
    if (stored === undefined) {
      return yield* new QuoteRefused({ code: "QUOTE_NOT_FOUND", message: noSuchQuote })
    }
    const decimals = (currency: PaymentCurrency) => decimalsOn(owner.mode, payment.chain, currency)
    const refusal = quoteRefusalOf(stored, payment, decimals, now)
    return refusal === undefined ? stored.id : yield* refusal
  })

  return {
    ...{ create, lock, priceIn, feeOf },
    /** Stores a quote in the transaction of its payment, made at `now`, Unix milliseconds. */
    keep: (owner: Owner, quote: QuoteObject, now: number) => Repo.insert(owner, quote, now, now + validityMillis),
    get: (owner: Owner, id: string) => Effect.map(Repo.byOwner(reader, owner, id), (one) => one?.quote)
  }
})

export class Quotes extends Context.Tag("tilld/Quotes")<Quotes, Effect.Effect.Success<typeof makeQuotes>>() {
  static readonly layer = Layer.effect(Quotes, makeQuotes)
}
