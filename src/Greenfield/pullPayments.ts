/**
 * Refunds as shop plugins ask for them: how much goes back, of which order. The customer names the address on a page of its own
 * (`RefundPage.tsx`); a person pays it.
 */
import { Clock, Effect } from "effect"
import { formatUnits, parseUnits } from "viem"
import { keepWithin } from "../Auth/UsageRepo.ts"
import { required } from "../Domain/Amount.ts"
import { invalid, quotaExceeded } from "../Domain/ApiError.ts"
import { newPullPaymentId } from "../Domain/Ids.ts"
import { decimalsOfPayment } from "../Domain/Payment.ts"
import { Settings } from "../Settings.ts"
import { type Db, Reader, Tx, Writer } from "../Sql.ts"
import { PullPaymentBody, RefundInvoiceBody } from "./Api.ts"
import { notFound } from "./errors.ts"
import { type Asking, withBody } from "./operations.ts"
import * as Invoices from "./PluginInvoicesRepo.ts"
import * as Repo from "./PullPaymentsRepo.ts"
import { type ReadInvoice, readInvoice } from "./readInvoice.ts"

/** What is asked for: an amount of the invoice's currency, or of the token that it was paid in. */
interface Wanted {
  readonly name: string
  readonly description: string
  readonly amount: string
  readonly currency: string
}

const noOrder = invalid([
  {
    path: "name",
    message:
      "names no settled order of this store, or several: note the refund at the payment, in the portal (/portal), and send the money from your wallet"
  }
])

const problem = (path: string, message: string) => invalid([{ path, message }])

/** The words of a text that may be the id of an order, without what stands around them. */
const wordsOf = (name: string): ReadonlyArray<string> => [
  ...new Set(name.split(/[\s;,:]+/).flatMap((word) => [word, word.replace(/^[#("'[]+|[.)"'\]!?]+$/g, "")]))
]

/** The base units that an amount is of the invoice's payment, at the rate at which it was paid. */
const unitsOf = (
  { invoice: { price } }: ReadInvoice,
  payment: NonNullable<ReadInvoice["standing"]["payment"]>,
  wanted: Wanted
) => {
  const currency = wanted.currency.toUpperCase()
  if (currency === payment.currency && currency !== price.currency) {
    return Effect.succeed(parseUnits(wanted.amount, decimalsOfPayment(payment)))
  }
  if (currency !== price.currency)
    return problem("currency", `must be ${price.currency}, as the order, or ${payment.currency}`)
  return Effect.succeed((payment.amount * parseUnits(wanted.amount, 18)) / parseUnits(price.amount, 18))
}

export const pullPaymentOperations = Effect.gen(function* () {
  const settings = yield* Settings
  const reader = yield* Reader
  const writer = yield* Writer

  /** The one settled invoice whose order stands in a text. */
  const invoiceIn = Effect.fnUntraced(function* (db: Db, asking: Asking<unknown>, name: string) {
    const filter = { statuses: ["Settled"], text: undefined, from: undefined, until: undefined, skip: 0, take: 2 }
    const [only, ...others] = yield* Invoices.list(db, asking.key, { ...filter, orderIds: wordsOf(name) })
    return only === undefined || others.length > 0 ? yield* noOrder : only
  })

  const request = Effect.fnUntraced(function* (asking: Asking<unknown>, id: string, wanted: Wanted) {
    const { account, mode } = asking.key
    const pull = yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const read = yield* readInvoice(tx, settings, id)
        const payment = read?.standing.payment
        if (read === undefined || payment === undefined) return yield* noOrder
        const left = payment.received - payment.refunded - (yield* Repo.unclaimed(tx, payment.id))
        const all = yield* unitsOf(read, payment, wanted)
        // All of what a payment within its tolerance brought.
        const units = all > left && left >= required(payment) && all <= payment.amount ? left : all
        if (units <= 0n || units > left) {
          const most = formatUnits(left > 0n ? left : 0n, decimalsOfPayment(payment))
          return yield* problem("amount", `is more than is left of the order: ${most} ${payment.currency}`)
        }
        const made = { ...wanted, account, mode, id: newPullPaymentId(), payment: payment.id, units }
        yield* Repo.insert(made, yield* Clock.currentTimeMillis)
        yield* Effect.catchTag(keepWithin(asking.key, settings.accounts.quotaBytes), "QuotaExceeded", quotaExceeded)
        return made
      })
    )
    const { amount, currency, description, name } = pull
    return {
      ...{ id: pull.id, name, description, currency, amount, period: null, BOLT11Expiration: "30" },
      ...{ autoApproveClaims: false, archived: false },
      viewLink: `${settings.server.publicUrl}/pull-payments/${pull.id}`
    }
  })

  const create = Effect.fnUntraced(function* (asking: Asking<typeof PullPaymentBody.Type>) {
    const { amount, currency = "USD", description = "", name } = asking.body
    return yield* request(asking, yield* invoiceIn(reader, asking, name), { name, description, amount, currency })
  })

  const ofInvoice = Effect.fnUntraced(function* (asking: Asking<typeof RefundInvoiceBody.Type>) {
    const read = yield* readInvoice(reader, settings, asking.path["invoice"] ?? "")
    const payment = read?.standing.payment
    const isOwn = read?.invoice.account === asking.key.account && read.invoice.mode === asking.key.mode
    if (read === undefined || !isOwn) return yield* notFound("invoice")
    if (payment === undefined || read.standing.status !== "Settled") return yield* noOrder
    const {
      customAmount,
      customCurrency,
      description = "",
      name = `Refund of ${read.invoice.id}`,
      refundVariant
    } = asking.body
    const surplus = formatUnits(
      payment.received > payment.amount ? payment.received - payment.amount : 0n,
      decimalsOfPayment(payment)
    )
    const { price } = read.invoice
    const [amount, currency] =
      refundVariant === "Custom"
        ? [customAmount ?? "0", customCurrency ?? price.currency]
        : refundVariant === "OverpaidAmount"
          ? [surplus, payment.currency]
          : [price.amount, price.currency]
    return yield* request(asking, read.invoice.id, { name, description, amount, currency })
  })

  const mayAsk = "btcpay.store.cancreatenonapprovedpullpayments"
  return [
    withBody("POST", "stores/:store/pull-payments", mayAsk, PullPaymentBody, create),
    ...["stores/:store/invoices/:invoice/refund", "invoices/:invoice/refund"].map((path) =>
      withBody("POST", path, mayAsk, RefundInvoiceBody, ofInvoice)
    )
  ]
})
