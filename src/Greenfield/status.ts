/**
 * The standing of an invoice in the words of shop plugins: pure, from its payments and what came for them. The table of
 * statuses is that of BTCPay Server's Greenfield API.
 */
import { required, sum } from "../Domain/Amount.ts"
import type { PaymentException } from "../Domain/Exception.ts"
import type { Invoice, InvoiceWithPayments } from "../Domain/Invoice.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { ShownReceipt } from "../Domain/Receipt.ts"

export type PluginStatus = "New" | "Processing" | "Settled" | "Expired" | "Invalid"
export type AdditionalStatus = "None" | "PaidPartial" | "PaidOver" | "PaidLate" | "Marked" | "Invalid"

/** What came for a payment. */
export interface Money {
  /** In chain order. */
  readonly receipts: ReadonlyArray<ShownReceipt>
  readonly exceptions: ReadonlyArray<PaymentException>
}

/** A transfer that pays for the invoice, in time or not. */
export interface PluginTransfer {
  /** The transaction's hash and a number. */
  readonly id: string
  /** Unix seconds. */
  readonly at: number
  /** Base units. */
  readonly amount: bigint
  readonly status: "Processing" | "Settled"
  /** It came, or was first seen, after the end of its payment. */
  readonly isLate: boolean
}

export interface PluginStanding {
  readonly status: PluginStatus
  readonly additional: AdditionalStatus
  /** The payment that is shown: the one with money, else that of the last choice. */
  readonly payment: Payment | undefined
  readonly transfers: ReadonlyArray<PluginTransfer>
}

/** Receipts of the payment's own money: what is of another token or chain, or came before, pays for nothing. */
const own = new Set(["credited", "overpaid", "underpaid", "late", "found_late"])

/** @param needed the confirmations that the payment's chain asks for */
const transfersOf = (payment: Payment, { receipts }: Money, needed: number): ReadonlyArray<PluginTransfer> => {
  const counts = new Map<string, number>()
  return receipts
    .filter(({ chain, currency, kind }) => own.has(kind) && chain === payment.chain && currency === payment.currency)
    .flatMap(({ amount, at, confirmations = 0, kind, txHash }): ReadonlyArray<PluginTransfer> => {
      if (txHash === undefined) return []
      const n = counts.get(txHash) ?? 0
      counts.set(txHash, n + 1)
      const isSettled = kind === "credited" ? payment.status === "confirmed" : confirmations >= needed
      const status = isSettled ? "Settled" : "Processing"
      const isLate = kind === "late" || kind === "found_late"
      return [{ id: `${txHash}-${n}`, at, amount: BigInt(amount), status, isLate }]
    })
}

/** What came for the shown payment, base units, late or uncertain money too. `transfers` has the newest ones alone. */
export const paidOf = ({ payment }: Pick<PluginStanding, "payment">): bigint => payment?.received ?? 0n

/** Whether a person decided that it is paid: the money by itself had not been enough, or not in time. */
const isAccepted = (payment: Payment, { exceptions }: Money): boolean =>
  (payment.amountReceived ?? 0n) < required(payment) ||
  exceptions.some(({ kind, status }) => status === "accepted" && kind !== "overpaid")

const unpaid = (payment: Payment | undefined, transfers: ReadonlyArray<PluginTransfer>): AdditionalStatus => {
  if (payment === undefined || transfers.length === 0) return "None"
  // Shops ship for late money by default: it must be certain. What is not is the newest.
  const uncertain = transfers.filter(({ status }) => status === "Processing")
  const isCertain = uncertain.length < transfers.length
  return isCertain && payment.received - sum(uncertain.map(({ amount }) => amount)) >= required(payment)
    ? "PaidLate"
    : "PaidPartial"
}

type Said = readonly [PluginStatus, AdditionalStatus]

const said = (
  { status }: Invoice,
  payment: Payment | undefined,
  transfers: ReadonlyArray<PluginTransfer>,
  money: Money
): Said => {
  const paid = paidOf({ payment })
  const surplus: AdditionalStatus = payment !== undefined && paid > payment.amount ? "PaidOver" : "None"
  switch (status) {
    case "open":
      return ["New", "None"]
    case "processing":
      return payment === undefined || paid < required(payment) ? ["New", "PaidPartial"] : ["Processing", surplus]
    case "paid":
      return ["Settled", payment !== undefined && isAccepted(payment, money) ? "Marked" : surplus]
    case "expired":
      return ["Expired", unpaid(payment, transfers)]
    case "cancelled":
      return ["Invalid", "Marked"]
    case "failed": {
      const reason = payment?.failureReason
      if (reason === "reorged" || reason === "abandoned") return ["Invalid", "Invalid"]
      const additional = unpaid(payment, transfers)
      // Something came, of another token or on another chain where nothing of its own did.
      return ["Expired", additional === "None" ? "PaidPartial" : additional]
    }
  }
}

/**
 * The standing of an invoice now.
 *
 * @param moneyOf what came for one of its payments
 * @param needed the confirmations that a payment's chain asks for
 */
export const pluginStandingOf = (
  { invoice, payments }: InvoiceWithPayments,
  moneyOf: (payment: Payment) => Money,
  needed: (payment: Payment) => number
): PluginStanding => {
  const withTransfers = payments.map((payment) => ({
    payment,
    transfers: transfersOf(payment, moneyOf(payment), needed(payment))
  }))
  const shown =
    withTransfers.find(({ payment }) => payment.status === "confirmed") ??
    withTransfers.find(({ payment }) => payment.status === "detecting") ??
    withTransfers.find(({ transfers }) => invoice.status !== "open" && transfers.length > 0) ??
    withTransfers.find(({ payment }) => payment.id === invoice.payment)
  const { payment, transfers = [] } = shown ?? {}
  const money = payment === undefined ? { receipts: [], exceptions: [] } : moneyOf(payment)
  const [status, additional] = said(invoice, payment, transfers, money)
  return { status, additional, payment, transfers }
}
