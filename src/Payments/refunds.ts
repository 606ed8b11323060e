/**
 * Records refunds: tilld cannot spend, so that operators send money back with their own wallets and say so with
 * `tilld payments refunded`. Further money may arrive between their look at the exceptions and the command. Therefore only
 * the named exceptions, or the only open one, are closed, and only for the amount that was sent back.
 */
import { Clock, Effect } from "effect"
import { Settlement } from "../Chains/ledger/SettlementTag.ts"
import { isOfDust, mayGrow, NothingToDecide, type PaymentException, RefundUnclear } from "../Domain/Exception.ts"
import { Outbox } from "../Events/Outbox.ts"
import { Reader, Tx, Writer } from "../Sql.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import { type Decided, decided } from "./operatorDecisions.ts"
import * as Repo from "./PaymentsRepo.ts"
import { reportExceptions } from "./storeTransitions.ts"

/** What was sent back. */
export interface ReturnedMoney {
  /** Ids; empty for the only one that is open. */
  readonly exceptions: ReadonlyArray<string>
  /** Base units; undefined for all of each exception. */
  readonly amount: bigint | undefined
  /** The transaction that sent it, and a note. */
  readonly detail?: Exceptions.DecisionDetail
  /** Called with the exceptions that are closed, in the transaction that closes them. */
  readonly onClosed?: (closed: ReadonlyArray<PaymentException>) => void
}

/** The result, with the amounts of the exceptions that were closed. */
export interface Refunded extends Decided {
  readonly closed: ReadonlyArray<PaymentException>
}

export const described = (exception: PaymentException): string => {
  const { amount, currency, id, kind, txHash = "transaction unknown" } = exception
  return `${id} (${kind}, ${amount} base units of ${currency}, ${isOfDust(exception) ? "many small transfers" : txHash})`
}

const unclear = (message: string) => new RefundUnclear({ message })

/** The exceptions that are meant, each with the amount that was sent back. */
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
    const list = open.map(described).join(", ")
    return yield* unclear(
      `${of} has ${open.length} open exceptions: ${list}. Name those you sent back: --exception EXC_ID, once for each`
    )
  }
  if (second !== undefined && amount !== undefined) {
    return yield* unclear("--amount says how much of one exception was sent back: name one, and the others without it")
  }
  const growing = meant.find(mayGrow)
  if (growing !== undefined && amount === undefined) {
    return yield* unclear(
      `${described(growing)} may grow at any time: name it alone, and say with --amount how much you sent back`
    )
  }
  if (amount !== undefined && amount > one.amount) {
    return yield* unclear(`${described(one)} is open, which is less than ${amount}: nothing was closed`)
  }
  return amount === undefined ? meant : [{ ...one, amount }]
})

const close = Effect.fnUntraced(function* (of: string, all: ReadonlyArray<PaymentException>, returned: ReturnedMoney) {
  const now = yield* Clock.currentTimeMillis
  const closed = yield* chosen(of, all, returned)
  for (const { amount, id } of closed) {
    const stored = all.find((one) => one.id === id)
    if (stored !== undefined) yield* Exceptions.sendBack(stored, amount, now, returned.detail)
  }
  returned.onClosed?.(closed)
  return closed
})

/**
 * Records that money of a payment's exceptions was sent back: of the named ones, or of the only open one. Undefined where
 * there is no such payment.
 */
export const refunded = Effect.fn("Payments.refunded")(function* (id: string, returned: ReturnedMoney) {
  const writer = yield* Writer
  const settlement = yield* Settlement
  const outbox = yield* Outbox
  const payment = yield* Repo.byId(yield* Reader, id)
  if (payment === undefined) return undefined
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const closed = yield* close(id, yield* Exceptions.ofPayment(tx, payment.id), returned)
      const now = yield* Clock.currentTimeMillis
      yield* reportExceptions(outbox, (yield* Repo.byId(tx, payment.id)) ?? payment, now)
      // The refunded money may have made up for money that a reorg orphaned.
      yield* settlement.lookAgain(payment)
      const result: Refunded = { ...(yield* decided(payment.id)), closed }
      return result
    })
  )
})
