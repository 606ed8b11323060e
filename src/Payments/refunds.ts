/**
 * Records refunds: tilld cannot spend, so operators send money back with their own wallets and record it with `tilld
 * payments refunded`. Further money may arrive between their reading of the exceptions and the command. Therefore only
 * the named exceptions, or the only open one, are closed, and only for the amount that was sent back.
 */
import { Clock, Effect } from "effect"
import { Settlement } from "../Chains/ledger/SettlementTag.ts"
import { NothingToDecide, type PaymentException, RefundUnclear } from "../Domain/Exception.ts"
import { isEnded, type Payment } from "../Domain/Payment.ts"
import { isCorroborated } from "../Domain/Receipt.ts"
import { Settings } from "../Settings.ts"
import { Reader, Tx, Writer } from "../Sql.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import { type Decided, decided, type Made } from "./operatorDecisions.ts"
import * as Repo from "./PaymentsRepo.ts"
import { countedMoney, isNotedOfCounted, nothingCounts, refundCounted } from "./refundsWhileOpen.ts"
import { total } from "./statusMachine.ts"
import { refuseUndecidable, whyExceptionUndecidable } from "./undecidable.ts"

/** A refund. */
export interface ReturnedMoney {
  /** Ids; empty for the only one that is open. */
  readonly exceptions: ReadonlyArray<string>
  /** Base units; undefined for all of each exception. */
  readonly amount: bigint | undefined
  /** A refund of money that counts for an open payment, and of no exception. */
  readonly counted?: boolean
  /** The transaction that sent it, and a note. */
  readonly detail?: Exceptions.DecisionDetail
  /** Called with the exceptions that are closed, in the transaction that closes them. */
  readonly onClosed?: (closed: ReadonlyArray<PaymentException>, made: Made) => void
}

/** The result, with the amounts of the exceptions that were closed. */
export interface Refunded extends Decided {
  readonly closed: ReadonlyArray<PaymentException>
}

export const described = (exception: PaymentException): string => {
  const { amount, currency, id, kind, txHash = "transaction unknown" } = exception
  return `${id} (${kind}, ${amount} base units of ${currency}, ${txHash})`
}

const unclear = (message: string) => new RefundUnclear({ message })

/** The refunded exceptions, each with the refunded amount. */
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
  if (amount !== undefined && amount > one.amount) {
    return yield* unclear(`${described(one)} is open, which is less than ${amount}: nothing was closed`)
  }
  return amount === undefined ? meant : [{ ...one, amount }]
})

const close = Effect.fnUntraced(function* (of: string, all: ReadonlyArray<PaymentException>, returned: ReturnedMoney) {
  const now = yield* Clock.currentTimeMillis
  const { chains } = yield* Settings
  const closed = yield* chosen(of, all, returned)
  for (const { amount, id } of closed) {
    const stored = all.find((one) => one.id === id)
    if (stored === undefined) continue
    yield* refuseUndecidable(whyExceptionUndecidable(yield* Tx, chains, stored, returned.detail))
    yield* Exceptions.sendBack(stored, amount, now, returned.detail)
  }
  return closed
})

/** Whether the refund is of money that counts for an open payment; fails where it may be of an exception as well. */
const isCountedMeant = Effect.fnUntraced(function* (
  payment: Payment,
  all: ReadonlyArray<PaymentException>,
  { amount, counted, detail, exceptions }: ReturnedMoney
) {
  if (counted === true) {
    if (exceptions.length === 0) return true
    return yield* unclear(
      "--counted says that no exception was sent back, and --exception names one: nothing was closed"
    )
  }
  if (exceptions.length > 0) return false
  if (amount !== undefined && isNotedOfCounted(all, detail?.txHash)) return true
  if (isEnded(payment.status)) return false
  const open = all.filter(({ status }) => status === "open")
  const money = open.length === 0 ? [] : (yield* countedMoney(payment)).filter(isCorroborated)
  if (open.length === 0 || money.length === 0) return open.length === 0
  return yield* unclear(
    `${total(money)} base units of ${payment.currency} count for ${payment.id}, which is open, and it has open exceptions: ` +
      `${open.map(described).join(", ")}. Say --counted for what counts, or name what you sent back: --exception EXC_ID`
  )
})

/** Records a refund of money that counts for an open payment. More may arrive, so its amount is required. */
const refundOfCounted = Effect.fnUntraced(function* (payment: Payment, { amount, detail }: ReturnedMoney) {
  if (amount !== undefined) return yield* refundCounted(payment, amount, detail ?? {})
  if ((yield* countedMoney(payment)).length === 0) return yield* nothingCounts(payment)
  return yield* unclear(`More may come for ${payment.id}, which is open: say with --amount how much you sent back`)
})

/**
 * Records a refund of a payment's money: of the named exceptions, of what counts for it while it is open, or of its
 * only open exception. Undefined where there is no such payment.
 */
export const refunded = Effect.fn("Payments.refunded")(function* (id: string, returned: ReturnedMoney) {
  const writer = yield* Writer
  const settlement = yield* Settlement
  const services = yield* Effect.context<Settings | Settlement>()
  const payment = yield* Repo.byId(yield* Reader, id)
  if (payment === undefined) return undefined
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const current = (yield* Repo.byId(tx, payment.id)) ?? payment
      const all = yield* Exceptions.ofPayment(tx, payment.id)
      const ofCounted = (yield* isCountedMeant(current, all, returned))
        ? yield* refundOfCounted(current, returned)
        : undefined
      const closed = ofCounted?.closed ?? (yield* close(id, all, returned))
      if (ofCounted === undefined) yield* settlement.sentBack(current)
      returned.onClosed?.(closed, ofCounted?.made ?? "decided")
      return { ...(yield* decided(payment.id)), closed } satisfies Refunded
    }).pipe(Effect.provide(services))
  )
})
