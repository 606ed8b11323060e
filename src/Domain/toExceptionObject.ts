/** Exceptions as merchants and operators see them. */
import { getAddress, type Hex } from "viem"
import { isOfDust, isUncorroborated, type PaymentException, type Refund, walletPathOf } from "./Exception.ts"
import type { ExceptionObject, OperatorException, RefundObject } from "./ExceptionObject.ts"
import { iso } from "./Timestamp.ts"

const refundObject = ({ amount: sent, at, note, txHash }: Refund): typeof RefundObject.Type => ({
  amount: sent.toString(),
  ...(txHash === undefined ? {} : { txHash }),
  ...(note === undefined ? {} : { note }),
  refundedAt: iso(at)
})

/** Where the money came from and is, and what was decided. */
export const exceptionDetails = (exception: PaymentException) => {
  const { address, closedAt, decisionTx, index, note, sender, status, txHash } = exception
  const path = walletPathOf(exception)
  return {
    ...(sender === undefined ? {} : { from: getAddress(sender as Hex) }),
    ...(txHash === undefined ? {} : { txHash }),
    ...(isOfDust(exception) ? { dust: true as const } : {}),
    ...(status === "open" && isUncorroborated(exception) ? { uncorroborated: true as const } : {}),
    address: getAddress(address as Hex),
    ...(index === undefined ? {} : { derivationIndex: index }),
    ...(path === undefined ? {} : { path }),
    ...(closedAt === undefined ? {} : { resolvedAt: iso(closedAt) }),
    ...(decisionTx === undefined ? {} : { resolutionTxHash: decisionTx }),
    ...(note === undefined ? {} : { note })
  }
}

const commonObject = (exception: PaymentException) => {
  const { amount, chain, currency, id, openedAt, refunds, sentBack, status } = exception
  return {
    ...{ id, chain, currency },
    amount: amount.toString(),
    ...(status !== "refunded" && sentBack > 0n ? { amountRefunded: sentBack.toString() } : {}),
    ...(refunds.length === 0 ? {} : { refunds: refunds.map(refundObject) }),
    detectedAt: iso(openedAt),
    ...(status === "open" ? {} : { resolution: status }),
    ...exceptionDetails(exception)
  }
}

/** An exception as the merchant sees it; none for `unknown_payment`, which belongs to no merchant's payment. */
export const toExceptionObject = (exception: PaymentException): ReadonlyArray<ExceptionObject> => {
  const { kind, payment } = exception
  return kind === "unknown_payment" || payment === undefined ? [] : [{ payment, kind, ...commonObject(exception) }]
}

export const operatorException = (exception: PaymentException): OperatorException => {
  const { kind, mode, payment } = exception
  return { ...(payment === undefined ? {} : { payment }), kind, mode, ...commonObject(exception) }
}
