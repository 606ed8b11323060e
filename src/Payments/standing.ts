/**
 * The standing of a payment's money: one pure fold over its receipts and the decisions on them. It says which receipts are left
 * for the status machine, which exceptions there should be, what each receipt counts as, and what was received and refunded.
 * Settlement, decisions, the payment object, the books and collecting read it; nothing else filters receipts.
 *
 * Money is told apart by the transaction that brought it, by chain and currency; where no provider can name the transaction, by
 * the block at which it was seen. A decision stays with that money, in whatever block a reorg mines it again: what was refunded
 * counts no more, and what was accepted opens no exception again. Amounts in base units.
 */
import { Array as Arr } from "effect"
import { sum } from "../Domain/Amount.ts"
import { type ChainName, chainTraits } from "../Domain/Chain.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { type ExceptionContent, isUncorroborated, type PaymentException } from "../Domain/Exception.ts"
import { deadline, isEnded, type Payment } from "../Domain/Payment.ts"
import { isCorroborated, type Receipt, type ReceiptKind } from "../Domain/Receipt.ts"
import { isSentBack, isStanding, type Refund, type RefundPart } from "../Domain/Refund.ts"
import { apartOf } from "./exceptionContents.ts"
import { exceptionsOf, unknownMoney } from "./exceptions.ts"
import { counted, earliest, fitting, leastOf, total, withoutSmall } from "./statusMachine.ts"

/** What people have decided on the money of an address. */
export interface Decisions {
  /** All of its exceptions, closed ones too. */
  readonly exceptions: ReadonlyArray<PaymentException>
  readonly refunds: ReadonlyArray<Refund>
}

/** Money that was decided on: of a transaction, or seen at a block. */
interface Decided extends Pick<Receipt, "chain" | "currency" | "amount"> {
  readonly txHash: string | undefined
  readonly block: number | undefined
  /** When its exception was opened, Unix milliseconds: money without a transaction that was found later is taken for it. */
  readonly openedAt: number
  /** Whether two providers had the money. */
  readonly ofTwo: boolean
}

const atLeastZero = (amount: bigint): bigint => (amount > 0n ? amount : 0n)
const least = (one: bigint, other: bigint): bigint => (one < other ? one : other)

/** Subtracts `amount` from the matching receipts. Of equals the newest blocks first: money in earlier ones may be undecided. */
const takeOut = (
  receipts: ReadonlyArray<Receipt>,
  { amount, chain, currency, ofTwo }: Decided,
  matches: (receipt: Receipt) => boolean
): ReadonlyArray<Receipt> => {
  const rests = new Map<Receipt, bigint>()
  let left = amount
  const isIts = (one: Receipt) => one.canonical && one.chain === chain && one.currency === currency && matches(one)
  // A transaction may have what two providers report, and beside it what one alone does.
  const rank = ({ corroborated }: Receipt) => Number(corroborated === ofTwo)
  const first = (a: Receipt, b: Receipt) => rank(b) - rank(a) || b.blockNumber - a.blockNumber
  for (const receipt of receipts.filter(isIts).sort(first)) {
    rests.set(receipt, atLeastZero(receipt.amount - left))
    left = atLeastZero(left - receipt.amount)
  }
  return receipts.flatMap((receipt) => {
    const rest = rests.get(receipt) ?? receipt.amount
    return rest > 0n ? [rest === receipt.amount ? receipt : { ...receipt, amount: rest }] : []
  })
}

/** Subtracts decided money that was seen at a block, and what of it was found with a transaction since. */
const withoutSeen = (receipts: ReadonlyArray<Receipt>, decided: Decided & { readonly block: number }) => {
  const { amount, block, chain, currency, openedAt } = decided
  const isSeen = ({ blockNumber, txHash }: Receipt) => txHash === undefined && blockNumber === block
  // All other money up to that block was known: money found there later is the one without a transaction.
  const isFound = ({ blockNumber, seenAt, txHash }: Receipt) =>
    txHash !== undefined && blockNumber <= block && seenAt > openedAt
  const isThere = (one: Receipt) => one.canonical && one.chain === chain && one.currency === currency && isSeen(one)
  const rest = atLeastZero(amount - (receipts.find(isThere)?.amount ?? 0n))
  return takeOut(takeOut(receipts, decided, isSeen), { ...decided, amount: rest }, isFound)
}

/** The receipts without money that was decided on. */
const without = (receipts: ReadonlyArray<Receipt>, decided: ReadonlyArray<Decided>): ReadonlyArray<Receipt> => {
  const named = decided.filter(({ block }) => block === undefined)
  const seen = decided.flatMap(({ block, ...one }) => (block === undefined ? [] : [{ ...one, block }]))
  const rest = named.reduce((left, one) => takeOut(left, one, ({ txHash }) => txHash === one.txHash), receipts)
  // The lowest block first: a receipt that may belong to a lower one may also belong to a higher one, not vice versa.
  return seen.sort((a, b) => a.block - b.block).reduce(withoutSeen, rest)
}

/** The money that refunds speak for. */
const refundedBy = (
  refunds: ReadonlyArray<Refund>,
  isMeant: (part: Refund["parts"][number]) => boolean = () => true
): ReadonlyArray<Decided> =>
  refunds.filter(isStanding).flatMap(({ chain, createdAt, currency, parts }) =>
    parts.filter(isMeant).map(({ amount, block, ofTwo, openedAt = createdAt, txHash }) => ({
      ...{ chain, currency, txHash, block, openedAt, amount, ofTwo }
    }))
  )

const acceptedBy = ({ amount, block, chain, currency, openedAt, txHash }: PaymentException): Decided => ({
  ...{ chain, currency, txHash, block, openedAt, amount },
  ofTwo: block !== undefined
})

const isAccepted = ({ status }: PaymentException): boolean => status === "accepted"

/**
 * The exceptions found, without surplus that was accepted with a transaction which a reorg has put before another one: the
 * surplus is the other one's now, and is not decided on again.
 */
const withoutMovedSurplus = (
  found: ReadonlyArray<ExceptionContent>,
  stored: ReadonlyArray<PaymentException>,
  receipts: ReadonlyArray<Receipt>
): ReadonlyArray<ExceptionContent> => {
  const isThere = (hash: string) => receipts.some(({ canonical, txHash }) => canonical && txHash === hash)
  const accepted = new Map(
    stored.flatMap((one) =>
      one.kind === "overpaid" && isAccepted(one) && one.txHash !== undefined && isThere(one.txHash)
        ? [[one.key, one.amount]]
        : []
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

/** Whether two exceptions of different kinds are of the same transaction's money. */
const isOfSameMoney = (one: ExceptionContent, other: ExceptionContent): boolean =>
  one.key !== other.key && one.chain === other.chain && one.currency === other.currency && one.txHash === other.txHash

/** Exceptions without money that refunds have spoken for since they were stored, and with that of refunds that have failed since. */
const asOfNow = (stored: ReadonlyArray<PaymentException>): ReadonlyArray<PaymentException> =>
  stored.flatMap((one) => {
    const before = one.status === "refunded" ? 0n : one.sentBack
    const amount = one.amount + before - sum(one.refunds.filter(isStanding).map((refund) => refund.amount))
    return amount > 0n ? [{ ...one, amount }] : []
  })

/** Those of a payment's own money that it was not accepted for. One that is closed has its money only where no other one has. */
const keptApart = (payment: Payment, stored: ReadonlyArray<PaymentException>): ReadonlyArray<PaymentException> => {
  const isOpenOrAccepted = ({ status }: PaymentException) => status === "open" || status === "accepted"
  const isOthers = (one: PaymentException) =>
    stored.some((other) => isOpenOrAccepted(other) && isOfSameMoney(one, other))
  return asOfNow(apartOf(payment, stored)).filter((one) => one.status === "open" || !isOthers(one))
}

const stillOpen = (stored: ReadonlyArray<PaymentException>) => asOfNow(stored.filter(({ status }) => status === "open"))

/**
 * The exceptions that there should be: those by corroborated receipts, and the part of each open one that is still reported.
 * What is reported opens nothing, but keeps open ones as they are: after a reorg, money that is mined again is uncorroborated
 * at first.
 */
const held = (
  stored: ReadonlyArray<PaymentException>,
  found: ReadonlyArray<ExceptionContent>,
  reported: ReadonlyArray<ExceptionContent>
): ReadonlyArray<ExceptionContent> => {
  const all = new Map(found.map((one) => [one.key, one]))
  const open = new Map(stillOpen(stored).map((one) => [one.key, one]))
  for (const one of reported) {
    const before = open.get(one.key)
    const kept = least(before?.amount ?? 0n, one.amount)
    // The sender stays as corroborated receipts reported it.
    if (kept > (all.get(one.key)?.amount ?? 0n)) all.set(one.key, { ...one, sender: before?.sender, amount: kept })
  }
  return [...all.values()]
}

/** The standing of a payment's money. */
export interface Standing {
  /** Whether a receipt is among the money: all but small ones, and small ones that complete what is missing. */
  readonly isWhole: (receipt: Receipt) => boolean
  /** Its receipts, orphaned ones too, without gas, and without those that are too small to be credited. */
  readonly money: ReadonlyArray<Receipt>
  /** The same without what was refunded: what the status machine judges by. */
  readonly receipts: ReadonlyArray<Receipt>
  /** Open exceptions of its own money that a confirmed payment was not accepted for. */
  readonly apart: ReadonlyArray<PaymentException>
  /** The exceptions that there should be, accepted ones among them. */
  readonly exceptions: () => ReadonlyArray<ExceptionContent>
  /**
   * The money of a currency on a chain that can go back, in the order in which it does: what is open, the oldest first; then what
   * counts for the payment, what two providers have first. Less what refunds speak for.
   */
  readonly refundable: (chain: ChainName, currency: string) => ReadonlyArray<Refundable>
  /** What each canonical receipt is taken for, and how much of it counts for the payment, refunds of that apart. */
  readonly kinds: () => ReadonlyArray<KnownReceipt>
  /** Of the payment's own currency on its chain, without what is too small to be credited: what came, and what was sent back of it. */
  readonly sums: { readonly received: bigint; readonly refunded: bigint }
}

/** A receipt, and what it is taken for. */
export interface KnownReceipt {
  readonly receipt: Receipt
  readonly kind: ReceiptKind
  /** Base units of it that count for the payment. */
  readonly credited: bigint
}

/** Money of one transaction, or seen at one block, that can go back. */
export interface Refundable extends Pick<RefundPart, "amount" | "block" | "exception" | "ofConfirmed" | "txHash"> {
  /** The receipts that it is. */
  readonly receipts: ReadonlyArray<Receipt>
}

const pieceOf = ({ blockNumber, txHash }: Pick<Receipt, "blockNumber" | "txHash">): string =>
  txHash ?? `block ${blockNumber}`
const pieceIn = ({ block, txHash }: Pick<ExceptionContent, "block" | "txHash">): string => txHash ?? `block ${block}`

type Piece = Pick<ExceptionContent, "block" | "chain" | "currency" | "txHash">
const isSamePiece = (one: Piece, other: Piece): boolean =>
  one.chain === other.chain && one.currency === other.currency && pieceIn(one) === pieceIn(other)
const isOfPiece = (one: Piece, { blockNumber: block, chain, currency, txHash }: Receipt): boolean =>
  isSamePiece(one, { block, chain, currency, txHash })

/**
 * @param brought receipts of the payment, orphaned ones too
 * @param sponsor of its wallet, lower case: the coin that it sends is gas
 */
export const standing = (
  payment: Payment,
  brought: ReadonlyArray<Receipt>,
  { exceptions: stored, refunds }: Decisions,
  sponsor: string | undefined
): Standing => {
  const isConfirmed = payment.status === "confirmed"
  // A confirmed payment that is refunded stays paid.
  const isSubtracted = ({ ofConfirmed }: Refund["parts"][number]) => !(isConfirmed && ofConfirmed)
  const unsponsored = withoutGas(payment, brought, sponsor)
  const refunded = refundedBy(refunds, isSubtracted)
  // A small one may complete what is missing before a refund, or after it. From then on it is like any other.
  const before = new Set(withoutSmall(payment, unsponsored))
  const grown = unsponsored.map((receipt) =>
    receipt.small && before.has(receipt) ? { ...receipt, small: false } : receipt
  )
  const after = new Set(withoutSmall(payment, without(grown, refunded)))
  const isWhole = (receipt: Receipt) => before.has(receipt) || after.has(receipt)
  const all = brought.map((receipt) => (receipt.small && isWhole(receipt) ? { ...receipt, small: false } : receipt))
  const money = withoutGas(payment, all, sponsor).filter(({ canonical, small }) => !(small && canonical))
  const receipts = without(money, refunded)
  // What was sent back before it was opened, and was not after all, is its money again.
  const apart = keptApart(payment, stored).map((one) => {
    const here = receipts.filter((receipt) => receipt.canonical && isOfPiece(one, receipt))
    return one.status === "open" && total(here) > one.amount ? { ...one, amount: total(here) } : one
  })
  const exceptions = () => {
    // Other money than the payment's own that was accepted before a second provider had it opens no other exception then.
    const isOther = ({ chain, currency }: PaymentException) => chain !== payment.chain || currency !== payment.currency
    const early = stored.filter((one) => isAccepted(one) && isUncorroborated(one) && isOther(one))
    const left = without(receipts, early.map(acceptedBy))
    // Money that was accepted without its transaction opens no exception when the transaction is found later.
    const accepted = isConfirmed ? stored.filter((one) => isAccepted(one) && one.block !== undefined) : []
    const rest = without(left, accepted.map(acceptedBy))
    // Money mined again after a reorg is uncorroborated at first: its open exception stands for it.
    const isStoodFor = (one: ExceptionContent) =>
      isUncorroborated(one) && stillOpen(stored).some((before) => isOfSameMoney(before, one))
    const found = exceptionsOf(payment, rest, accepted, undefined, apart).filter((one) => !isStoodFor(one))
    const reported = exceptionsOf(payment, rest, accepted, () => true, apart)
    const undecided = (all: ReadonlyArray<ExceptionContent>) => withoutMovedSurplus(all, stored, left)
    return held(stored, undecided(found), undecided(reported)).map(afterAccepting)
  }
  // Some of what was accepted went back: it is not asked about again where the money of its exception grows.
  const afterAccepting = (one: ExceptionContent): ExceptionContent => {
    const before = stored.find(({ key }) => key === one.key)
    const isPaidBack = refundedBy(refunds, (part) => !isSubtracted(part)).some((other) => isSamePiece(other, one))
    const isKept = isPaidBack && before !== undefined && isAccepted(before)
    return isKept ? { ...one, amount: least(one.amount, before.amount) } : one
  }
  const refundable = (chain: ChainName, currency: string) => {
    const isOf = (one: { readonly chain: ChainName; readonly currency: string }) =>
      one.chain === chain && one.currency === currency
    const its = money.filter((receipt) => receipt.canonical && isOf(receipt))
    const taken = new Map<string, bigint>()
    const take = (piece: string, amount: bigint) => taken.set(piece, (taken.get(piece) ?? 0n) + amount)
    for (const refund of refunds.filter((one) => isOf(one) && isStanding(one))) {
      for (const part of refund.parts) take(pieceIn(part), part.amount)
    }
    const isMoney = (one: PaymentException) => isOf(one) && one.kind !== "reorged"
    const open = stored.filter((one) => isMoney(one) && one.status === "open")
    for (const one of open) take(pieceIn(one), one.amount)
    const accepted = new Set(stored.filter((one) => isMoney(one) && isAccepted(one)).map(pieceIn))
    const isOwn = payment.status === "confirmed" || !isEnded(payment.status)
    const counting = new Set(isOwn ? [...counted(payment, its), ...counted(payment, receipts)].map(pieceOf) : [])
    const pieces = Object.entries(Arr.groupBy(its, pieceOf)).flatMap(([piece, own]): ReadonlyArray<Refundable> => {
      const amount = total(own) - (taken.get(piece) ?? 0n)
      const [{ blockNumber, txHash }] = own
      return amount <= 0n || !(counting.has(piece) || accepted.has(piece))
        ? []
        : [
            {
              ...{ exception: undefined, txHash, amount, ofConfirmed: isConfirmed, receipts: own },
              block: txHash === undefined ? blockNumber : undefined
            }
          ]
    })
    const isOfTwo = ({ receipts }: Refundable) => receipts.every(({ corroborated }) => corroborated)
    const [ofOne, ofTwo] = Arr.partition(pieces, isOfTwo)
    return [
      ...open.map((one): Refundable => {
        const receipts = its.filter((receipt) => pieceOf(receipt) === pieceIn(one))
        const { amount, block, id: exception, txHash } = one
        return { exception, txHash, block, amount, ofConfirmed: false, receipts }
      }),
      ...ofTwo,
      ...ofOne
    ]
  }
  const isOpenPayment = !isEnded(payment.status)
  const isOwn = ({ chain, currency }: Pick<Receipt, "chain" | "currency">) =>
    chain === payment.chain && currency === payment.currency
  const kinds = () => {
    const due = exceptions()
    const closed = new Map(stored.map((one) => [one.key, one]))
    const isCounting = isConfirmed || isOpenPayment
    const counts = new Set(isCounting ? [...counted(payment, money), ...counted(payment, receipts)] : [])
    const notGas = new Set(withoutGas(payment, all, sponsor))
    const back = refundedBy(refunds)
    const groups = Arr.groupBy(
      money.filter(({ canonical }) => canonical),
      (one) => `${one.chain} ${one.currency} ${pieceOf(one)}`
    )
    const found = new Map<Receipt, KnownReceipt>()
    for (const own of Object.values(groups)) {
      const [first] = own
      const isIts = (one: ExceptionContent) => one.kind !== "reorged" && isOfPiece(one, first)
      const isTaken = ({ amount, key }: ExceptionContent) => {
        const before = closed.get(key)
        return before !== undefined && isAccepted(before) && amount <= before.amount
      }
      const its = stored.filter(isIts)
      const open = due.filter((one) => isIts(one) && !isTaken(one))
      const notCounting = its.filter((one) => !isAccepted(one))
      const returned = sum(notCounting.flatMap((one) => one.refunds.filter(isStanding).map(({ amount }) => amount)))
      const mayCount = its.some(isAccepted) || own.some((receipt) => counts.has(receipt))
      let left = mayCount ? atLeastZero(total(own) - total(open) - returned) : 0n
      // Of a payment that has failed: what was sent back before that is no exception.
      const wentBack = back.some((one) => isOfPiece(one, first)) ? "underpaid" : undefined
      const exception = open[0]?.kind ?? its[0]?.kind ?? wentBack
      for (const receipt of own) {
        const credited = least(left, receipt.amount)
        left -= credited
        const other = exception ?? (receipt.small ? "too_small" : "before")
        const kind = counts.has(receipt) && credited > 0n ? "credited" : other
        found.set(receipt, { receipt, kind, credited })
      }
    }
    return all
      .filter(({ canonical }) => canonical)
      .map((receipt): KnownReceipt => {
        const kind = notGas.has(receipt) ? "too_small" : "gas"
        return found.get(receipt) ?? { receipt, kind, credited: 0n }
      })
  }
  const own = fitting(payment, money).filter(({ canonical }) => canonical)
  const came = own.filter(({ corroborated }) => corroborated || isOpenPayment)
  const sent = refunds.filter((one) => isOwn(one) && isSentBack(one))
  const sums = { received: total(came), refunded: least(total(came), total(sent)) }
  return { isWhole, money, receipts, apart, exceptions, refundable, kinds, sums }
}

/** The exceptions that there should be of money at an address whose payment is lost; `all`: its canonical receipts there. */
export const standingOfLost = (
  all: ReadonlyArray<Receipt>,
  { exceptions: stored, refunds }: Decisions,
  sponsor: string | undefined
): ReadonlyArray<ExceptionContent> => {
  const left = without(withoutSponsored(all, sponsor), refundedBy(refunds))
  const rest = without(left, stored.filter((one) => isAccepted(one) && one.block !== undefined).map(acceptedBy))
  return held(
    stored,
    unknownMoney(rest),
    unknownMoney(rest, () => true)
  )
}

// Gas: native coin that the operator sends to collect a payment's tokens with, which is not an exception. A customer's is
// none: from before the payment's end or the first token on that chain, or beyond the cost of a token transfer. Coin of the
// wallet's own sponsor is gas always, also at the address of an open payment of coin.

const isCoin = ({ chain, currency }: Pick<Receipt, "chain" | "currency">): boolean => currency === nativeToken(chain)

/** Receipts without coin that the sponsor of their wallet, lower case, has sent. */
export const withoutSponsored = (all: ReadonlyArray<Receipt>, sponsor: string | undefined): ReadonlyArray<Receipt> =>
  all.filter((receipt) => !(isCoin(receipt) && sponsor !== undefined && receipt.sender === sponsor))

/** From when on coin may be gas; Unix milliseconds, undefined while there is nothing to collect. */
const gasFrom = (payment: Payment): number | undefined => {
  const { confirmedAt, endedAt, failureReason } = payment
  // Customers do not know at once that their payment was cancelled.
  if (failureReason === "cancelled") return Math.max(endedAt ?? 0, deadline(payment))
  // `endedAt` is later than `confirmedAt` where a reorg undid the payment.
  return confirmedAt ?? endedAt
}

/**
 * A payment's receipts without gas.
 *
 * @param all of the payment: money that was refunded since was there to be collected too
 * @param sponsor of the payment's wallet, lower case
 */
export const withoutGas = (
  payment: Payment,
  all: ReadonlyArray<Receipt>,
  sponsor: string | undefined
): ReadonlyArray<Receipt> => {
  const receipts = withoutSponsored(all, sponsor)
  const from = gasFrom(payment)
  if (from === undefined || isCoin(payment)) return receipts
  // By the chain's time, in Unix milliseconds. Balances are read late, and a reorg may mine money again.
  const arrived = leastOf(receipts, earliest)
  const seen = leastOf(receipts, ({ seenAt }) => seenAt)
  const firstTokens = new Map<ChainName, number>()
  for (const receipt of receipts) {
    const isThere = receipt.canonical && isCorroborated(receipt)
    const first = Math.min(earliest(receipt), firstTokens.get(receipt.chain) ?? Number.POSITIVE_INFINITY)
    if (isThere && !isCoin(receipt)) firstTokens.set(receipt.chain, first)
  }
  return receipts.filter((receipt) => {
    const { amount, chain } = receipt
    const at = arrived(receipt)
    // The end has the time of this machine's clock, which may be behind: money seen before it came before it.
    const isAfter = at > from && seen(receipt) > from
    const isToCollect = at > (firstTokens.get(chain) ?? Number.POSITIVE_INFINITY)
    return !(isCoin(receipt) && isAfter && isToCollect && amount <= chainTraits[chain].mostGas)
  })
}
