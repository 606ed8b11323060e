/**
 * Subtracts money that operators have already decided on from the receipts, before exceptions are derived from them:
 * refunded money, which no longer counts, and money that was accepted without a transaction, which opens no exception
 * when its transaction is found later. Pure; called by `storeTransitions.ts`.
 */
import { sum } from "../Domain/Amount.ts"
import { type ExceptionContent, isCertain, isUncorroborated, type PaymentException } from "../Domain/Exception.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"

const atLeastZero = (amount: bigint): bigint => (amount > 0n ? amount : 0n)

/** Subtracts `amount` from the matching receipts. Of equals the newest blocks first: money in earlier ones may be undecided. */
const takeOut = (
  receipts: ReadonlyArray<Receipt>,
  amount: bigint,
  matches: (receipt: Receipt) => boolean,
  ofTwo = true
): ReadonlyArray<Receipt> => {
  const rests = new Map<Receipt, bigint>()
  let left = amount
  // A transaction may have what two providers report, and beside it what one alone does.
  const rank = ({ corroborated }: Receipt) => Number(corroborated === ofTwo)
  const first = (a: Receipt, b: Receipt) => rank(b) - rank(a) || b.blockNumber - a.blockNumber
  for (const receipt of receipts.filter(matches).sort(first)) {
    rests.set(receipt, atLeastZero(receipt.amount - left))
    left = atLeastZero(left - receipt.amount)
  }
  return receipts.flatMap((receipt) => {
    const rest = rests.get(receipt) ?? receipt.amount
    return rest > 0n ? [rest === receipt.amount ? receipt : { ...receipt, amount: rest }] : []
  })
}

/** Subtracts the decided money of one exception without a transaction from the receipts. */
const without = (
  receipts: ReadonlyArray<Receipt>,
  { amount, block, chain, currency, openedAt }: Decided
): ReadonlyArray<Receipt> => {
  const isLikely = (receipt: Receipt) =>
    receipt.canonical && receipt.chain === chain && receipt.currency === currency && receipt.blockNumber <= block
  const isSeen = (receipt: Receipt) =>
    isLikely(receipt) && receipt.txHash === undefined && receipt.blockNumber === block
  // All other money up to that block was known: money found there later is the one without a transaction.
  const isFound = (receipt: Receipt) => isLikely(receipt) && receipt.txHash !== undefined && receipt.seenAt > openedAt

  const seen = receipts.find(isSeen)?.amount ?? 0n
  return takeOut(takeOut(receipts, amount, isSeen), amount - (seen < amount ? seen : amount), isFound)
}

/** An exception without a transaction; `amount` is the decided amount. */
interface Decided extends PaymentException {
  readonly block: number
}

const withoutUnattributed = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>,
  decidedOf: (exception: PaymentException) => bigint
): ReadonlyArray<Receipt> => {
  const unattributed = exceptions.flatMap((exception): ReadonlyArray<Decided> => {
    const amount = decidedOf(exception)
    return exception.block !== undefined && amount > 0n ? [{ ...exception, block: exception.block, amount }] : []
  })
  // The lowest block first: a receipt that may belong to a lower one may also belong to a higher one, not vice versa.
  return unattributed.sort((a, b) => a.block - b.block).reduce(without, receipts)
}

/** The receipts without the money that was accepted without a transaction. */
export const withoutAccepted = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>
): ReadonlyArray<Receipt> =>
  withoutUnattributed(receipts, exceptions, ({ amount, status }) => (status === "accepted" ? amount : 0n))

/**
 * The receipts without the money of `unattributed` exceptions with a transaction that were accepted before a second provider
 * had it, where it is not the payment's own: it opens no other exception once one has it.
 */
export const withoutAcceptedEarly = (
  { chain, currency }: Pick<Payment, "chain" | "currency">,
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>
): ReadonlyArray<Receipt> =>
  exceptions
    .filter((one) => one.status === "accepted" && isUncorroborated(one))
    .filter((one) => one.chain !== chain || one.currency !== currency)
    .reduce((left, one) => withoutReturned(left, { ...one, sentBack: one.amount }), receipts)

/** Subtracts the refunded money of one transaction from the receipts, in any block. */
const withoutReturned = (receipts: ReadonlyArray<Receipt>, exception: PaymentException): ReadonlyArray<Receipt> => {
  const { chain, currency, sentBack, txHash } = exception
  const matches = (one: Receipt) =>
    one.canonical && one.chain === chain && one.currency === currency && one.txHash === txHash
  return takeOut(receipts, sentBack, matches, !isUncorroborated(exception))
}

/**
 * The exceptions found, without surplus that was accepted with a transaction which a reorg has put before another one: the
 * surplus is the other one's now, and is not decided on again.
 */
export const withoutMovedSurplus = (
  found: ReadonlyArray<ExceptionContent>,
  stored: ReadonlyArray<PaymentException>,
  receipts: ReadonlyArray<Receipt>
): ReadonlyArray<ExceptionContent> => {
  const isThere = (txHash: string) => receipts.some((receipt) => receipt.canonical && receipt.txHash === txHash)
  const accepted = new Map(
    stored.flatMap(({ amount, key, kind, status, txHash }) =>
      kind === "overpaid" && status === "accepted" && txHash !== undefined && isThere(txHash) ? [[key, amount]] : []
    )
  )
  const amounts = new Map(found.map(({ amount, key }) => [key, amount]))
  let moved = sum([...accepted].map(([key, amount]) => atLeastZero(amount - (amounts.get(key) ?? 0n))))
  return found.flatMap((one) => {
    if (one.kind !== "overpaid" || accepted.has(one.key)) return [one]
    const amount = atLeastZero(one.amount - moved)
    moved -= one.amount - amount
    return amount > 0n ? [{ ...one, amount }] : []
  })
}

/**
 * The receipts without refunded money: it no longer counts, even if a reorg orphans other money or mines it again, and
 * opens no exception when its transaction is found later. Money beyond the refunded amount stays.
 */
export const withoutSentBack = (
  receipts: ReadonlyArray<Receipt>,
  exceptions: ReadonlyArray<PaymentException>
): ReadonlyArray<Receipt> => {
  const returned = exceptions.filter((one) => isCertain(one) && one.block === undefined && one.sentBack > 0n)
  const rest = returned.reduce(withoutReturned, receipts)
  return withoutUnattributed(rest, exceptions, ({ sentBack }) => sentBack)
}
