/** Invoices as shop plugins make, read, mark and choose for them. */
import { Clock, Effect, Option, Predicate, Schema } from "effect"
import { formatUnits, parseUnits } from "viem"
import { shopOf } from "../Auth/shops.ts"
import { keepWithin } from "../Auth/UsageRepo.ts"
import { type FieldProblem, invalid, quotaExceeded } from "../Domain/ApiError.ts"
import { decimalsOn, PriceCurrency } from "../Domain/Currency.ts"
import { type InvoiceId, newInvoiceId } from "../Domain/Ids.ts"
import { chosenBy, type InvoiceWithPayments, type Language, languages, type PaymentChoice } from "../Domain/Invoice.ts"
import { decimalsOfPayment, type Payment } from "../Domain/Payment.ts"
import { Outbox } from "../Events/Outbox.ts"
import { paymentObject } from "../Events/paymentObject.ts"
import { betweenParts } from "../Http/parts.ts"
import { invoiceRefusal } from "../Invoices/Http.ts"
import { choicesIn, Invoices } from "../Invoices.ts"
import { inexact } from "../lib/Json.ts"
import { audited, keyActor } from "../Operations/auditLog.ts"
import { isRedirectUrl, merchantRefField } from "../Payments/Api.ts"
import { accept } from "../Payments/decisions/accept.ts"
import { Quotes } from "../Quotes.ts"
import { Settings } from "../Settings.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { MetadataBody, PluginInvoiceBody, StatusBody } from "./Api.ts"
import { fieldProblem, noSuch, refusal } from "./errors.ts"
import { type Asking, findInvoice, pluginOperation, withBody } from "./operations.ts"
import * as Repo from "./PluginInvoicesRepo.ts"
import { invoiceView, markable, methodOf, type ReadInvoice, readInvoice, transferView } from "./readInvoice.ts"
import { paidOf } from "./status.ts"

type Body = typeof PluginInvoiceBody.Type

/** The problem of a field, unless it is right. */
const unless = (isRight: boolean, path: string, message: string): ReadonlyArray<FieldProblem> =>
  isRight ? [] : [{ path, message }]

const reference = Schema.decodeUnknownOption(merchantRefField(""))
const isCurrency = Schema.is(PriceCurrency)

/** The nearest language of the page: plugins send `nl-NL` and the like. */
const languageOf = (given = ""): Language | undefined => languages.find((one) => given.toLowerCase().startsWith(one))

/** Levels of metadata at most, and characters of all that is given back. */
const deepest = 5
const largest = 16 * 1024

const keptRule = `must have at most ${deepest} levels of exact values, and ${largest} bytes with the rest`

const isShallow = (value: unknown, depth: number): boolean =>
  value !== inexact &&
  (!Predicate.isObject(value) || (depth > 0 && Object.values(value).every((one) => isShallow(one, depth - 1))))

/** Whether a value can be given back as it came. */
const isKept = (value: object): boolean =>
  isShallow(value, deepest) && Buffer.byteLength(JSON.stringify(value)) <= largest

/** What is offered of the methods that are asked for, `USDC-BASE` or `USDC_BASE`, in the order of the configuration. */
const among = (offered: ReadonlyArray<PaymentChoice>, asked: ReadonlyArray<string> = []) => {
  const ids = new Set(asked.map((id) => id.toLowerCase().replaceAll("_", "-")))
  return ids.size === 0 ? offered : offered.filter((choice) => ids.has(choice.toLowerCase()))
}

/** Where the customer goes after paying: plugins name the invoice and the order in it, but not in its origin. */
const redirectOf = (url: string, id: InvoiceId, orderId: string | null): string => {
  const origin = url.slice(0, url.indexOf("/", url.indexOf("//") + 2))
  const filled = (_: string, name: string) => encodeURIComponent(/^i/i.test(name) ? id : (orderId ?? ""))
  return origin + url.slice(origin.length).replace(/(?:\{|%7B)(InvoiceId|OrderId)(?:\}|%7D)/gi, filled)
}

/** Fields by which the own API names what is wrong, as plugins know them. */
const fieldNames: Readonly<Record<string, string>> = {
  "price.amount": "amount",
  "price.currency": "currency",
  expiresIn: "checkout.expirationMinutes",
  redirectUrl: "checkout.redirectURL",
  currencies: "checkout.paymentMethods"
}

/** Refusals of the own API as problems of a field. @param path the field that a state of the invoice refuses */
const worded = (path: string) => (error: Parameters<typeof invoiceRefusal>[0] | StoreUnavailable) => {
  if (error._tag === "StoreUnavailable") return error
  const refused = invoiceRefusal(error)
  if (refused.code === "INVOICE_NOT_OPEN" || refused.code === "CHOICE_UNAVAILABLE")
    return fieldProblem(path, refused.message)
  if (refused.code !== "VALIDATION_ERROR") return refused
  // Sound: `invalid` makes these details.
  const problems = refused.details as ReadonlyArray<FieldProblem>
  return invalid(problems.map((one) => ({ ...one, path: fieldNames[one.path] ?? one.path })))
}

const listed = (query: URLSearchParams, name: string) => [...query.getAll(name), ...query.getAll(`${name}[]`)]

const numberIn = (query: URLSearchParams, name: string, most: number, unit = 1): number | undefined => {
  const text = query.get(name) ?? ""
  return /^\d{1,12}$/.test(text) ? Math.min(Number(text), most) * unit : undefined
}

/** How much of the price one token is. */
const rateOf = (price: string, units: bigint, decimals: number): string =>
  formatUnits((parseUnits(price, 18) * 10n ** BigInt(decimals)) / units, 18)

/** A payment method, with both names that plugins have for it and for its fee. */
const methodView = (id: string, of: { readonly rate: string; readonly amount: string; readonly due: string }) => ({
  ...{ paymentMethodId: id, paymentMethod: id, currency: id.split("-")[0], ...of },
  ...{ destination: "", paymentLink: "", activated: false, payments: [] as ReadonlyArray<object> },
  ...{ paymentMethodPaid: "0", totalPaid: "0", paymentMethodFee: "0", networkFee: "0" }
})

/** Why a path of Lightning is refused. */
const lightning = () =>
  refusal("NOT_FOUND", { status: 410, code: "unsupported-in-v2" }, "Lightning is not offered: use stablecoins or ETH.")

export const invoiceOperations = Effect.gen(function* () {
  const settings = yield* Settings
  const invoices = yield* Invoices
  const quotes = yield* Quotes
  const outbox = yield* Outbox
  const reader = yield* Reader
  const writer = yield* Writer
  const accepting = yield* Effect.context<Effect.Effect.Context<ReturnType<typeof accept>>>()

  const view = (read: ReadInvoice) => invoiceView(read, settings.server.publicUrl)

  const find = (asking: Pick<Asking<unknown>, "key" | "path">) => findInvoice(reader, settings, asking)

  /** The request for an invoice, or every problem of what a plugin sends. */
  const requestOf = Effect.fnUntraced(function* ({ body, key }: Asking<Body>) {
    const { amount = "", checkout = {}, metadata = {} } = body
    const orderId = Repo.orderIdOf(metadata)
    const id = newInvoiceId(yield* Clock.currentTimeMillis)
    const redirectUrl = checkout.redirectURL && redirectOf(checkout.redirectURL, id, orderId)
    const currencies = among(choicesIn(settings, key.mode), checkout.paymentMethods)
    const currency = (body.currency ?? (yield* shopOf(reader, key.account)).currency ?? "USD").toUpperCase()
    const isAllowed = redirectUrl === undefined || isRedirectUrl(redirectUrl, key.mode)
    const problems = [
      ...unless(amount !== "", "amount", "is required: top-ups are not offered"),
      ...unless(isCurrency(currency), "currency", "is not offered: use EUR, USD, GBP, MXN or a token"),
      ...unless(currencies.length > 0, "checkout.paymentMethods", "has none that this store takes: leave it out"),
      ...unless(isAllowed, "checkout.redirectURL", "must be an https URL; http on localhost with a test key"),
      ...unless(isKept(body), "metadata", keptRule)
    ]
    if (problems.length > 0 || !isCurrency(currency)) return yield* invalid(problems)
    const price = { amount, currency }
    const [only, ...others] = currencies
    if (only !== undefined && others.length === 0) {
      // Chosen at once, at the price of now.
      yield* Effect.mapError(quotes.priceIn(key.mode, price, chosenBy(only)), ({ message }) =>
        fieldProblem("currency", message)
      )
    }
    const { defaultLanguage, expirationMinutes } = checkout
    const request = {
      ...{ id, repeatsRef: true as const, price, currencies, redirectUrl, language: languageOf(defaultLanguage) },
      merchantRef: orderId === null ? undefined : Option.getOrUndefined(reference(orderId)),
      expiresIn: expirationMinutes === undefined ? undefined : Math.round(expirationMinutes * 60)
    }
    return { request, asked: { metadata, checkout, receipt: body.receipt ?? null } satisfies Repo.Asked }
  })

  const create = Effect.fnUntraced(function* (asking: Asking<Body>) {
    const { key, storeReplay } = asking
    const { asked, request } = yield* requestOf(asking)
    const { account, mode } = key
    let made: unknown
    const alsoCommit = ({ invoice }: InvoiceWithPayments) =>
      Effect.gen(function* () {
        yield* Repo.insert({ account, mode, id: invoice.id, asked }, invoice.createdAt)
        yield* outbox.tellPlugins(invoice.id, invoice.createdAt)
        const read = yield* readInvoice(yield* Tx, settings, invoice.id)
        made = read && view(read)
        yield* storeReplay?.(made) ?? Effect.void
      })
    yield* Effect.mapError(invoices.create(key, request, alsoCommit), worded("currency"))
    return made
  })

  const list = Effect.fnUntraced(function* ({ key, query }: Asking<unknown>) {
    const seconds = (name: string) => numberIn(query, name, 10 ** 11, 1000)
    const ids = yield* Repo.list(reader, key, {
      ...{ orderIds: listed(query, "orderId"), statuses: listed(query, "status") },
      text: query.get("textSearch") || undefined,
      ...{ from: seconds("startDate"), until: seconds("endDate") },
      ...{ skip: numberIn(query, "skip", 10_000) ?? 0, take: numberIn(query, "take", 100) ?? 50 }
    })
    const isWithMethods = query.get("includePaymentMethods") === "true"
    return yield* Effect.forEach(
      ids,
      Effect.fnUntraced(function* (id) {
        yield* betweenParts
        const read = yield* readInvoice(reader, settings, id)
        if (read === undefined) return yield* Effect.dieMessage(`there is no invoice ${id}`)
        return { ...view(read), ...(isWithMethods ? { paymentMethods: yield* methodsOf(read) } : {}) }
      }),
      { concurrency: 1 }
    )
  })

  const chosenView = ({ invoice: { price }, standing }: ReadInvoice, payment: Payment) => {
    const decimals = decimalsOfPayment(payment)
    const paid = formatUnits(paidOf(standing), decimals)
    const missing = payment.amount - paidOf(standing)
    // What a tolerance or a person has forgiven is not due.
    const due = standing.status === "Settled" && missing > 0n ? 0n : missing
    const amount = formatUnits(payment.amount, decimals)
    return {
      ...methodView(methodOf(payment), {
        ...{ rate: rateOf(price.amount, payment.amount, decimals), amount, due: formatUnits(due, decimals) }
      }),
      ...{ paymentMethodPaid: paid, totalPaid: paid, activated: true, destination: payment.address },
      paymentLink: paymentObject(payment, settings).paymentUri ?? "",
      payments: standing.transfers.map((transfer) => transferView(payment, transfer))
    }
  }

  /** Before a choice all that can be chosen, after it the chosen one alone: a plugin takes the last for the paid one. */
  const methodsOf = (read: ReadInvoice) => {
    const { invoice, standing } = read
    if (standing.payment !== undefined) return Effect.succeed([chosenView(read, standing.payment)])
    return Effect.map(invoices.offers(invoice), (offers) =>
      offers.flatMap(({ units, ...chosen }) => {
        if (units === undefined) return []
        const network = { chain: chosen.chain, mode: invoice.mode }
        const decimals = decimalsOn(settings.chains, network, chosen.currency) ?? 0
        const amount = formatUnits(units, decimals)
        return [
          methodView(methodOf(chosen), { rate: rateOf(invoice.price.amount, units, decimals), amount, due: amount })
        ]
      })
    )
  }

  const settle = (read: ReadInvoice, { key }: Asking<unknown>) => {
    const { payments, standing } = read
    const id = (standing.transfers.length > 0 ? standing.payment : payments.find(({ status }) => status === "failed"))
      ?.id
    if (id === undefined) return fieldProblem("status", "cannot be Settled: no money came")
    const act = { act: "payments accept", detail: { id } }
    return Effect.catchIf(
      Effect.provide(
        audited(keyActor(key), act, () => accept(id, key, {})),
        accepting
      ),
      (error) => error._tag !== "StoreUnavailable",
      ({ message }) => fieldProblem("status", message)
    )
  }

  const mark = Effect.fnUntraced(function* (asking: Asking<typeof StatusBody.Type>) {
    const read = yield* find(asking)
    const { status } = asking.body
    if (read.standing.status !== status) {
      const possible = markable(read)
      if (!possible.includes(status)) {
        return yield* fieldProblem(
          "status",
          `cannot be ${status}: ${possible.length === 0 ? "its status stays" : `use ${possible}`}`
        )
      }
      yield* status === "Settled"
        ? settle(read, asking)
        : Effect.mapError(invoices.cancel(asking.key, read.invoice.id), worded("status"))
    }
    return view(yield* find(asking))
  })

  const activate = Effect.fnUntraced(function* (asking: Asking<unknown>) {
    const { invoice } = yield* find(asking)
    const [choice] = among(invoice.choices, [asking.path["method"] ?? ""])
    if (choice === undefined) return yield* noSuch("paymentmethod")
    yield* Effect.mapError(invoices.choose(asking.key, invoice.id, chosenBy(choice)), worded("paymentMethodId"))
    return yield* methodsOf(yield* find(asking))
  })

  const change = Effect.fnUntraced(function* (asking: Asking<typeof MetadataBody.Type>) {
    const { plugin } = yield* find(asking)
    const { metadata } = asking.body
    if (!isKept(metadata)) return yield* fieldProblem("metadata", keptRule)
    const changed = Repo.setMetadata(plugin.id, { ...plugin.asked, metadata })
    const kept = Effect.catchTag(keepWithin(asking.key, settings.accounts.quotaBytes), "QuotaExceeded", quotaExceeded)
    yield* writer.write(Effect.zipRight(kept, changed))
    return view(yield* find(asking))
  })

  /** The paths of an invoice, which plugins also call without the store. */
  const both = (rest: string) => [`stores/:store/invoices/:invoice${rest}`, `invoices/:invoice${rest}`]
  const canView = "btcpay.store.canviewinvoices"
  const canModify = "btcpay.store.canmodifyinvoices"

  return [
    pluginOperation("GET", "stores/:store/invoices", canView, list),
    withBody("POST", "stores/:store/invoices", "btcpay.store.cancreateinvoice", PluginInvoiceBody, create),
    ...both("").flatMap((path) => [
      pluginOperation("GET", path, canView, (asking) => Effect.map(find(asking), view)),
      withBody("PUT", path, canModify, MetadataBody, change)
    ]),
    ...both("/status").map((path) => withBody("POST", path, canModify, StatusBody, mark)),
    ...both("/payment-methods").map((path) =>
      pluginOperation("GET", path, canView, (asking) => Effect.flatMap(find(asking), methodsOf))
    ),
    ...both("/payment-methods/:method/activate").map((path) => pluginOperation("POST", path, canView, activate)),
    ...["LightningNetwork", "LNURL"].map((id) =>
      pluginOperation("GET", `stores/:store/payment-methods/${id}`, undefined, lightning)
    )
  ]
})
