/**
 * Invoices: `create` stores a price, `choose` makes the payment of a customer's choice with a locked quote, and cancels the
 * payment of the choice before; the status follows the payments (`Payments/InvoicesRepo.ts`). Called by the HTTP handlers and
 * the checkout. `main` runs the worker, which ends what nobody chose.
 */
import { Array as Arr, BigDecimal, Clock, Context, Data, Duration, Effect, Layer, Option, Order } from "effect"
import { shopOf } from "./Auth/shops.ts"
import { keepWithin } from "./Auth/UsageRepo.ts"
import type { Owner } from "./Domain/Account.ts"
import type { FieldProblem } from "./Domain/ApiError.ts"
import type { Mode } from "./Domain/Chain.ts"
import { newCheckoutToken, newInvoiceId } from "./Domain/Ids.ts"
import {
  ChoiceUnpriced,
  type Chosen,
  type CreateInvoice,
  choiceName,
  chosenBy,
  DuplicateInvoiceRef,
  type Invoice,
  type InvoiceNotOpen,
  type InvoiceWithPayments,
  mostChoices,
  NotAChoice,
  notOpen,
  type PaymentChoice,
  rateHeldFor
} from "./Domain/Invoice.ts"
import { isEnded, type Payment, paymentDefaults } from "./Domain/Payment.ts"
import { isLess } from "./Domain/Quote.ts"
import { Outbox, PluginEvents } from "./Events/Outbox.ts"
import { cancelInvoice } from "./Invoices/invoiceOperations.ts"
import { Addresses } from "./Payments/addresses/Addresses.ts"
import { endCancelled } from "./Payments/cancellation.ts"
import * as Repo from "./Payments/InvoicesRepo.ts"
import * as PaymentsRepo from "./Payments/PaymentsRepo.ts"
import { type CreateError, Payments, payableOn } from "./Payments.ts"
import { Prices } from "./Quotes/Prices.ts"
import { decimalProblems, offProblems, Quotes } from "./Quotes.ts"
import { Settings, type SettingsShape } from "./Settings.ts"
import { type CommitWith, type Db, Reader, Tx, Writer } from "./Sql.ts"
import { Workers } from "./Telemetry/Workers.ts"
import { Webhooks } from "./Webhooks.ts"

/** The request cannot be served here: every problem, by field. */
export class InvoiceRefused extends Data.TaggedError("InvoiceRefused")<{
  readonly problems: ReadonlyArray<FieldProblem>
}> {}

export type ChooseError = InvoiceNotOpen | NotAChoice | ChoiceUnpriced | CreateError
export type InvoiceError = InvoiceRefused | DuplicateInvoiceRef | NotAChoice | CreateError

/** An invoice that is not stored yet. */
type Draft = Omit<Invoice, "sequence" | "payment" | "changes">

/** The payment of the last choice. */
const lastOf = ({ invoice, payments }: InvoiceWithPayments) => payments.find(({ id }) => id === invoice.payment)

/** Whether the payment of the last choice is of this choice and waits for money at its rate. */
const isSame = (one: Payment | undefined, { chain, currency }: Chosen, now: number): boolean =>
  one?.chain === chain && one.currency === currency && one.status === "pending" && now < one.expiresAt

/** A choice of an open invoice at the prices of now. */
export interface PricedChoice extends Chosen {
  /** Base units of the token that pay the price; undefined where there is no price. */
  readonly units: bigint | undefined
  /** What a transfer costs the payer, a decimal in the invoice's currency; undefined where that is not known. */
  readonly fee: string | undefined
}

/** All that can be paid in, in the order of the configuration. */
export const choicesIn = ({ chains }: Pick<SettingsShape, "chains">, mode: Mode): ReadonlyArray<PaymentChoice> =>
  chains
    .filter((network) => network.mode === mode)
    .flatMap(payableOn)
    .map(choiceName)

/** How often the worker looks for invoices that have ended without a choice, at least. */
const interval = "30 seconds"
const atOnce = 100

type Choose = (
  owner: Owner,
  id: string,
  chosen: Chosen,
  alsoCommit?: CommitWith<InvoiceWithPayments>
) => Effect.Effect<InvoiceWithPayments | undefined, ChooseError>

const makeInvoices = Effect.gen(function* () {
  const settings = yield* Settings
  const writer = yield* Writer
  const reader = yield* Reader
  const outbox = yield* Outbox
  const plugins = yield* PluginEvents
  const addresses = yield* Addresses
  const payments = yield* Payments
  const quotes = yield* Quotes
  const prices = yield* Prices
  const webhooks = yield* Webhooks
  const heartbeat = (yield* Workers).worker("invoices", interval)

  const withPayments = (db: Db, invoice: Invoice) =>
    Effect.map(PaymentsRepo.ofInvoice(db, invoice.id), (all): InvoiceWithPayments => ({ invoice, payments: all }))

  const found = (db: Db, owner: Owner, id: string) =>
    Effect.flatMap(Repo.byOwner(db, owner, id), (invoice) =>
      invoice === undefined ? Effect.succeed(undefined) : withPayments(db, invoice)
    )

  const problemsOf = Effect.fnUntraced(function* ({ mode }: Owner, { currencies, price, webhookUrl }: CreateInvoice) {
    const offered = choicesIn(settings, mode)
    const wrongPrice = decimalProblems("price.amount", price.amount, price.currency)
    const none = offered.length === 0 ? [{ path: "currencies", message: `no chain is open for ${mode} keys` }] : []
    const wrong = (currencies ?? []).flatMap(
      (choice, place): ReadonlyArray<FieldProblem> =>
        offered.includes(choice)
          ? []
          : [{ path: `currencies[${place}]`, message: `is not available: choose of ${offered.join(", ")}` }]
    )
    const target = webhookUrl === undefined ? Effect.void : webhooks.checkTarget(webhookUrl)
    const refused = yield* Effect.match(target, {
      onFailure: ({ message }) => [{ path: "webhookUrl", message }],
      onSuccess: () => []
    })
    const off = offProblems(settings.rates.currencies, { "price.currency": price.currency })
    return [...off, ...wrongPrice, ...(none.length > 0 ? none : wrong), ...refused]
  })

  /** The price is worth less than the account takes. */
  const refuseTooLittle = Effect.fnUntraced(function* ({ account }: Owner, { amount, currency }: Invoice["price"]) {
    const { minimumUsd } = yield* shopOf(yield* Tx, account)
    const one = prices.usd(currency)
    if (minimumUsd === undefined || one === undefined) return
    const worth = BigDecimal.multiply(BigDecimal.unsafeFromString(amount), one)
    if (!isLess(BigDecimal.format(worth), minimumUsd)) return
    const message = `is worth less than the ${minimumUsd} USD that this account takes`
    return yield* new InvoiceRefused({ problems: [{ path: "price.amount", message }] })
  })

  const refuseRepeated = Effect.fnUntraced(function* (owner: Owner, merchantRef: string) {
    const tx = yield* Tx
    if ((yield* shopOf(tx, owner.account)).invoiceRefs === "repeat") return
    const before = yield* Repo.byMerchantRef(tx, owner, merchantRef)
    if (before !== undefined) return yield* new DuplicateInvoiceRef({ invoiceId: before.id })
  })

  const draftOf = ({ account, mode }: Owner, request: CreateInvoice, now: number): Draft => ({
    ...{
      id: request.id ?? newInvoiceId(now),
      checkoutToken: newCheckoutToken(now),
      status: "open",
      createdAt: now
    },
    ...{ account, mode, merchantRef: request.merchantRef, price: request.price },
    choices: request.currencies ?? choicesIn(settings, mode),
    expiresAt: now + (request.expiresIn ?? paymentDefaults.expiresIn) * 1000,
    metadata: request.metadata ?? paymentDefaults.metadata,
    redirectUrl: request.redirectUrl,
    webhookUrl: request.webhookUrl,
    language: request.language
  })

  const store = Effect.fnUntraced(function* (owner: Owner, draft: Draft, repeatsRef = false) {
    const { createdAt, merchantRef, price } = draft
    if (merchantRef !== undefined && !repeatsRef) yield* refuseRepeated(owner, merchantRef)
    yield* keepWithin(owner, settings.accounts.quotaBytes)
    yield* refuseTooLittle(owner, price)
    const invoice = yield* Repo.insert(draft)
    yield* outbox.publishInvoice({ invoice, payments: [] }, createdAt)
    return invoice
  })

  /** `alsoCommit` also commits, in the same transaction. Where one thing can be chosen, it is chosen at once. */
  const create = Effect.fn("Invoices.create")(function* (
    owner: Owner,
    request: CreateInvoice,
    alsoCommit: CommitWith<InvoiceWithPayments> = () => Effect.void
  ) {
    const problems = yield* problemsOf(owner, request)
    if (problems.length > 0) return yield* new InvoiceRefused({ problems })
    yield* addresses.ready(owner)
    const draft = draftOf(owner, request, yield* Clock.currentTimeMillis)
    const [only, ...others] = draft.choices
    // Without a price it waits for the customer, who may find one.
    const choice =
      only === undefined || others.length > 0
        ? undefined
        : yield* Effect.catchTag(prepare(owner, draft, chosenBy(only)), "ChoiceUnpriced", () => Effect.void)
    return yield* writer.write(
      Effect.gen(function* () {
        const invoice = yield* store(owner, draft, request.repeatsRef)
        if (choice !== undefined) yield* make(owner, invoice, choice, draft.createdAt)
        const made = (yield* found(yield* Tx, owner, draft.id)) ?? { invoice, payments: [] }
        yield* alsoCommit(made)
        return made
      })
    )
  })

  /** Fails unless the customer may choose now. */
  const refuseLater = (invoice: Invoice, made: number, now: number) =>
    invoice.status !== "open"
      ? notOpen(invoice.status)
      : now >= invoice.expiresAt
        ? notOpen("expired")
        : made >= mostChoices
          ? notOpen("open")
          : Effect.void

  /** The invoice's reference where no payment has it, else the first free one behind it. */
  const freeRef = Effect.fnUntraced(function* (owner: Owner, { id, merchantRef = id }: Invoice) {
    const tx = yield* Tx
    const short = [...merchantRef].slice(0, 120).join("")
    for (const ref of [merchantRef, ...Array.from({ length: mostChoices }, (_, i) => `${short}#${i + 2}`)]) {
      if ((yield* PaymentsRepo.idByMerchantRef(tx, owner, ref)) === undefined) return ref
    }
    return `${id}#${(yield* PaymentsRepo.ofInvoice(tx, id)).length + 1}`
  })

  /** Without those that take nothing new any more: an invoice may be older than that. */
  const openChoices = (choices: Draft["choices"], mode: Mode) => {
    const open = choicesIn(settings, mode)
    return choices.filter((choice) => open.includes(choice))
  }

  /** The part of a choice outside of transactions: its price, and what makes its payment. */
  const prepare = Effect.fnUntraced(function* (owner: Owner, invoice: Draft, chosen: Chosen) {
    const { choices, expiresAt, metadata, mode, price, redirectUrl, webhookUrl } = invoice
    const available = openChoices(choices, mode)
    if (!available.includes(choiceName(chosen))) return yield* new NotAChoice({ available })
    const { quote, units: amount } = yield* Effect.catchTag(
      quotes.priceIn(mode, price, chosen),
      "RateUnavailable",
      ({ message }) =>
        Effect.flatMap(offers(invoice), (some) => {
          const available = some.flatMap((offer) => (offer.units === undefined ? [] : [choiceName(offer)]))
          return new ChoiceUnpriced({ message, available })
        })
    )
    const held = Math.min((yield* Clock.currentTimeMillis) + rateHeldFor, expiresAt)
    const request = { ...chosen, merchantRef: invoice.id, amount, quoteId: quote.id, invoice, expiresAt: held }
    const create = yield* payments.prepare(owner, { ...request, metadata, redirectUrl, webhookUrl })
    return { quote, create }
  })

  /** The part inside of one: the payment that is the choice from now on. */
  const make = Effect.fnUntraced(function* (
    owner: Owner,
    invoice: Invoice,
    { create: createPayment, quote }: Effect.Effect.Success<ReturnType<typeof prepare>>,
    now: number
  ) {
    yield* quotes.keep(owner, quote, now)
    const { payment } = yield* createPayment(yield* freeRef(owner, invoice))
    yield* Repo.setPayment(invoice.id, payment.id)
  })

  /** Ends the payment of the choice before. No money was seen for it: the invoice would be processing. */
  const replace = Effect.fnUntraced(function* (former: Payment, id: Invoice["id"]) {
    if (isEnded(former.status)) return
    yield* Repo.setPayment(id, undefined)
    yield* Effect.orDie(endCancelled(outbox, former))
  })

  /** Makes the payment of a choice. The same choice again gives the payment that is there, while its rate holds. */
  const choose: Choose = Effect.fn("Invoices.choose")(function* (owner, id, chosen, alsoCommit = () => Effect.void) {
    const seen = yield* found(reader, owner, id)
    if (seen === undefined) return undefined
    const now = yield* Clock.currentTimeMillis
    yield* refuseLater(seen.invoice, 0, now)
    // What is chosen already needs no price.
    const choice = isSame(lastOf(seen), chosen, now) ? undefined : yield* prepare(owner, seen.invoice, chosen)
    const made = yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const current = (yield* found(tx, owner, id)) ?? seen
        const { invoice, payments: all } = current
        const former = lastOf(current)
        if (!isSame(former, chosen, now)) {
          yield* refuseLater(invoice, all.length, now)
          if (choice === undefined) return undefined
          if (former !== undefined) yield* replace(former, invoice.id)
          yield* make(owner, invoice, choice, now)
        }
        const result = (yield* found(tx, owner, id)) ?? current
        yield* alsoCommit(result)
        return result
      })
    )
    // Another choice came in between.
    return made ?? (yield* choose(owner, id, chosen, alsoCommit))
  })

  const offer = Effect.fnUntraced(function* ({ mode, price }: Draft, chosen: Chosen) {
    const priced = yield* Effect.option(quotes.priceIn(mode, price, chosen))
    const fee = yield* Effect.option(quotes.feeOf(mode, chosen, price.currency))
    const units = Option.getOrUndefined(priced)?.units
    return { ...chosen, units, fee: Option.getOrUndefined(fee) } satisfies PricedChoice
  })

  const byFee = Order.mapInput(Order.number, ({ fee }: PricedChoice) => Number(fee ?? Number.POSITIVE_INFINITY))

  /** What can be chosen now, the cheapest transfer first. */
  const offers = (invoice: Draft) =>
    Effect.map(
      Effect.forEach(openChoices(invoice.choices, invoice.mode).map(chosenBy), (chosen) => offer(invoice, chosen), {
        concurrency: 1
      }),
      (some): ReadonlyArray<PricedChoice> => Arr.sort(some, byFee)
    )

  const endUnchosen = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    let ended = atOnce
    while (ended === atOnce) {
      ended = yield* writer.write(
        Effect.gen(function* () {
          const due = yield* Repo.ending(yield* Tx, now, atOnce)
          for (const invoice of due) yield* Repo.followPayment(outbox, invoice.id, now)
          return due.length
        })
      )
    }
    for (const id of yield* plugins.awaited(reader)) yield* writer.write(outbox.tellPlugins(id, now))
    const next = yield* Repo.nextEnd(reader, now)
    return Math.min(next === undefined ? Number.POSITIVE_INFINITY : next - now, Duration.toMillis(interval))
  })

  return {
    create,
    choose,
    offers,
    get: (owner: Owner, id: string) => found(reader, owner, id),
    /** Newest first. */
    list: (owner: Owner, filter: Repo.InvoiceFilter) =>
      Effect.flatMap(Repo.list(reader, owner, filter), (some) =>
        Effect.forEach(some, (invoice) => withPayments(reader, invoice), { concurrency: 1 })
      ),
    /** Ends an open invoice and its open payment. A repetition changes nothing. */
    cancel: (owner: Owner, id: string, alsoCommit?: CommitWith<InvoiceWithPayments>) =>
      cancelInvoice((db) => Repo.byOwner(db, owner, id), alsoCommit).pipe(
        Effect.provideService(Writer, writer),
        Effect.provideService(Outbox, outbox)
      ),
    /** The worker. */
    run: heartbeat(endUnchosen).pipe(
      // The store's own health says when it cannot be written.
      Effect.orElseSucceed(() => Duration.toMillis(interval)),
      Effect.flatMap((millis) => Effect.sleep(Duration.millis(millis))),
      Effect.forever,
      Effect.annotateLogs({ service: "invoices" })
    )
  }
})

export class Invoices extends Context.Tag("tilld/Invoices")<Invoices, Effect.Effect.Success<typeof makeInvoices>>() {
  static readonly layer = Layer.effect(Invoices, makeInvoices)
}
