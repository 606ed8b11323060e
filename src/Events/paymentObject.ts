/**
 * Payments as merchants see them: in responses, in events and within the operators' view. A payment keeps the token
 * that it was created with. The chain's id is taken from the settings: where they no longer have the chain, it is
 * absent. An event keeps what it had when it was made.
 */
import { type Accounted, type AccountedPayment, withExceptions } from "../Domain/AccountedPayment.ts"
import { remaining } from "../Domain/Amount.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { decimalsOfPayment, isEnded, type Payment, type PaymentObject } from "../Domain/Payment.ts"
import { iso } from "../Domain/Timestamp.ts"
import type { SettingsShape } from "../Settings.ts"

/** The settings that a payment object depends on. */
export type PaymentTerms = Pick<SettingsShape, "chains" | "server">

interface Asset extends Pick<PaymentObject, "chainId" | "decimals" | "tokenContract"> {
  readonly uri?: string
}

/** What a wallet needs to pay `units` base units, with the URI of https://eips.ethereum.org/EIPS/eip-681 */
const assetOf = (payment: Payment, units: bigint, { chains }: PaymentTerms): Asset => {
  const { address, chain, currency, mode, token } = payment
  const chainId = chains.find((one) => one.chain === chain && one.mode === mode)?.chainId
  const tokenContract = token?.contract
  const asset = {
    ...(tokenContract === undefined ? {} : { tokenContract }),
    ...(chainId === undefined ? {} : { chainId }),
    decimals: decimalsOfPayment(payment)
  }
  if (chainId === undefined) return asset
  if (currency === nativeToken(chain)) return { ...asset, uri: `ethereum:${address}@${chainId}?value=${units}` }
  if (tokenContract === undefined) return asset
  return { ...asset, uri: `ethereum:${tokenContract}@${chainId}/transfer?address=${address}&uint256=${units}` }
}

/** The address of a payment's checkout page: a secret of the payer and the merchant. */
const checkoutUrl = ({ checkoutToken }: Payment, { server }: PaymentTerms): string =>
  `${server.publicUrl}/pay/${checkoutToken}`

/** A payment as its merchant sees it. */
export const paymentObject = (payment: Payment, terms: PaymentTerms): PaymentObject => {
  const { amount, status } = payment
  // A payment that has ended asks for no money.
  const due = isEnded(status) ? 0n : remaining(payment)
  const { uri, ...asset } = assetOf(payment, due, terms)
  return {
    id: payment.id,
    merchantRef: payment.merchantRef,
    amount: amount.toString(),
    currency: payment.currency,
    chain: payment.chain,
    address: payment.address,
    status,
    createdAt: iso(payment.createdAt),
    expiresAt: iso(payment.expiresAt),
    metadata: JSON.parse(payment.metadata),
    checkoutUrl: checkoutUrl(payment, terms),
    ...(payment.amountReceived === undefined ? {} : { amountReceived: payment.amountReceived.toString() }),
    ...(payment.txHash === undefined ? {} : { txHash: payment.txHash }),
    ...(payment.confirmedAt === undefined ? {} : { confirmedAt: iso(payment.confirmedAt) }),
    ...(payment.failureReason === undefined ? {} : { failureReason: payment.failureReason }),
    ...asset,
    ...(uri === undefined || due === 0n ? {} : { paymentUri: uri }),
    ...(status === "detecting" && due > 0n ? { amountRemaining: due.toString() } : {})
  }
}

/** The same with its exceptions, as the API returns it. */
export const accountedObject = ({ payment, ...exceptions }: Accounted, terms: PaymentTerms): AccountedPayment => ({
  ...withExceptions(paymentObject(payment, terms), exceptions),
  ...(payment.redirectUrl === undefined ? {} : { redirectUrl: payment.redirectUrl })
})
