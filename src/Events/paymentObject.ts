/**
 * Payments as merchants see them: in responses, in events and within the operators' view. A payment keeps the token
 * that it was created with. The chain's id is taken from the settings: where they no longer have the chain, it is
 * absent. An event keeps what it had when it was made.
 */

import { remaining } from "../Domain/Amount.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { type Accounted, type AccountedPayment, withExceptions } from "../Domain/Event.ts"
import { type InvoiceObject, type InvoiceWithPayments, invoiceFields, pageOfInvoice } from "../Domain/Invoice.ts"
import { decimalsOfPayment, isEnded, type Payment, type PaymentObject, type PricedInvoice } from "../Domain/Payment.ts"
import { iso } from "../lib/moment.ts"
import { wellFormedJson } from "../lib/text.ts"
import type { SettingsShape } from "../Settings.ts"

/** The settings that a payment object depends on. */
export type PaymentTerms = Pick<SettingsShape, "chains" | "server">

/** The URI of https://eips.ethereum.org/EIPS/eip-681 that asks a wallet for `units` base units. */
const paymentUri = (payment: Payment, chainId: number | undefined, units: bigint): string | undefined => {
  const { address, chain, currency, token } = payment
  if (chainId === undefined) return undefined
  if (currency === nativeToken(chain)) return `ethereum:${address}@${chainId}?value=${units}`
  if (token === undefined) return undefined
  return `ethereum:${token.contract}@${chainId}/transfer?address=${address}&uint256=${units}`
}

/** The address of a payment's checkout page: a secret of the payer and the merchant. */
const checkoutUrl = (payment: Payment, { server }: PaymentTerms): string =>
  pageOfInvoice(payment.invoice ?? payment, server.publicUrl)

/** A payment as its merchant sees it. */
export const paymentObject = (payment: Payment, terms: PaymentTerms): PaymentObject => {
  const { amount, chain, mode, status, token } = payment
  // A payment that has ended asks for no money.
  const due = isEnded(status) ? 0n : remaining(payment)
  const chainId = terms.chains.find((one) => one.chain === chain && one.mode === mode)?.chainId
  const uri = due === 0n ? undefined : paymentUri(payment, chainId, due)
  return {
    id: payment.id,
    merchantRef: payment.merchantRef,
    amount: amount.toString(),
    currency: payment.currency,
    chain,
    address: payment.address,
    status,
    createdAt: iso(payment.createdAt),
    expiresAt: iso(payment.expiresAt),
    metadata: JSON.parse(wellFormedJson(payment.metadata)),
    checkoutUrl: checkoutUrl(payment, terms),
    received: `${payment.received}`,
    refunded: `${payment.refunded}`,
    kept: `${payment.received - payment.refunded}`,
    ...(payment.amountReceived === undefined ? {} : { amountReceived: payment.amountReceived.toString() }),
    ...(payment.txHash === undefined ? {} : { txHash: payment.txHash }),
    ...(payment.confirmedAt === undefined ? {} : { confirmedAt: iso(payment.confirmedAt) }),
    ...(payment.failureReason === undefined ? {} : { failureReason: payment.failureReason }),
    ...(token === undefined ? {} : { tokenContract: token.contract }),
    ...(chainId === undefined ? {} : { chainId }),
    decimals: decimalsOfPayment(payment),
    ...(uri === undefined ? {} : { paymentUri: uri }),
    ...(status === "detecting" && due > 0n ? { amountRemaining: due.toString() } : {}),
    ...(payment.invoice === undefined ? {} : { invoice: invoiceOf(payment.invoice) })
  }
}

const invoiceOf = ({ id, merchantRef, price }: PricedInvoice) => ({
  id,
  ...(merchantRef === undefined ? {} : { merchantRef }),
  price
})

/** An invoice as its merchant sees it. */
export const invoiceObject = ({ invoice, payments }: InvoiceWithPayments, terms: PaymentTerms): InvoiceObject => ({
  ...invoiceFields(invoice, terms.server.publicUrl),
  payments: payments.map((payment) => paymentObject(payment, terms))
})

/** The same with its exceptions, as the API returns it. */
export const accountedObject = ({ payment, ...exceptions }: Accounted, terms: PaymentTerms): AccountedPayment => ({
  ...withExceptions(paymentObject(payment, terms), exceptions),
  ...(payment.redirectUrl === undefined ? {} : { redirectUrl: payment.redirectUrl })
})
