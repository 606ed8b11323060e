/**
 * Refunds as shop plugins ask for them: how much goes back, of which order. The customer names the address on a page of its own
 * (`RefundPage.tsx`); a person pays it.
 */
import { Clock, Effect } from "effect"
import { formatUnits, parseUnits } from "viem"
import { keepWithin } from "../Auth/UsageRepo.ts"
import type { Owner } from "../Domain/Account.ts"
import { required } from "../Domain/Amount.ts"
import { quotaExceeded } from "../Domain/ApiError.ts"
import { newPullPaymentId, type PaymentId, type RefundId } from "../Domain/Ids.ts"
import { decimalsOfPayment, type Payment } from "../Domain/Payment.ts"
import { Settings } from "../Settings.ts"
import { changes, type Db, execute, oneRow, Reader, Tx, Writer } from "../Sql.ts"
import { PullPaymentBody, RefundInvoiceBody } from "./Api.ts"
import { fieldProblem } from "./errors.ts"
import { type Asking, findInvoice, withBody } from "./operations.ts"
import * as Invoices from "./PluginInvoicesRepo.ts"
import { type ReadInvoice, readInvoice } from "./readInvoice.ts"

/** What a plugin wants sent back of a payment, until its customer has said to which address. */
export interface PullPayment extends Owner {
  readonly id: string
  readonly payment: PaymentId
  readonly name: string
  readonly description: string
  /** As the plugin asked for it: a decimal in its currency. */
  readonly amount: string
  readonly currency: string
  /** Base units of the payment's token. */
  readonly units: bigint
  /** Once the customer has named an address. */
  readonly refund: RefundId | undefined
}

interface Row extends Omit<PullPayment, "units"> {
  readonly units: string
}

export const pullPayment = (db: Db, id: string) =>
  Effect.map(
    oneRow<Row>(
      db,
      `SELECT id, account_id AS account, mode, payment_id AS payment, name, description, amount, currency, units,
         refund_id AS refund FROM pull_payments WHERE id = ?`,
      [id]
    ),
    (row): PullPayment | undefined => row && { ...row, units: BigInt(row.units) }
  )

/** @param at Unix milliseconds */
const insert = (pull: Omit<PullPayment, "refund">, at: number) =>
  execute(
    `INSERT INTO pull_payments (id, account_id, mode, payment_id, name, description, amount, currency, units, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[pull.id, pull.account, pull.mode, pull.payment, pull.name, pull.description, pull.amount, pull.currency],
      ...[`${pull.units}`, at]
    ]
  )

/** Stores its refund; false where somebody else was faster. */
export const setRefund = (id: string, refund: RefundId) =>
  changes("UPDATE pull_payments SET refund_id = ? WHERE id = ? AND refund_id IS NULL", [refund, id])

/** What is asked for: an amount of the invoice's currency, or of the token that it was paid in. */
type Wanted = Pick<PullPayment, "name" | "description" | "amount" | "currency">

const noOrder = fieldProblem("name", "names no settled order of this store, or several: note the refund in the portal")

/** The words of a text that may be the id of an order, in its order, with and without what stands around them. */
const wordsOf = (name: string): ReadonlyArray<string> =>
  name.split(/\s/).flatMap((word) => (word === "" ? [] : [word, ...word.split(/[;,.:!?#"'()[\]]/)]))

/** The base units that an amount is of the invoice's payment, at the rate at which it was paid. */
const unitsOf = ({ invoice: { price } }: ReadInvoice, payment: Payment, wanted: Wanted) => {
  const currency = wanted.currency.toUpperCase()
  if (currency === payment.currency && currency !== price.currency) {
    return Effect.succeed(parseUnits(wanted.amount, decimalsOfPayment(payment)))
  }
  if (currency !== price.currency)
    return fieldProblem("currency", `must be ${price.currency}, as the order, or ${payment.currency}`)
  return Effect.succeed((payment.amount * parseUnits(wanted.amount, 18)) / parseUnits(price.amount, 18))
}

export const pullPaymentOperations = Effect.gen(function* () {
  const settings = yield* Settings
  const reader = yield* Reader
  const writer = yield* Writer

  /** The one settled invoice of the order that a text names first. */
  const invoiceIn = Effect.fnUntraced(function* ({ key }: Asking<unknown>, name: string) {
    for (const word of wordsOf(name)) {
      const of = (statuses: ReadonlyArray<string>) =>
        Invoices.list(reader, key, { statuses, orderIds: [word], skip: 0, take: 2 })
      if ((yield* of([])).length === 0) continue
      const [only, ...others] = yield* of(["Settled"])
      return only === undefined || others.length > 0 ? yield* noOrder : only
    }
    return yield* noOrder
  })

  const request = Effect.fnUntraced(function* (asking: Asking<unknown>, id: string, wanted: Wanted) {
    const { account, mode } = asking.key
    const pull = yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const read = yield* readInvoice(tx, settings, id)
        const payment = read?.standing.payment
        if (read === undefined || payment === undefined) return yield* noOrder
        // What nobody has named an address for holds nothing: it may have been a mistake. The books refuse what is too much.
        const left = payment.received - payment.refunded
        const all = yield* unitsOf(read, payment, wanted)
        // All of what a payment within its tolerance brought.
        const units = all > left && left >= required(payment) && all <= payment.amount ? left : all
        if (units <= 0n || units > left) {
          const most = formatUnits(left > 0n ? left : 0n, decimalsOfPayment(payment))
          return yield* fieldProblem("amount", `is more than is left of the order: ${most} ${payment.currency}`)
        }
        const name = wanted.name.replaceAll(/\p{C}/gu, " ")
        const made = { ...wanted, name, account, mode, id: newPullPaymentId(), payment: payment.id, units }
        yield* insert(made, yield* Clock.currentTimeMillis)
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
    return yield* request(asking, yield* invoiceIn(asking, name), { name, description, amount, currency })
  })

  const ofInvoice = Effect.fnUntraced(function* (asking: Asking<typeof RefundInvoiceBody.Type>) {
    const read = yield* findInvoice(reader, settings, asking)
    const { payment } = read.standing
    if (payment === undefined || read.standing.status !== "Settled") return yield* noOrder
    const { id, price } = read.invoice
    const { customAmount = "0", customCurrency = price.currency, description = "", refundVariant } = asking.body
    const { name = `Refund of ${id}` } = asking.body
    const surplus = payment.received > payment.amount ? payment.received - payment.amount : 0n
    const [amount, currency] =
      refundVariant === "Custom"
        ? [customAmount, customCurrency]
        : refundVariant === "OverpaidAmount"
          ? [formatUnits(surplus, decimalsOfPayment(payment)), payment.currency]
          : [price.amount, price.currency]
    return yield* request(asking, id, { name, description, amount, currency })
  })

  const mayAsk = "btcpay.store.cancreatenonapprovedpullpayments"
  return [
    withBody("POST", "stores/:store/pull-payments", mayAsk, PullPaymentBody, create),
    ...["stores/:store/invoices/:invoice/refund", "invoices/:invoice/refund"].map((path) =>
      withBody("POST", path, mayAsk, RefundInvoiceBody, ofInvoice)
    )
  ]
})
