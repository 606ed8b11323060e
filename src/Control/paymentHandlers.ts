import { Effect } from "effect"
import { NotFound } from "../Auth/inputFields.ts"
import { DecisionInvalid, type PaymentException, RefundUnclear } from "../Domain/Exception.ts"
import { PaymentId } from "../Domain/Ids.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { PaymentTerms } from "../Events/paymentObject.ts"
import { cancelPayment } from "../Payments/cancellation.ts"
import {
  acceptException,
  auditedAs,
  closedBy,
  type Resolved,
  type Returned,
  refundException
} from "../Payments/decisions/resolve.ts"
import * as ExceptionListRepo from "../Payments/ExceptionListRepo.ts"
import * as ExceptionsRepo from "../Payments/ExceptionsRepo.ts"
import { abandon, accept, type Made } from "../Payments/operatorDecisions.ts"
import * as PaymentListRepo from "../Payments/PaymentListRepo.ts"
import * as PaymentsRepo from "../Payments/PaymentsRepo.ts"
import * as ReceiptsRepo from "../Payments/ReceiptsRepo.ts"
import { refunded } from "../Payments/refunds.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import { administering, reading } from "./controlHandler.ts"
import { decisionView, exceptionView, paymentHistoryOf, paymentView } from "./paymentHistory.ts"
import * as PaymentRequests from "./paymentRequests.ts"

const notFound = (what: string) =>
  new NotFound({ message: `There is no ${what}: tilld payments list and exceptions show the ids` })

/** With what a provider denies of the payment's money. */
const withDenied = Effect.fnUntraced(function* (view: PaymentRequests.DecisionView) {
  const receipts =
    view.payment === undefined ? [] : yield* ReceiptsRepo.ofPayment(yield* Reader, PaymentId.make(view.payment.id))
  const denied = receipts.flatMap(({ canonical, corroborated, deniedBy: host, txHash }) =>
    canonical && !corroborated && host !== undefined ? [{ host, ...(txHash === undefined ? {} : { txHash }) }] : []
  )
  const accepted: PaymentRequests.AcceptView = denied.length === 0 ? view : { ...view, denied }
  return accepted
})

export const listPayments = reading(
  PaymentRequests.ListPayments,
  Effect.fnUntraced(function* ({ account, after, chain, limit, modes, status }) {
    const reader = yield* Reader
    const last = after === undefined ? undefined : yield* PaymentsRepo.byId(reader, after)
    if (after !== undefined && last === undefined) return yield* notFound(`payment ${after}`)
    const pages = yield* Effect.forEach(
      modes,
      (mode) => PaymentListRepo.list(reader, { account, mode }, { status, chain, limit, after: last }),
      { concurrency: 1 }
    )
    const newestFirst = pages.flat().sort((a, b) => b.createdAt - a.createdAt || b.sequence - a.sequence)
    const settings = yield* Settings
    return newestFirst.slice(0, limit).map((payment) => paymentView(payment, settings))
  })
)

/** Payments that the message lists where several are meant. */
const mostListed = 20

const several = (of: string, payments: ReadonlyArray<Payment>) => {
  const each = payments
    .slice(0, mostListed)
    .map(({ account, id, merchantRef, mode, status }) => [id, account, mode, status, merchantRef].join("  "))
  const rest = payments.length > mostListed ? ["and more"] : []
  return new PaymentRequests.SeveralPayments({
    message: [`${of} stands for several payments: name one by its id`, ...each, ...rest].join("\n  ")
  })
}

export const showPayment = reading(
  PaymentRequests.ShowPayment,
  Effect.fnUntraced(function* ({ limit, of }) {
    const reader = yield* Reader
    const [payment, ...others] = yield* PaymentListRepo.meantBy(reader, of, mostListed + 1)
    if (payment === undefined) return yield* notFound(`payment ${of}`)
    if (others.length > 0) return yield* several(of, [payment, ...others])
    return yield* paymentHistoryOf(reader, payment, limit)
  })
)

export const cancelPaymentHandler = administering(
  PaymentRequests.CancelPayment,
  ({ id }) => ({ act: "payments cancel", detail: { id } }),
  Effect.fnUntraced(function* ({ id }) {
    const cancelled = yield* cancelPayment((db) => PaymentsRepo.byId(db, id))
    return cancelled === undefined ? yield* notFound(`payment ${id}`) : paymentView(cancelled.payment, yield* Settings)
  })
)

export const listExceptions = reading(
  PaymentRequests.ListExceptions,
  Effect.fnUntraced(function* (filter) {
    const reader = yield* Reader
    const { after, payment } = filter
    // An empty list for an unknown id would read as: no exception is open.
    if (payment && !(yield* PaymentsRepo.byId(reader, payment))) return yield* notFound(`payment ${payment}`)
    if (after && !(yield* ExceptionsRepo.byId(reader, after))) return yield* notFound(`exception ${after}`)
    return (yield* ExceptionListRepo.open(reader, filter)).map(exceptionView)
  })
)

const isException = (id: string): boolean => id.startsWith("exc_")

const orNotFound = <A>(id: string, decided: A | undefined) =>
  decided === undefined ? notFound(`${isException(id) ? "exception" : "payment"} ${id}`) : Effect.succeed(decided)

/** Names the option that a decision lacks. */
const namingOption = <A, E, R>(decision: Effect.Effect<A, E | DecisionInvalid, R>) =>
  Effect.mapError(decision, (error) => {
    if (!(error instanceof DecisionInvalid)) return error
    const { field, message } = error
    return new DecisionInvalid({ field, message: `--${field === "txHash" ? "tx" : field} ${message}` })
  })

/** An exception that was decided on alone, with its payment. */
const resolvedView = ({ exception, payment }: Resolved, terms: PaymentTerms) =>
  decisionView({ payment, exceptions: [exception] }, terms)

export const acceptPayment = administering(
  PaymentRequests.AcceptPayment,
  ({ id, note, tx }) => ({ act: "payments accept", detail: { id, tx, note } }),
  Effect.fnUntraced(function* ({ id, note, tx }, _, add) {
    const settings = yield* Settings
    const onMade = (made: Made) => add(auditedAs(made))
    if (!isException(id)) {
      const accepted = yield* orNotFound(id, yield* accept(id, tx, note, () => onMade("repeated")))
      return yield* withDenied(decisionView(accepted, settings))
    }
    const decision = acceptException(id, undefined, { txHash: tx, note }, (_, made) => Effect.sync(() => onMade(made)))
    return yield* withDenied(resolvedView(yield* orNotFound(id, yield* namingOption(decision)), settings))
  })
)

export const refundedPayment = administering(
  PaymentRequests.RefundedPayment,
  ({ amount, counted, exceptions, id, note, tx }) => ({
    act: "payments refunded",
    detail: { id, exceptions, counted, amount, tx, note }
  }),
  Effect.fnUntraced(function* ({ counted = false, exceptions, id, note, tx, ...sent }, _, add) {
    const amount = sent.amount === undefined ? undefined : BigInt(sent.amount)
    const detail = { txHash: tx, note }
    const onClosed = (closed: ReadonlyArray<PaymentException>, made: Made) => add(auditedAs(made, closed))
    if (isException(id)) {
      if (counted) {
        return yield* new RefundUnclear({
          message: `--counted is for what counts for a payment, and ${id} is an exception: nothing was closed`
        })
      }
      if (exceptions.some((named) => named !== id)) {
        return yield* new RefundUnclear({
          message: `--exception names those of a payment, and ${id} is one alone: nothing was closed`
        })
      }
      const onReturned = (result: Returned, made: Made) => Effect.sync(() => onClosed([closedBy(result)], made))
      const decision = refundException(id, undefined, amount, detail, onReturned)
      const result = yield* orNotFound(id, yield* namingOption(decision))
      return { ...resolvedView(result, yield* Settings), closed: [exceptionView(closedBy(result))] }
    }
    const noted = refunded(id, { exceptions, amount, counted, detail, onClosed })
    const result = yield* orNotFound(id, yield* namingOption(noted))
    return { ...decisionView(result, yield* Settings), closed: result.closed.map(exceptionView) }
  })
)

export const abandonPayments = administering(
  PaymentRequests.AbandonPayments,
  ({ chain, mode, token }) => ({
    act: "payments abandon",
    detail: { chain, mode, ...(token === undefined ? {} : { token }) }
  }),
  Effect.fnUntraced(function* ({ chain, mode, token }) {
    const given = yield* abandon({ chain, mode }, token)
    return { chain, mode, ...(token === undefined ? {} : { token }), ...given }
  })
)
