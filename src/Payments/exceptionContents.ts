/**
 * The contents of exceptions: one per currency of each transaction, and of each block where none is known. The status machine
 * shares the rule of open exceptions whose money a confirmed payment was not accepted for.
 */
import { sum } from "../Domain/Amount.ts"
import type { ExceptionContent, ExceptionKind, PaymentException } from "../Domain/Exception.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"

/** The key of the exception of a receipt. */
const keyOf = (
  kind: ExceptionKind,
  { blockNumber, chain, currency, txHash }: Pick<Receipt, "blockNumber" | "chain" | "currency" | "txHash">
): string => `${kind}:${chain}:${txHash ?? `block ${blockNumber}`}:${currency}`

/** The exception of `amount` of a receipt. */
export const exceptionOf = (kind: ExceptionKind, receipt: Receipt, amount: bigint): ExceptionContent => {
  const { blockNumber, chain, currency, sender, txHash } = receipt
  const block = txHash === undefined ? blockNumber : undefined
  return { kind, chain, txHash, sender, currency, amount, block, key: keyOf(kind, receipt) }
}

/** Who sent all of them; undefined where there are several. */
export const commonSender = (all: ReadonlyArray<{ readonly sender?: string | undefined }>): string | undefined => {
  const [sender, ...others] = new Set(all.map((one) => one.sender))
  return others.length === 0 ? sender : undefined
}

/** One exception a key, with the sum of the amounts. */
export const mergedByKey = (all: ReadonlyArray<ExceptionContent>): ReadonlyArray<ExceptionContent> => {
  const found = new Map<string, ExceptionContent>()
  for (const one of all) {
    const before = found.get(one.key)
    const merged = before && { ...one, amount: one.amount + before.amount, sender: commonSender([before, one]) }
    found.set(one.key, merged ?? one)
  }
  return [...found.values()]
}

/** One exception for each currency of each transaction, of each block where no transaction is known. */
export const exceptionsOfKind = (
  kind: ExceptionKind,
  receipts: ReadonlyArray<Receipt>
): ReadonlyArray<ExceptionContent> => mergedByKey(receipts.map((receipt) => exceptionOf(kind, receipt, receipt.amount)))

/** The kinds of exceptions of on-time money: a payment can be accepted for other money, and they stay open. */
const apartKinds: ReadonlyArray<ExceptionKind> = ["underpaid", "found_late", "unattributed"]

/**
 * The exceptions of a confirmed payment's own money that was not accepted: it was accepted for other money. Also those whose
 * money a reorg took, which may bring it back, and those that were sent back, by a refund that may fail.
 */
export const apartOf = (
  { status }: Payment,
  stored: ReadonlyArray<PaymentException>
): ReadonlyArray<PaymentException> =>
  status === "confirmed"
    ? stored.filter(({ kind, status }) => status !== "accepted" && (kind === "underpaid" || kind === "found_late"))
    : []

/**
 * Subtracts the money of open exceptions from on-time receipts, up to each one's open amount. Gives the remaining
 * receipts, and the exceptions with the amounts found.
 */
export const withoutApart = (
  onTime: ReadonlyArray<Receipt>,
  open: ReadonlyArray<ExceptionContent>
): { readonly receipts: ReadonlyArray<Receipt>; readonly apart: ReadonlyArray<ExceptionContent> } => {
  const left = new Map(open.map((one) => [one.key, one.amount]))
  const apart: Array<ExceptionContent> = []
  const receipts = onTime.flatMap((receipt) => {
    let rest = receipt.amount
    for (const kind of left.size === 0 ? [] : apartKinds) {
      const key = keyOf(kind, receipt)
      const amount = left.get(key) ?? 0n
      const part = amount < rest ? amount : rest
      if (part === 0n) continue
      rest -= part
      left.set(key, amount - part)
      apart.push(exceptionOf(kind, receipt, part))
    }
    return rest === receipt.amount ? [receipt] : rest > 0n ? [{ ...receipt, amount: rest }] : []
  })
  return { receipts, apart }
}

/**
 * A confirmed payment with what it receives by accepting these exceptions: on-time money of its own that it was not accepted
 * for before. Other money counts in no amount, and a surplus is in it already.
 *
 * @param open the exceptions that stay open
 */
export const credited = (
  payment: Payment,
  onTime: ReadonlyArray<Receipt>,
  accepted: ReadonlyArray<ExceptionContent>,
  open: ReadonlyArray<ExceptionContent>
): Payment => {
  const without = (apart: ReadonlyArray<ExceptionContent>) =>
    sum(withoutApart(onTime, apart).receipts.map(({ amount }) => amount))
  const credit = without(open) - without([...open, ...accepted])
  return credit === 0n ? payment : { ...payment, amountReceived: (payment.amountReceived ?? 0n) + credit }
}
