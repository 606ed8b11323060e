import { Clock, Effect } from "effect"
import { Settlement } from "../Chains/ledger/Settlement.ts"
import { isCertain, isOfDust, NothingToDecide, type PaymentException, RefundUnclear } from "../Domain/Exception.ts"
import { Reader, Tx, Writer } from "../Sql.ts"
import { type Decided, decided } from "./decisions.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import * as Repo from "./PaymentsRepo.ts"

// What operators have sent back with a wallet of their own. Money may arrive between their look at the exceptions and the
// command: only what is named, or the one exception that is open, is closed, and no more of it than was named.

/** What was sent back. */
export interface ReturnedMoney {
  /** Ids; without any, the one that is open. */
  readonly exceptions: ReadonlyArray<string>
  /** Base units; otherwise all of each. */
  readonly amount: bigint | undefined
  /** Is told of what is closed, in the transaction that closes it. */
  readonly onClosed?: (closed: ReadonlyArray<PaymentException>) => void
}

/** What became of it, and of how much of which exceptions that is. */
export interface Refunded extends Decided {
  readonly closed: ReadonlyArray<PaymentException>
}

const told = (exception: PaymentException): string => {
  const { amount, currency, id, kind, txHash = "transaction unknown" } = exception
  return `${id} (${kind}, ${amount} ${currency}, ${isOfDust(exception) ? "many small transfers" : txHash})`
}

const unclear = (message: string) => new RefundUnclear({ message })

/** The exceptions that are meant, each with so much of its money as was sent back. */
const chosen = Effect.fnUntraced(function* (
  of: string,
  all: ReadonlyArray<PaymentException>,
  { amount, exceptions }: ReturnedMoney
) {
  const open = all.filter(({ status }) => status === "open")
  for (const id of exceptions) {
    const named = all.find((one) => one.id === id)
    if (named === undefined)
      return yield* unclear(`${of} has no exception ${id}: nothing was closed. See tilld payments show`)
    if (named.status !== "open") return yield* unclear(`${id} is ${named.status}, not open: nothing was closed`)
  }
  const meant = exceptions.length === 0 ? open : open.filter(({ id }) => exceptions.includes(id))
  const [one, second] = meant
  if (one === undefined) {
    return yield* new NothingToDecide({ message: `${of} has no open exception: there is nothing to refund` })
  }
  if (second !== undefined && exceptions.length === 0) {
    const list = open.map(told).join(", ")
    return yield* unclear(
      `${of} has ${open.length} open exceptions: ${list}. Name those you sent back: --exception EXC_ID, once for each`
    )
  }
  if (second !== undefined && amount !== undefined) {
    return yield* unclear("--amount says how much of one exception was sent back: name one, and the others without it")
  }
  const growing = meant.find((one) => isOfDust(one) || (!isCertain(one) && one.kind !== "reorged"))
  if (growing !== undefined && amount === undefined) {
    return yield* unclear(
      `${told(growing)} may grow at any time: name it alone, and say with --amount how much you sent back`
    )
  }
  if (amount !== undefined && amount > one.amount) {
    return yield* unclear(`${told(one)} is open, which is less than ${amount}: nothing was closed`)
  }
  return amount === undefined ? meant : [{ ...one, amount }]
})

const close = Effect.fnUntraced(function* (of: string, all: ReadonlyArray<PaymentException>, returned: ReturnedMoney) {
  const now = yield* Clock.currentTimeMillis
  const closed = yield* chosen(of, all, returned)
  for (const { amount, id } of closed) {
    const stored = all.find((one) => one.id === id)
    if (stored !== undefined) yield* Exceptions.sendBack(stored, amount, now)
  }
  returned.onClosed?.(closed)
  return closed
})

/** The same of money that belongs to no payment that is known; undefined where there is no such exception. */
const refundUnknown = Effect.fnUntraced(function* (id: string, returned: ReturnedMoney) {
  const tx = yield* Tx
  const before = yield* Exceptions.byId(tx, id)
  if (before === undefined || before.payment !== undefined) return undefined
  const closed = yield* close(id, [before], { ...returned, exceptions: [id] })
  const after = yield* Exceptions.byId(tx, id)
  const result: Refunded = { payment: undefined, exceptions: after === undefined ? [] : [after], closed }
  return result
})

/**
 * Notes that money of a payment's exceptions was sent back: of those that are named, or of the only one that is open.
 * Undefined where there is no payment, and no exception, of that id.
 */
export const refunded = Effect.fn("Payments.refunded")(function* (id: string, returned: ReturnedMoney) {
  const writer = yield* Writer
  const settlement = yield* Settlement
  const payment = yield* Repo.byId(yield* Reader, id)
  if (payment === undefined) return yield* writer.write(refundUnknown(id, returned))
  return yield* writer.write(
    Effect.gen(function* () {
      const closed = yield* close(id, yield* Exceptions.ofPayment(yield* Tx, payment.id), returned)
      // It may have taken the place of what a reorg took.
      yield* settlement.lookAgain(payment)
      const result: Refunded = { ...(yield* decided(payment.id)), closed }
      return result
    })
  )
})
