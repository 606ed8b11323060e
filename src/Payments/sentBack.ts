import { sum } from "../Domain/Amount.ts"
import {
  type ExceptionContent,
  type ExceptionKind,
  isCertain,
  isOfDust,
  type PaymentException
} from "../Domain/Exception.ts"
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

/** Takes the money of one exception out of the receipts, as much as was decided on. */
const without = (
  receipts: ReadonlyArray<Receipt>,
  { amount, block, chain, currency, openedAt }: Decided
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

  const seen = receipts.find(isSeen)?.amount ?? 0n
  return takeOut(takeOut(receipts, amount, isSeen), amount - (seen < amount ? seen : amount), isFound)
}

/** What was decided on while nobody could tell its transaction, and how much of it. */
interface Decided extends PaymentException {
  readonly block: number
}

const withoutUntold = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>,
  decidedOf: (exception: PaymentException) => bigint
): ReadonlyArray<Receipt> => {
  const untold = exceptions.flatMap((exception): ReadonlyArray<Decided> => {
    const amount = decidedOf(exception)
    return exception.block !== undefined && amount > 0n ? [{ ...exception, block: exception.block, amount }] : []
  })
  // The lowest first: what may be a lower one's may be a higher one's too, and not the other way round.
  return untold.sort((a, b) => a.block - b.block).reduce(without, receipts)
}

/** The receipts but for what was accepted while nobody could tell its transaction: it is no new matter when that turns up. */
export const withoutAccepted = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>
): ReadonlyArray<Receipt> =>
  withoutUntold(receipts, exceptions, ({ amount, status }) => (status === "accepted" ? amount : 0n))

/** The dust that an exception of this kind is of. */
const dustOf = (kind: ExceptionKind): Receipt["dust"] => {
  if (kind === "late") return "late"
  return kind === "wrong_token" || kind === "wrong_chain" || kind === "unknown_payment" ? "stray" : "paying"
}

/** Takes what was sent back of one transaction's money, or of dust, out of the receipts, in whatever block it is. */
const withoutReturned = (receipts: ReadonlyArray<Receipt>, exception: PaymentException): ReadonlyArray<Receipt> => {
  const { chain, currency, kind, sentBack, txHash } = exception
  const isIts = (receipt: Receipt) =>
    isOfDust(exception) ? receipt.dust === dustOf(kind) : receipt.dust === undefined && receipt.txHash === txHash
  return takeOut(
    receipts,
    sentBack,
    (receipt) => receipt.canonical && receipt.chain === chain && receipt.currency === currency && isIts(receipt)
  )
}

/**
 * What dust has come to since somebody accepted some of it: that is another exception, of so much as there is to decide on.
 */
export const sinceAccepted = (
  found: ReadonlyArray<ExceptionContent>,
  stored: ReadonlyArray<PaymentException>
): ReadonlyArray<ExceptionContent> =>
  found.flatMap((one) => {
    if (!isOfDust(one)) return [one]
    const accepted = stored.filter(
      ({ key, status }) => status === "accepted" && (key === one.key || key.startsWith(`${one.key} `))
    )
    const amount = one.amount - sum(accepted.map((before) => before.amount))
    if (amount <= 0n) return []
    return [{ ...one, amount, key: accepted.length === 0 ? one.key : `${one.key} ${accepted.length + 1}` }]
  })

/**
 * The receipts but for the money that was sent back by hand: it pays for nothing any more, should a reorg take other money
 * or mine it anew, and is no new matter when its transaction turns up later. What is more than was sent back stays.
 */
export const withoutSentBack = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>
): ReadonlyArray<Receipt> => {
  const returned = exceptions.filter((one) => isCertain(one) && one.block === undefined && one.sentBack > 0n)
  const told = returned.reduce(withoutReturned, receipts)
  return withoutUntold(told, exceptions, ({ sentBack }) => sentBack)
}
