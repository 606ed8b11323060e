/**
 * Stores the decisions of the status machine or a person, in the transaction of the decision: the payment's new states,
 * the exceptions that follow from its receipts, and the events of both. Called by settlement, decisions and refunds.
 */
import { Effect, Runtime } from "effect"
import type { Network } from "../Domain/Chain.ts"
import { type PaymentEventKind, statusEventOf } from "../Domain/Event.ts"
import type { ExceptionContent } from "../Domain/Exception.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import type { EventExtras, Outbox } from "../Events/Outbox.ts"
import { type StoreUnavailable, Tx } from "../Sql.ts"
import { Metrics } from "../Telemetry/Metrics.ts"
import { sponsorOf } from "./addresses/WalletsRepo.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import { followPayment } from "./InvoicesRepo.ts"
import * as Repo from "./PaymentsRepo.ts"
import * as Receipts from "./ReceiptsRepo.ts"
import * as Refunds from "./RefundsRepo.ts"
import { shownMoney } from "./shownMoney.ts"
import { standing, standingOfLost } from "./standing.ts"
import { leastToComplete, type Step } from "./statusMachine.ts"

/** Exceptions that an event shows with its payment at most: there may be an event for each of a thousand. */
const shownInEvents = 10

/** Stores the event of a state, with the payment's money; its kind is that of the status unless given. */
export const publishState = Effect.fnUntraced(function* (
  outbox: Outbox["Type"],
  payment: Payment,
  at: number,
  kind: PaymentEventKind = statusEventOf(payment.status),
  extras: Partial<EventExtras> = {}
) {
  const shown = yield* shownMoney(yield* Tx, payment.id, shownInEvents)
  yield* outbox.publish(payment, at, kind, { ...shown, ...extras })
})

/** The kind of event of a new state: of its status, or `payment.updated` where the status is that of the state before. */
const kindOf = (before: Payment, { status }: Payment): PaymentEventKind =>
  status === before.status ? "payment.updated" : statusEventOf(status)

/** Stores the events of the exceptions of a payment that have changed. `at` in Unix milliseconds. */
export const reportExceptions = Effect.fnUntraced(function* (outbox: Outbox["Type"], payment: Payment, at: number) {
  const tx = yield* Tx
  const changed = yield* Exceptions.report(payment.id)
  if (changed.length === 0) return
  const shown = yield* shownMoney(tx, payment.id, shownInEvents)
  for (const exception of changed) {
    yield* outbox.publish(payment, at, "payment.exception", { ...shown, exception })
  }
})

/** One line for each change of a status. */
const logTransition = ({ status: from }: Payment, { chain, id, mode, status: to }: Payment) =>
  Effect.annotateLogs(Effect.logInfo(`payment ${to}`), { service: "payments", payment: id, chain, mode, from, to })

const storeState = Effect.fnUntraced(function* (before: Payment, after: Payment, at: number) {
  const tx = yield* Tx
  const { payments } = yield* Metrics
  const { status } = after
  yield* Repo.update(before, after, at)
  if (status === before.status) return
  const runtime = yield* Effect.runtime<never>()
  tx.afterCommit(() => {
    payments.inc({ chain: after.chain, mode: after.mode, event: status })
    Runtime.runSync(runtime)(logTransition(before, after))
  })
})

const withUpdate = (payment: Payment): Payment => ({ ...payment, updates: payment.updates + 1 })

/** The changes of one payment to store. */
export interface Change {
  readonly payment: Payment
  /** The states that it passes through. */
  readonly steps: ReadonlyArray<Step>
  /** Whether its receipts, or decisions on them, have changed: its exceptions may have, even where its status has not. */
  readonly receiptsChanged: boolean
  /** Decides on exceptions that were opened, before the events report them. */
  readonly decide?: (opened: ReadonlyArray<ExceptionContent>) => Effect.Effect<void, StoreUnavailable, Tx>
}

/**
 * Stores the states that a payment passes through, and its exceptions, with their events. Gives the last state, and the
 * exceptions that were opened. `at` in Unix milliseconds.
 */
export const storeTransitions = Effect.fnUntraced(function* (
  outbox: Outbox["Type"],
  { decide = () => Effect.void, payment, receiptsChanged, steps }: Change,
  at: number
) {
  const end = steps.at(-1)?.payment ?? payment
  // What is not corroborated when a payment ends is not received.
  const stand = receiptsChanged || end.status !== payment.status ? yield* standingOf(end) : undefined
  const { received, refunded } = stand?.sums ?? payment
  const isSame = received === payment.received && refunded === payment.refunded
  const due = steps.length > 0 || isSame ? steps : [{ payment, announced: false }]
  const stated = due.map((step) => ({ ...step, payment: { ...step.payment, received, refunded } }))
  const last = stated.at(-1)
  // What goes back is told even where it changes no state.
  const isUpdated = refunded !== payment.refunded && last?.announced === false
  const after = last === undefined ? payment : isUpdated ? withUpdate(last.payment) : last.payment
  let before = payment
  for (const step of stated.slice(0, -1)) {
    yield* storeState(before, step.payment, at)
    const { isDecision } = step
    if (step.announced) yield* publishState(outbox, step.payment, at, kindOf(before, step.payment), { isDecision })
    before = step.payment
  }
  if (last !== undefined) yield* storeState(before, after, at)
  const opened = stand === undefined ? [] : yield* syncExceptions(after, stand, at)
  yield* decide(opened)
  if (stand !== undefined) yield* classify(after, stand)
  // The event of the last state reports the exceptions that come with it.
  if (last?.announced === true) {
    yield* publishState(outbox, after, at, kindOf(before, after), { isDecision: last.isDecision })
  }
  if (isUpdated) yield* publishState(outbox, after, at, "payment.updated", { isDecision: true })
  if (stand !== undefined) yield* reportExceptions(outbox, after, at)
  if (after.invoice !== undefined) {
    if (after.status !== payment.status) yield* followPayment(outbox, after.invoice.id, at)
    yield* outbox.tellPlugins(after.invoice.id, at)
  }
  return { after, opened }
})

/** The standing of a payment's money, with the decisions on it. */
export const standingOf = Effect.fnUntraced(function* (payment: Payment) {
  const tx = yield* Tx
  const sponsor = yield* sponsorOf(tx, payment.id)
  const listed = yield* Receipts.ofPayment(tx, payment)
  const exceptions = yield* Exceptions.ofPayment(tx, payment.id)
  const refunds = yield* Refunds.ofPayment(tx, payment.id)
  const standingBy = (receipts: ReadonlyArray<Receipt>) => standing(payment, receipts, { exceptions, refunds }, sponsor)
  const first = standingBy(listed)
  // Before the refunds, which may fail, and after them.
  const bounds = [first.money, first.receipts].flatMap((some) => leastToComplete(payment, some) ?? [])
  const [least] = bounds.toSorted((a, b) => Number(a - b))
  const unlisted = least === undefined ? [] : yield* Receipts.unlisted(tx, payment, least)
  const all = [...listed, ...unlisted]
  const stands = unlisted.length === 0 ? first : standingBy(all)
  // The small one that completes the payment is listed from then on: it waits for a second provider like any other.
  yield* Receipts.list(unlisted.filter(stands.isWhole))
  return { ...stands, all, sponsor, stored: exceptions, refunds }
})

/** A payment's money as it was read, with the decisions on it. */
export type Stand = Effect.Effect.Success<ReturnType<typeof standingOf>>

/** Stores what a payment's receipts are taken for, by its exceptions as they are now. */
const classify = Effect.fnUntraced(function* (payment: Payment, { all, refunds, sponsor }: Stand) {
  const exceptions = yield* Exceptions.ofPayment(yield* Tx, payment.id)
  const { kinds } = standing(payment, all, { exceptions, refunds }, sponsor)
  yield* Receipts.setKinds(kinds().map(({ receipt, ...is }) => ({ ...receipt, ...is })))
})

/** Updates a payment's exceptions to its money. Gives the exceptions that were opened. `at` in Unix milliseconds. */
const syncExceptions = Effect.fnUntraced(function* (payment: Payment, { exceptions, stored }: Stand, at: number) {
  const place = { address: payment.address.toLowerCase(), mode: payment.mode, payment: payment.id }
  return yield* Exceptions.sync(place, stored, exceptions(), at)
})

/** The same for money on a chain at an address (lower case) whose payment is lost. */
export const syncLost = Effect.fnUntraced(function* (network: Network, address: string, at: number) {
  const tx = yield* Tx
  const exceptions = yield* Exceptions.unknownAt(tx, network, address)
  const refunds = yield* Refunds.ofLost(tx, network, address)
  const receipts = yield* Receipts.ofLost(tx, network, address)
  const due = standingOfLost(receipts, { exceptions, refunds }, yield* sponsorOf(tx, address))
  return yield* Exceptions.sync({ address, mode: network.mode, payment: undefined }, exceptions, due, at)
})
