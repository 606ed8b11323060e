/**
 * Payments as merchants see them: in answers, in events and beside what operators see. What a payer needs of the chain and
 * the token is taken from the settings: where they no longer have these, the fields are absent. An event keeps what it had
 * when it was made.
 */
import { type Accounted, type AccountedPayment, withExceptions } from "../Domain/AccountedPayment.ts"
import { toChecksummed } from "../Domain/Address.ts"
import { remaining } from "../Domain/Amount.ts"
import { decimalsOf, nativeToken } from "../Domain/Currency.ts"
import { isEnded, type Payment, type PaymentObject } from "../Domain/Payment.ts"
import { iso } from "../Domain/Timestamp.ts"
import type { TokenSettings } from "../Settings/configSchema.ts"
import type { SettingsShape } from "../Settings.ts"

/** The settings that a payment object depends on. */
export type PaymentTerms = Pick<SettingsShape, "chains" | "payments" | "server">

interface Asset extends Pick<PaymentObject, "chainId" | "decimals" | "tokenContract"> {
  readonly uri?: string
}

/** The contracts in EIP-55 form, for each token of the settings: hashing them takes as long as all else of a payment. */
const contracts = new WeakMap<TokenSettings, string | undefined>()

const contractOf = (token: TokenSettings): string | undefined => {
  if (!contracts.has(token)) contracts.set(token, toChecksummed(token.address))
  return contracts.get(token)
}

/** What a wallet needs to pay `units` base units, with the URI of https://eips.ethereum.org/EIPS/eip-681 */
const assetOf = ({ address, chain, currency, mode }: Payment, units: bigint, { chains }: PaymentTerms): Asset => {
  const network = chains.find((one) => one.chain === chain && one.mode === mode)
  if (network === undefined) return {}
  const { chainId } = network
  if (currency === nativeToken(chain)) {
    return { chainId, decimals: decimalsOf[currency], uri: `ethereum:${address}@${chainId}?value=${units}` }
  }
  const token = network.tokens.find(({ symbol }) => symbol === currency)
  const tokenContract = token && contractOf(token)
  if (token === undefined || tokenContract === undefined) return { chainId }
  const uri = `ethereum:${tokenContract}@${chainId}/transfer?address=${address}&uint256=${units}`
  return { tokenContract, chainId, decimals: token.decimals, uri }
}

/** The address of a payment's checkout page: a secret of the payer and the merchant. */
const checkoutUrl = ({ checkoutToken }: Payment, { server }: PaymentTerms): string =>
  `${server.publicUrl}/pay/${checkoutToken}`

/** A payment as its merchant sees it. */
export const paymentObject = (payment: Payment, terms: PaymentTerms): PaymentObject => {
  const { amount, amountReceived = 0n, status } = payment
  // Nobody is asked to pay for a payment that has ended.
  const due = isEnded(status) ? 0n : remaining(amount, amountReceived, terms.payments.toleranceBps)
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

/** The same with its exceptions, as whoever reads or changes a payment gets it. */
export const accountedObject = ({ payment, ...exceptions }: Accounted, terms: PaymentTerms): AccountedPayment => ({
  ...withExceptions(paymentObject(payment, terms), exceptions),
  ...(payment.redirectUrl === undefined ? {} : { redirectUrl: payment.redirectUrl })
})
