/**
 * The checkout page's view of a payment: a pure function of the payment, its receipts, how far its chain has been read,
 * and the time. It has only what a payer needs: neither the payment's id nor its metadata or webhook. Amounts in base
 * units, times in Unix milliseconds.
 */
import { createHash } from "node:crypto"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import { decimalsOf, decimalsOn, type NetworkTokens, type PaymentCurrency } from "../Domain/Currency.ts"
import type { PaymentException } from "../Domain/Exception.ts"
import type { Invoice } from "../Domain/Invoice.ts"
import { type FailureReason, isEnded, type Payment, type PaymentObject } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { counted } from "../Payments/statusMachine.ts"

/** Money that came and does not pay for its payment, as shown to the payer: by the payment's exceptions. */

/** `former`: for a choice of the invoice that another one replaced. */
export type ExtraKind = "overpaid" | "late" | "found_late" | "wrong_token" | "wrong_chain" | "former" | "other"

export interface Extra {
  readonly kind: ExtraKind
  /** Base units: all of it, with what was sent back. */
  readonly amount: bigint
  readonly currency: string
  /** Undefined for a token that tilld does not take. */
  readonly decimals: number | undefined
  readonly chain: ChainName
  readonly status: "open" | "accepted" | "refunded"
  /** Base units of it that the shop has noted as sent back, and the transactions that it named. */
  readonly sentBack: bigint
  readonly refunds: ReadonlyArray<string>
}

/** Money with a text of its own on the page; undefined where there is none. */
const extraKindOf = (payment: Payment, { kind }: PaymentException): ExtraKind | undefined => {
  switch (kind) {
    case "reorged":
    case "unknown_payment":
      return undefined
    case "underpaid":
      return "other"
    case "unattributed":
      // While the payment is open, its page counts it.
      return isEnded(payment.status) ? "other" : undefined
    default:
      return kind
  }
}

/** @param isFormer of a former choice: the page shows another payment */
export const extrasOf = (
  payment: Payment,
  exceptions: ReadonlyArray<PaymentException>,
  networks: ReadonlyArray<NetworkTokens>,
  isFormer = false
): ReadonlyArray<Extra> =>
  exceptions.flatMap((exception) => {
    const { amount, chain, currency, refunds, sentBack, status } = exception
    const kind = extraKindOf(payment, exception) && isFormer ? "former" : extraKindOf(payment, exception)
    if (kind === undefined || status === "gone") return []
    return [
      {
        ...{ kind, currency, chain, status, sentBack },
        amount: status === "refunded" ? amount : amount + sentBack,
        decimals: decimalsOn(networks, exception, currency),
        refunds: refunds.flatMap(({ txHash }) => (txHash === undefined ? [] : [txHash]))
      }
    ]
  })

/** A transaction that paid for a payment. */
interface PaidBy {
  readonly txHash: string
  /** Undefined where the chain is no longer configured. */
  readonly chainId: number | undefined
  /** Base units of the payment's currency; undefined for other money that the shop has accepted. */
  readonly amount: bigint | undefined
}

/** A page shows no more. */
const most = 10

/** The transactions that make up what a confirmed payment received, in chain order, and the one that completed it. */
export const paidByOf = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  chainIdOf: (chain: ChainName) => number | undefined
): ReadonlyArray<PaidBy> => {
  const { amountReceived = 0n, chain, txHash } = payment
  const found = new Map<string, PaidBy & { readonly amount: bigint }>()
  let reached = 0n
  for (const receipt of counted(payment, receipts)) {
    // What came after that is further money.
    if (reached >= amountReceived) break
    reached += receipt.amount
    if (receipt.txHash === undefined) continue
    const before = found.get(receipt.txHash)?.amount ?? 0n
    found.set(receipt.txHash, { txHash: receipt.txHash, chainId: chainIdOf(chain), amount: before + receipt.amount })
  }
  const accepted = txHash === undefined || found.has(txHash) ? [] : [txHash]
  const chainOf = (hash: string) => receipts.find((receipt) => receipt.txHash === hash)?.chain ?? chain
  return [
    ...accepted.map((hash) => ({ txHash: hash, chainId: chainIdOf(chainOf(hash)), amount: undefined })),
    ...found.values()
  ].slice(0, most)
}

/** How deep the receipts are that complete the payment. */
export interface Confirmations {
  readonly count: number
  readonly needed: number
}

/** The current request. */
export interface Ask {
  readonly due: bigint
  /** The smallest transfer that is credited, where more than that is due. */
  readonly least: bigint | undefined
  /** EIP-681. */
  readonly uri: string
  readonly chainId: number
  /** The token's contract; undefined for the chain's own coin. */
  readonly contract: string | undefined
  /** When it was created, and its deadline. */
  readonly startsAt: number
  readonly endsAt: number
}

/** The payer's receipt of what came. */
interface PaidReceipt {
  /** In the payment's currency: none where the shop has accepted other money. */
  readonly received: bigint
  readonly paidAt: number | undefined
  readonly transactions: ReadonlyArray<PaidBy>
}

/**
 * `closing`: its time is over, and blocks of that time may still bring money. `unavailable`: the token is no longer
 * configured, so that the money would not be seen.
 */
export type CheckoutState =
  | { readonly kind: "waiting"; readonly ask: Ask }
  | { readonly kind: "partPaid"; readonly ask: Ask; readonly received: bigint }
  | { readonly kind: "seen"; readonly confirmations: Confirmations | undefined; readonly receipt: PaidReceipt }
  | { readonly kind: "closing"; readonly received: bigint }
  | { readonly kind: "unavailable" }
  | { readonly kind: "paid"; readonly returnTo: string | undefined; readonly receipt: PaidReceipt }
  | { readonly kind: "expired" }
  | { readonly kind: "cancelled" }
  | { readonly kind: "failed"; readonly reason: Exclude<FailureReason, "cancelled">; readonly receipt: PaidReceipt }
type StateKind = CheckoutState["kind"]

export interface CheckoutView {
  readonly state: CheckoutState
  readonly amount: bigint
  readonly currency: PaymentCurrency
  readonly decimals: number
  readonly chain: ChainName
  readonly mode: Mode
  /** EIP-55 form. */
  readonly address: string
  readonly merchantRef: string
  /** Other money that came, and its refunds by the shop. */
  readonly extras: ReadonlyArray<Extra>
  /** The origin of the shop's redirectUrl, once the payment has ended without being paid. */
  readonly shopUrl: string | undefined
  /** The chain is not read at the moment, or with a delay; said while the payment is open. */
  readonly lags: boolean
}

/** The inputs of the view. */
export interface Facts {
  readonly payment: Payment
  /** That it is the last choice of, or paid. */
  readonly invoice?: Pick<Invoice, "id" | "merchantRef">
  readonly object: PaymentObject
  readonly confirmations: Confirmations | undefined
  readonly extras: ReadonlyArray<Extra>
  /** What has come so far. */
  readonly paidBy: ReadonlyArray<PaidBy>
  readonly lags: boolean
  readonly now: number
}

/** The shop's URL, with these behind the query that it has: nothing else of it changes. */
export const returnUrl = (redirectUrl: string, ids: Readonly<Record<string, string>>): string => {
  const [address = "", ...fragment] = redirectUrl.split("#")
  const joined = address.includes("?") ? (/[?&]$/.test(address) ? "" : "&") : "?"
  return [`${address}${joined}${new URLSearchParams(ids)}`, ...fragment].join("#")
}

const askOf = ({ object, payment: { createdAt, expiresAt, floor } }: Facts): Ask | undefined => {
  const { amount, amountRemaining = amount, chainId, paymentUri, tokenContract } = object
  if (paymentUri === undefined || chainId === undefined) return undefined
  const due = BigInt(amountRemaining)
  const least = floor < due ? floor : undefined
  return { due, least, uri: paymentUri, chainId, contract: tokenContract, startsAt: createdAt, endsAt: expiresAt }
}

const receiptOf = ({ paidBy, payment: { amountReceived = 0n, confirmedAt } }: Facts): PaidReceipt => ({
  ...{ received: amountReceived, paidAt: confirmedAt, transactions: paidBy }
})

const endedState = (facts: Facts): CheckoutState => {
  const { failureReason, id, invoice, redirectUrl, status } = facts.payment
  const receipt = receiptOf(facts)
  if (status === "confirmed") {
    return {
      kind: "paid",
      returnTo: redirectUrl && returnUrl(redirectUrl, { paymentId: id, ...(invoice && { invoiceId: invoice.id }) }),
      receipt
    }
  }
  if (failureReason === undefined) return { kind: "expired" }
  if (failureReason === "cancelled") return { kind: "cancelled" }
  return { kind: "failed", reason: failureReason, receipt }
}

const stateOf = (facts: Facts): CheckoutState => {
  const { confirmations, now, object, payment } = facts
  const { amountReceived = 0n, expiresAt, status } = payment
  if (isEnded(status)) return endedState(facts)
  if (status === "detecting" && object.amountRemaining === undefined) {
    return { kind: "seen", confirmations, receipt: receiptOf(facts) }
  }
  if (now > expiresAt) return { kind: "closing", received: amountReceived }
  const ask = askOf(facts)
  if (ask === undefined) return { kind: "unavailable" }
  return amountReceived === 0n ? { kind: "waiting", ask } : { kind: "partPaid", ask, received: amountReceived }
}

export const viewOf = (facts: Facts): CheckoutView => {
  const { extras, invoice, lags, object, payment } = facts
  const { address, amount, amountReceived = 0n, chain, currency, mode, redirectUrl, status } = payment
  const isUnpaid = isEnded(status) && status !== "confirmed"
  const decimals = object.decimals ?? decimalsOf[currency]
  // An exception once the payment has ended.
  const surplus: Extra = {
    ...{ kind: "overpaid", amount: amountReceived - amount, currency, decimals, chain },
    ...{ status: "open", sentBack: 0n, refunds: [] }
  }
  return {
    state: stateOf(facts),
    amount,
    currency,
    decimals,
    chain,
    mode,
    address,
    // A further choice has a reference of its own, which its customer has never seen.
    merchantRef: invoice === undefined ? payment.merchantRef : (invoice.merchantRef ?? invoice.id),
    extras: status === "detecting" && amountReceived > amount ? [...extras, surplus] : extras,
    // Not its path, which may thank for a payment.
    shopUrl: isUnpaid && redirectUrl !== undefined ? new URL(redirectUrl).origin : undefined,
    lags: lags && !isEnded(status)
  }
}

/** Whether the page no longer changes, except by a reorg. */
export const isFinal = ({ state: { kind } }: CheckoutView): boolean =>
  kind === "paid" || kind === "expired" || kind === "cancelled" || kind === "failed"

/** Whether the payment has ended without being paid. */
export const isUnpaid = (view: CheckoutView): boolean => isFinal(view) && view.state.kind !== "paid"

const mayBeMisplaced: ReadonlySet<StateKind> = new Set(["waiting", "closing", "failed", "expired"])

const misplacedKinds = ["former", "wrong_chain", "wrong_token"] as const

/** The kind of money that came, does not pay, and waits for a decision, where that is what the page is about. */
export const misplaced = ({ extras, state }: CheckoutView) =>
  mayBeMisplaced.has(state.kind)
    ? misplacedKinds.find((one) => extras.some(({ kind, status }) => kind === one && status === "open"))
    : undefined

/** Whether money for an expired payment came after its time. */
export const isTooLate = ({ extras, state }: CheckoutView): boolean =>
  state.kind === "expired" && extras.some(({ kind }) => kind === "late" || kind === "found_late")

/** The request of a view; undefined without one. */
export const askOfView = ({ state }: CheckoutView): Ask | undefined =>
  state.kind === "waiting" || state.kind === "partPaid" ? state.ask : undefined

/** Names what the page shows: another view has another version. */
export const versionOf = (view: CheckoutView): string =>
  createHash("sha256")
    .update(JSON.stringify(view, (_, value) => (typeof value === "bigint" ? value.toString() : value)))
    .digest("base64url")
    .slice(0, 16)
