/**
 * Refunds of the money that counts for an open payment. Each is noted with the transactions that brought the money, the
 * oldest first, as exceptions of the kind `underpaid` that are `refunded` at once: from then on that money does not
 * count, even if mined again. Called by `refunds.ts` and by the decisions, inside their transactions.
 */
import { Array as Arr, Clock, Effect } from "effect"
import { Settlement } from "../Chains/ledger/SettlementTag.ts"
import {
  AlreadyDecided,
  DecisionInvalid,
  mostRefunds,
  NothingToDecide,
  type PaymentException,
  type Refund
} from "../Domain/Exception.ts"
import { exceptionId } from "../Domain/Ids.ts"
import { isEnded, type Payment } from "../Domain/Payment.ts"
import { isCorroborated } from "../Domain/Receipt.ts"
import { Settings } from "../Settings.ts"
import { Tx } from "../Sql.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import { exceptionsOfKind } from "./exceptionContents.ts"
import type { Made } from "./operatorDecisions.ts"
import { counted, total } from "./statusMachine.ts"
import { receiptsLeft } from "./storeTransitions.ts"
import { refuseUndecidable, whyUndecidable } from "./undecidable.ts"

/**
 * The money that counts for an open payment, what two providers have first, each in chain order. It has a transaction: other
 * money is an exception.
 */
export const countedMoney = Effect.fnUntraced(function* (payment: Payment) {
  if (isEnded(payment.status)) return []
  const received = counted(payment, yield* receiptsLeft(payment)).filter(({ txHash }) => txHash !== undefined)
  return Arr.partition(received, isCorroborated).reverse().flat()
})

/** One recorded refund: a part of each exception whose money it was. */
interface Noted {
  readonly txHash: string | undefined
  readonly parts: ReadonlyArray<{ readonly of: PaymentException; readonly part: Refund }>
}

const notedOf = (exceptions: ReadonlyArray<PaymentException>): ReadonlyArray<Noted> => {
  const noted = new Map<string, Noted>()
  for (const of of exceptions.filter(({ kind }) => kind === "underpaid")) {
    for (const part of of.refunds) {
      const key = `${part.at} ${part.txHash}`
      noted.set(key, { txHash: part.txHash, parts: [...(noted.get(key)?.parts ?? []), { of, part }] })
    }
  }
  return [...noted.values()]
}

/** Whether that transaction is already recorded as a refund of money that counts for the payment. */
export const isNotedOfCounted = (exceptions: ReadonlyArray<PaymentException>, txHash: string | undefined): boolean =>
  txHash !== undefined && notedOf(exceptions).some((one) => one.txHash === txHash)

/** The result of a refund. */
interface RefundedCounted {
  readonly made: Made
  /** The exceptions that record it, with the recorded amounts. */
  readonly closed: ReadonlyArray<PaymentException>
}

const closedBy = ({ parts }: Noted): RefundedCounted["closed"] =>
  parts.map(({ of, part }) => ({ ...of, amount: part.amount }))

const amountOf = ({ parts }: Noted): bigint => parts.reduce((all, { part }) => all + part.amount, 0n)

/** Why no money that counts for a payment is refundable, and where its money is. */
export const nothingCounts = ({ id, status }: Payment) => {
  const instead = isEnded(status)
    ? status === "confirmed"
      ? "it is confirmed, and what you send back of its amount you note in your own shop"
      : "it has ended, and what came for it is in its exceptions"
    : "none has come, or all of it was sent back"
  return new NothingToDecide({ message: `No money counts for ${id}: ${instead}` })
}

/** The parts of `amount`, the oldest first. */
const partsOf = <A extends { readonly amount: bigint }>(money: ReadonlyArray<A>, amount: bigint): ReadonlyArray<A> => {
  let left = amount
  return money.flatMap((one) => {
    const isAll = one.amount <= left
    const part = isAll ? one.amount : left
    left -= part
    return part > 0n ? [{ ...one, amount: part }] : []
  })
}

/**
 * Records a refund of `amount` of the money that counts for an open payment, and settles the payment without it.
 * Idempotent for the same amount and transaction; adds the transaction to a refund recorded without one.
 */
export const refundCounted = Effect.fnUntraced(function* (
  payment: Payment,
  amount: bigint,
  named: Exceptions.DecisionDetail
) {
  const tx = yield* Tx
  const { txHash } = named
  const stored = yield* Exceptions.ofPayment(tx, payment.id)
  const noted = txHash === undefined ? [] : notedOf(stored)
  const same = noted.filter((one) => one.txHash === txHash)
  if (same.length > 0) {
    const all = same.reduce((all, one) => all + amountOf(one), 0n)
    if (all === amount) return { made: "repeated", closed: same.flatMap(closedBy) } satisfies RefundedCounted
    return yield* new AlreadyDecided({
      message: `${txHash} is noted already, as a refund of ${payment.id}: name the transaction of what else was sent back`
    })
  }
  const unnamed = noted.find((one) => one.txHash === undefined && amountOf(one) === amount)
  if (unnamed !== undefined && txHash !== undefined) {
    for (const { of, part } of unnamed.parts) yield* Exceptions.nameRefund(of, part, txHash)
    return { made: "completed", closed: closedBy(unnamed) } satisfies RefundedCounted
  }
  const money = yield* countedMoney(payment)
  if (money.length === 0) return yield* nothingCounts(payment)
  const most = total(money)
  if (amount > most) {
    return yield* new DecisionInvalid({
      field: "amount",
      message: `must be at most ${most}, which is what counts for ${payment.id}, without what is an exception`
    })
  }
  const { chains } = yield* Settings
  yield* refuseUndecidable(whyUndecidable(tx, chains, `what counts for ${payment.id}`, partsOf(money, amount), named))
  const now = yield* Clock.currentTimeMillis
  const address = payment.address.toLowerCase()
  const place = { address, mode: payment.mode, payment: payment.id }
  const closed: Array<PaymentException> = []
  for (const one of partsOf(exceptionsOfKind("underpaid", money), amount)) {
    yield* Exceptions.open(place, one, now)
    const opened = yield* Exceptions.byId(tx, exceptionId(address, one.key))
    if (opened === undefined) return yield* Effect.dieMessage(`${one.key} of ${payment.id} was not stored`)
    if (opened.refunds.length >= mostRefunds) {
      return yield* new AlreadyDecided({
        message: `${opened.id} was sent back in ${mostRefunds} parts: cancel ${payment.id}, and note the rest as one`
      })
    }
    yield* Exceptions.sendBack(opened, one.amount, now, named)
    closed.push({ ...opened, amount: one.amount })
  }
  yield* (yield* Settlement).sentBack(payment)
  return { made: "decided", closed } satisfies RefundedCounted
})
