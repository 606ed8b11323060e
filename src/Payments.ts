/**
 * Payments, as their owners create and read them. `create` checks what this installation offers, takes an address, locks the
 * quote, and stores the payment with its event in one transaction: when it returns, the payment is stored, its address is
 * watched and its webhooks are queued. What happens to a payment afterwards is up to settlement (`Payments/Settlement.ts`)
 * and operators (`Payments/decisions/`). Called by the HTTP handlers (`Payments/Http.ts`).
 */
import { BigDecimal, Context, Data, Duration, Effect, Layer } from "effect"
import { getAddress } from "viem"
import { shopOf } from "./Auth/shops.ts"
import { keepWithin } from "./Auth/UsageRepo.ts"
import { Tokens } from "./Chains/ledger/Tokens.ts"
import { WatchedAddresses } from "./Chains/ledger/WatchedAddresses.ts"
import { Chains } from "./Chains.ts"
import type { Owner, QuotaExceeded } from "./Domain/Account.ts"
import { floorOf } from "./Domain/Amount.ts"
import { type Mode, networkKey } from "./Domain/Chain.ts"
import { decimalsOf, nativeToken, PaymentCurrency, wholeTokens } from "./Domain/Currency.ts"
import { type Accounted, type AccountedPayment, StatusEventKind } from "./Domain/Event.ts"
import { newCheckoutToken, newPaymentId } from "./Domain/Ids.ts"
import {
  ChainNotConfigured,
  type CreatePayment,
  CurrencyNotOnChain,
  DuplicateMerchantRef,
  type Payment,
  paymentDefaults,
  type QuoteRefused,
  type WalletNotConfigured,
  WorthTooLittle
} from "./Domain/Payment.ts"
import { isLess, usdValueOf } from "./Domain/Quote.ts"
import { Outbox } from "./Events/Outbox.ts"
import { Addresses } from "./Payments/addresses/Addresses.ts"
import { cancelPayment } from "./Payments/cancellation.ts"
import * as Exceptions from "./Payments/ExceptionsRepo.ts"
import { changeMetadata } from "./Payments/metadata.ts"
import * as ListRepo from "./Payments/PaymentListRepo.ts"
import * as Repo from "./Payments/PaymentsRepo.ts"
import { shownMoney } from "./Payments/shownMoney.ts"
import { Prices } from "./Quotes/Prices.ts"
import { Quotes } from "./Quotes.ts"
import { Settings, type SettingsShape } from "./Settings.ts"
import { type CommitWith, Reader, type StoreUnavailable, Tx, Writer } from "./Sql.ts"
import { Metrics } from "./Telemetry/Metrics.ts"
import { type TargetRefused, Webhooks } from "./Webhooks.ts"

/** This installation cannot serve the request: every reason, at least one. */
export class NotOffered extends Data.TaggedError("NotOffered")<{
  readonly problems: ReadonlyArray<ChainNotConfigured | CurrencyNotOnChain | TargetRefused | WorthTooLittle>
}> {}

export type CreateError =
  | DuplicateMerchantRef
  | NotOffered
  | WalletNotConfigured
  | QuoteRefused
  | QuotaExceeded
  | StoreUnavailable

/** A new payment, and as its merchant sees it: its event has it already. */
export interface Created {
  readonly payment: Payment
  readonly object: AccountedPayment
}

/** The tokens that a new payment can ask for on a configured chain. */
export const payableOn = ({ accepting, chain, chainId, tokens }: SettingsShape["chains"][number]) =>
  PaymentCurrency.literals.flatMap((currency) => {
    const token = tokens.find(({ symbol }) => symbol === currency)
    const native = currency === nativeToken(chain)
    if (!accepting || token?.accepting === false || (token === undefined && !native)) return []
    const decimals = token?.decimals ?? decimalsOf[currency]
    return [{ currency, chain, chainId, decimals, native, ...(token && { contract: getAddress(token.address) }) }]
  })

const makePayments = Effect.gen(function* () {
  const settings = yield* Settings
  const writer = yield* Writer
  const reader = yield* Reader
  const addresses = yield* Addresses
  const outbox = yield* Outbox
  const quotes = yield* Quotes
  const webhooks = yield* Webhooks
  const matchSet = yield* WatchedAddresses
  const tokens = yield* Tokens
  const chains = yield* Chains
  const prices = yield* Prices
  const { payments } = yield* Metrics
  const clock = yield* Effect.clock
  const { toleranceBps } = settings.payments
  const floorUsd = BigDecimal.unsafeFromString(settings.payments.dustFloorUsd)
  const settleGrace = Duration.toMillis(settings.payments.settleGrace)
  for (const { chain, mode } of settings.chains)
    for (const kind of StatusEventKind.literals) payments.inc({ chain, mode, event: kind.replace("payment.", "") }, 0)

  const currencies = new Map(
    settings.chains.map((network) => [networkKey(network), payableOn(network).map(({ currency }) => currency)])
  )

  /** The worth of a payment now, USD; undefined while no price is known. */
  const usdValue = ({ amount, currency }: CreatePayment, decimals: number): string | undefined => {
    const price = prices.usd(currency)
    return price === undefined ? undefined : usdValueOf(amount, decimals, price)
  }

  const offerProblems = (mode: Mode, { chain, currency }: CreatePayment) => {
    const available = currencies.get(networkKey({ chain, mode })) ?? []
    if (available.length === 0) {
      const open = settings.chains.filter((network) => network.mode === mode && payableOn(network).length > 0)
      return [new ChainNotConfigured({ chain, mode, available: open.map((network) => network.chain) })]
    }
    return available.includes(currency) ? [] : [new CurrencyNotOnChain({ currency, chain, available })]
  }

  const refuseTooLittle = Effect.fnUntraced(function* ({ account }: Owner, worth = "", sum: () => string) {
    const least = (yield* shopOf(yield* Tx, account)).minimumUsd
    if (least === undefined || worth === "" || !isLess(worth, least)) return
    const message = `is worth ${worth} USD, and this account takes ${least} USD or more: ${sum()}`
    return yield* new NotOffered({ problems: [new WorthTooLittle({ message })] })
  })

  const targetProblems = (url: string) =>
    Effect.match(webhooks.checkTarget(url), { onFailure: (refused) => [refused], onSuccess: () => [] })

  const refuseDuplicate = Effect.fnUntraced(function* (owner: Owner, merchantRef: string) {
    const paymentId = yield* Repo.idByMerchantRef(yield* Tx, owner, merchantRef)
    if (paymentId !== undefined) return yield* new DuplicateMerchantRef({ paymentId })
  })

  const lockQuote = (owner: Owner, quoteId: string, request: CreatePayment, now: number) =>
    // First: a repeated request must get the existing payment, not the error that its quote is used.
    Effect.zipRight(refuseDuplicate(owner, request.merchantRef), quotes.lock(owner, quoteId, request, now))

  const store = (owner: Owner, request: CreatePayment, now: number, alsoCommit?: CommitWith<Created>) =>
    Effect.gen(function* () {
      const tx = yield* Tx
      const quoteId = request.quoteId === undefined ? undefined : yield* lockQuote(owner, request.quoteId, request, now)
      yield* Effect.tapErrorTag(keepWithin(owner, settings.accounts.quotaBytes), "QuotaExceeded", () =>
        refuseDuplicate(owner, request.merchantRef)
      )
      const token = tokens.offered({ chain: request.chain, mode: owner.mode }, request.currency)
      // An operator's own chain may have a token with other decimals.
      const decimals = token?.decimals ?? decimalsOf[request.currency]
      const worth = usdValue(request, decimals)
      yield* refuseTooLittle(owner, worth, () => wholeTokens(request.currency, decimals))
      const source = yield* addresses.take(owner)
      const { address } = source
      const payment = yield* Repo.insert(
        {
          id: newPaymentId(now),
          checkoutToken: newCheckoutToken(now),
          account: owner.account,
          mode: owner.mode,
          merchantRef: request.merchantRef,
          amount: request.amount,
          currency: request.currency,
          token,
          chain: request.chain,
          address,
          status: "pending",
          createdAt: now,
          expiresAt: request.expiresAt ?? now + (request.expiresIn ?? paymentDefaults.expiresIn) * 1000,
          settleGrace,
          toleranceBps,
          floor: floorOf(request.amount, worth, floorUsd),
          metadata: request.metadata ?? paymentDefaults.metadata,
          webhookUrl: request.webhookUrl,
          redirectUrl: request.redirectUrl,
          quoteId,
          invoice: request.invoice,
          usdValue: worth,
          amountReceived: undefined,
          txHash: undefined,
          confirmedAt: undefined,
          failureReason: undefined
        },
        source,
        chains.behind({ chain: request.chain, mode: owner.mode })
      )
      if (payment === undefined) {
        yield* refuseDuplicate(owner, request.merchantRef)
        return yield* Effect.dieMessage(`a merchantRef of ${owner.account} conflicts with no payment`)
      }
      const created = { payment, object: yield* outbox.publish(payment, now) }
      if (alsoCommit !== undefined) yield* alsoCommit(created)
      tx.afterCommit(() => {
        // Before the response, so that a customer who pays at once is seen.
        matchSet.add(owner.mode, address)
        chains.wake({ chain: request.chain, mode: owner.mode })
        payments.inc({ chain: request.chain, mode: owner.mode, event: "created" })
      })
      return created
    })

  /** What is asked and checked before the transaction. */
  const check = Effect.fnUntraced(function* (owner: Owner, request: CreatePayment) {
    // All problems at once.
    const { webhookUrl } = request
    const problems = [
      ...offerProblems(owner.mode, request),
      ...(webhookUrl === undefined ? [] : yield* targetProblems(webhookUrl))
    ]
    if (problems.length > 0) return yield* new NotOffered({ problems })
    yield* addresses.ready(owner)
    yield* chains.refresh({ chain: request.chain, mode: owner.mode })
    return clock.unsafeCurrentTimeMillis()
  })

  /**
   * `alsoCommit` also commits, in the same transaction. Without a span: making one, even without an exporter, takes as long as
   * the rest.
   */
  // Independent: indexes, references, quotes and addresses are unique, and a quota may be passed by a few.
  const create = (owner: Owner, request: CreatePayment, alsoCommit?: CommitWith<Created>) =>
    Effect.flatMap(check(owner, request), (now) => writer.write(store(owner, request, now, alsoCommit), true))

  /** The first part of `create`, outside of transactions. It gives the second, which stores, with this reference. */
  const prepare = (owner: Owner, request: CreatePayment) =>
    Effect.map(check(owner, request), (now) => (merchantRef: string) => store(owner, { ...request, merchantRef }, now))

  /** Newest first. */
  const list = Effect.fn("Payments.list")(function* (owner: Owner, filter: ListRepo.ListFilter) {
    const found = yield* ListRepo.list(reader, owner, filter)
    const ids = found.map(({ id }) => id)
    const shown = yield* Exceptions.firstOfPayments(reader, ids, Exceptions.shownInAnswers)
    return found.map((payment): Accounted => ({ payment, ...shown(payment.id) }))
  })

  const get = Effect.fnUntraced(function* (owner: Owner, id: string) {
    const payment = yield* Repo.byOwner(reader, owner, id)
    if (payment === undefined) return undefined
    return { payment, ...(yield* shownMoney(reader, payment.id)) }
  })

  /** See `cancelPayment`; `alsoCommit` as for `create`. */
  const cancel = (owner: Owner, id: string, alsoCommit?: CommitWith<Accounted>) =>
    cancelPayment((db) => Repo.byOwner(db, owner, id), alsoCommit).pipe(
      Effect.provideService(Writer, writer),
      Effect.provideService(Outbox, outbox),
      Effect.provideService(Settings, settings)
    )

  /** Changes keys of its metadata, see `merged`; `alsoCommit` as for `create`. Undefined where there is no payment. */
  const change = (owner: Owner, id: string, given: string, alsoCommit?: CommitWith<Accounted>) =>
    changeMetadata((db) => Repo.byOwner(db, owner, id), given, alsoCommit).pipe(
      Effect.provideService(Writer, writer),
      Effect.provideService(Settings, settings)
    )

  return { create, prepare, get, list, change, cancel }
})

/** An owner sees its own payments only: not those of another account or of the other mode. */
export class Payments extends Context.Tag("tilld/Payments")<Payments, Effect.Effect.Success<typeof makePayments>>() {
  static readonly layer = Layer.effect(Payments, makePayments)
}
