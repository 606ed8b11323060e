import { sum } from "../Domain/Amount.ts"
import { type Irregular, isOfDust, type PaymentException } from "../Domain/Exception.ts"
import type { Receipt } from "../Domain/Receipt.ts"

/** Takes so much of the money of some of the receipts out of them. */
const takeOut = (
  receipts: ReadonlyArray<Receipt>,
  amount: bigint,
  isIts: (receipt: Receipt) => boolean
): ReadonlyArray<Receipt> => {
  let left = amount
  return receipts.flatMap((receipt) => {
    if (!isIts(receipt)) return [receipt]
    const rest = receipt.amount - left
    left = rest < 0n ? -rest : 0n
    return rest > 0n ? [{ ...receipt, amount: rest }] : []
  })
}

/** Takes the money of one exception out of the receipts, as much as it was. */
const without = (
  receipts: ReadonlyArray<Receipt>,
  { amount, block, chain, currency, openedAt }: PaymentException & { readonly block: number }
): ReadonlyArray<Receipt> => {
  const isLikely = (receipt: Receipt) =>
    receipt.dust === undefined &&
    receipt.canonical &&
    receipt.chain === chain &&
    receipt.currency === currency &&
    receipt.blockNumber <= block
  const isSeen = (receipt: Receipt) =>
    isLikely(receipt) && receipt.txHash === undefined && receipt.blockNumber === block
  // All that had come by that block was known: what is found there later is what was without a transaction.
  const isFound = (receipt: Receipt) => isLikely(receipt) && receipt.txHash !== undefined && receipt.seenAt > openedAt

  const seen = receipts.find(isSeen)
  // It is more than what was sent back: somebody has to decide on all of it.
  if (seen !== undefined && seen.amount > amount) return receipts
  const others = receipts.filter((receipt) => receipt !== seen)
  return takeOut(others, amount - (seen?.amount ?? 0n), isFound)
}

/** The receipts but for what was decided on in this way while nobody could tell its transaction. */
export const withoutUntold = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>,
  decision: "accepted" | "refunded"
): ReadonlyArray<Receipt> => {
  const untold = exceptions.flatMap(({ block, ...exception }) =>
    exception.status === decision && block !== undefined ? [{ ...exception, block }] : []
  )
  // The lowest first: what may be a lower one's may be a higher one's too, and not the other way round.
  return untold.sort((a, b) => a.block - b.block).reduce(without, receipts)
}

/** Takes what one transaction, or dust, brought beyond the payment's amount out of the receipts. */
const withoutPaidAgain = (receipts: ReadonlyArray<Receipt>, exception: PaymentException): ReadonlyArray<Receipt> => {
  const { amount, chain, currency, txHash } = exception
  const isIts = (receipt: Receipt) =>
    isOfDust(exception) ? receipt.dust === "paying" : receipt.dust === undefined && receipt.txHash === txHash
  return takeOut(
    receipts,
    amount,
    (receipt) => receipt.canonical && receipt.chain === chain && receipt.currency === currency && isIts(receipt)
  )
}

/**
 * The receipts of a confirmed payment but for what was paid beyond its amount and sent back: should a reorg take money
 * that it was paid with, that is not there in its place.
 *
 * @param completedBy its transaction: what was paid again may have been taken for it by an operator all the same
 */
export const withoutRepaid = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>,
  completedBy: string | undefined
): ReadonlyArray<Receipt> => {
  return exceptions
    .filter((one) => isRepaid(one) && (one.kind === "overpaid" || one.txHash !== completedBy))
    .reduce(withoutPaidAgain, receipts)
}

const isRepaid = ({ kind, status }: PaymentException): boolean =>
  status === "refunded" && (kind === "overpaid" || kind === "paid_again")

/**
 * What dust has come to since somebody decided on some of it: that much is a matter of its own, whose amount is what there
 * is to decide on by now.
 *
 * @param found from receipts without what was repaid
 */
export const sinceDecided = (
  found: ReadonlyArray<Irregular>,
  stored: ReadonlyArray<PaymentException>
): ReadonlyArray<Irregular> =>
  found.flatMap((one) => {
    if (!isOfDust(one)) return [one]
    const decided = stored.filter(
      ({ key, status }) =>
        (status === "accepted" || status === "refunded") && (key === one.key || key.startsWith(`${one.key} `))
    )
    const amount = one.amount - sum(decided.flatMap((before) => (isRepaid(before) ? [] : [before.amount])))
    if (amount <= 0n) return []
    return [{ ...one, amount, key: decided.length === 0 ? one.key : `${one.key} ${decided.length + 1}` }]
  })

/**
 * The receipts of a payment but for the money that was sent back by hand while nobody could tell its transaction: it is
 * not paid with any more, and no new matter, when the transaction turns up later.
 */
export const withoutSentBack = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>
): ReadonlyArray<Receipt> => withoutUntold(receipts, exceptions, "refunded")
