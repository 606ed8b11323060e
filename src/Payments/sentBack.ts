import type { PaymentException } from "../Domain/Exception.ts"
import type { Receipt } from "../Domain/Receipt.ts"

/**
 * Takes so much of the money of some of the receipts out of them, the newest blocks first: what came with earlier ones may
 * be what nobody has decided on.
 */
const takeOut = (
  receipts: ReadonlyArray<Receipt>,
  amount: bigint,
  isIts: (receipt: Receipt) => boolean
): ReadonlyArray<Receipt> => {
  const rests = new Map<Receipt, bigint>()
  let left = amount
  for (const receipt of receipts.filter(isIts).sort((a, b) => b.blockNumber - a.blockNumber)) {
    const rest = receipt.amount - left
    rests.set(receipt, rest > 0n ? rest : 0n)
    left = rest < 0n ? -rest : 0n
  }
  return receipts.flatMap((receipt) => {
    const rest = rests.get(receipt) ?? receipt.amount
    if (rest === receipt.amount) return [receipt]
    return rest > 0n ? [{ ...receipt, amount: rest }] : []
  })
}

/** Takes the money of one exception out of the receipts, as much as it was. */
const without = (
  receipts: ReadonlyArray<Receipt>,
  { amount, block, chain, currency, openedAt }: PaymentException & { readonly block: number }
): ReadonlyArray<Receipt> => {
  const isLikely = (receipt: Receipt) =>
    receipt.canonical && receipt.chain === chain && receipt.currency === currency && receipt.blockNumber <= block
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

/** Takes what one transaction brought beyond the payment's amount out of the receipts. */
const withoutPaidAgain = (
  receipts: ReadonlyArray<Receipt>,
  { amount, chain, currency, txHash }: PaymentException
): ReadonlyArray<Receipt> =>
  takeOut(
    receipts,
    amount,
    (receipt) =>
      receipt.canonical && receipt.txHash === txHash && receipt.chain === chain && receipt.currency === currency
  )

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
  const isRepaid = ({ kind, status, txHash }: PaymentException) =>
    status === "refunded" && (kind === "overpaid" || (kind === "paid_again" && txHash !== completedBy))
  return exceptions.filter(isRepaid).reduce(withoutPaidAgain, receipts)
}

/**
 * The receipts of a payment but for the money that was sent back by hand while nobody could tell its transaction: it is
 * not paid with any more, and no new matter, when the transaction turns up later.
 */
export const withoutSentBack = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>
): ReadonlyArray<Receipt> => withoutUntold(receipts, exceptions, "refunded")
