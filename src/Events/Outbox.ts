/**
 * The transactional outbox: stores the event of each payment's or invoice's new state, and of each exception's, with its webhook
 * deliveries, in the transaction that stores the change. An event is therefore never lost and never reports what was rolled
 * back. Called by `Payments.create` and `storeTransitions`; the event streams listen here.
 */
import { Context, Effect, Layer, Queue } from "effect"
import type { Owner } from "../Domain/Account.ts"
import {
  isPluginEventKind,
  type PaymentEventKind,
  type PluginEventKind,
  type ShownExceptions,
  statusEventOf,
  type WebhookEvent,
  withExceptions
} from "../Domain/Event.ts"
import { type PaymentException, toExceptionObject } from "../Domain/Exception.ts"
import { EventId, eventId, type InvoiceId, type PaymentId } from "../Domain/Ids.ts"
import { type InvoiceEvent, type InvoiceWithPayments, invoiceEventOf } from "../Domain/Invoice.ts"
import type { Payment } from "../Domain/Payment.ts"
import { type Refund, refundObject } from "../Domain/Refund.ts"
import { iso } from "../lib/moment.ts"
import { Settings } from "../Settings.ts"
import { type Db, type StoreUnavailable, Tx } from "../Sql.ts"
import { type EventRef, enqueue, targetsFor } from "../Webhooks/queue/DeliveriesRepo.ts"
import { DeliveryBell } from "../Webhooks/queue/DeliveryBell.ts"
import { invoiceObject, paymentObject } from "./paymentObject.ts"

/** An event for the endpoints of shop plugins. */
export interface PluginEvent extends Owner {
  readonly id: EventId
  readonly invoice: InvoiceId
  readonly kind: PluginEventKind
  /** The webhook's body without what is of its delivery. At least one field. */
  readonly body: object
}

/**
 * What shop plugins are told of an invoice that they made: `src/Greenfield` says what. By default nothing: an installation without
 * plugins has no such messages.
 */
export class PluginEvents extends Context.Reference<PluginEvents>()("tilld/Events/PluginEvents", {
  defaultValue: () => ({
    /** Notes the state of an invoice, and gives what is to be told of it since the last call. `at` in Unix milliseconds. */
    due: (_invoice: InvoiceId, _at: number): Effect.Effect<ReadonlyArray<PluginEvent>, StoreUnavailable, Tx> =>
      Effect.succeed([]),
    /** Invoices of which something may be due that no change of their payments shows: money that came too late is certain. */
    awaited: (_db: Db): Effect.Effect<ReadonlyArray<InvoiceId>, StoreUnavailable> => Effect.succeed([])
  })
}) {}

/** What an event contains in addition to the payment. */
export interface EventExtras extends ShownExceptions {
  /** The exception that `payment.exception` reports. */
  readonly exception?: PaymentException
  /** The refund that `refund.final` reports. */
  readonly refund?: Refund
  /** Whether its id goes with its content: a person decided this state, or a reorg. */
  readonly isDecision?: boolean | undefined
}

const nothing: EventExtras = { exceptions: [], more: false }

const makeOutbox = Effect.gen(function* () {
  const { ring } = yield* DeliveryBell
  const settings = yield* Settings
  const plugins = yield* PluginEvents
  const listeners = makeListeners()

  /** Stores an event and its deliveries. */
  const store = Effect.fnUntraced(function* (
    event: EventRef,
    body: object,
    webhookUrl: string | undefined,
    at: number
  ) {
    const tx = yield* Tx
    const { account, id, kind, mode, paymentId } = event
    const targets = yield* targetsFor(event, webhookUrl)
    if (targets.length === 0 && isPluginEventKind(kind)) return
    yield* tx.run(
      "INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
      [id, account, mode, paymentId, kind, JSON.stringify(body), at]
    )
    listeners.changed(event)
    tx.afterCommit(listeners.wake)
    yield* enqueue(targets, event, at)
    if (targets.length > 0) yield* ring
  })

  /** The same of a payment's or an invoice's. */
  const storeOf = (
    { account, id, mode }: Owner & { readonly id: PaymentId | InvoiceId },
    event: WebhookEvent | InvoiceEvent,
    webhookUrl: string | undefined,
    at: number
  ) =>
    store({ id: EventId.make(event.id, true), account, mode, paymentId: id, kind: event.event }, event, webhookUrl, at)

  /**
   * Stores an event with the state that `payment` has now, and its deliveries. `at` in Unix milliseconds. Gives the payment
   * as the event shows it.
   *
   * @param kind that of the payment's status unless given
   */
  const publish = Effect.fnUntraced(function* (
    payment: Payment,
    at: number,
    kind: PaymentEventKind = statusEventOf(payment.status),
    extras: EventExtras = nothing
  ) {
    const { exception, isDecision, refund } = extras
    const [about] = exception === undefined ? [] : toExceptionObject(exception)
    const id =
      exception !== undefined
        ? eventId(payment.id, `${kind} ${exception.id}`, exception.revision, saidOf(exception))
        : refund !== undefined
          ? eventId(payment.id, `${kind} ${refund.id}`, 0, refund.txHash)
          : eventId(payment.id, kind, yield* ordinalOf(payment, kind), isDecision ? decisionOf(payment) : undefined)
    const data = withExceptions(paymentObject(payment, settings), extras)
    const event: WebhookEvent = {
      id,
      event: kind,
      createdAt: at === payment.createdAt ? data.createdAt : iso(at),
      data,
      ...(about === undefined ? {} : { exception: about }),
      ...(refund === undefined ? {} : { refund: refundObject(refund) })
    }
    yield* storeOf(payment, event, payment.webhookUrl, at)
    return data
  })

  /** The same of the status that an invoice has now. */
  const publishInvoice = (of: InvoiceWithPayments, at: number) => {
    const { changes, id, status } = of.invoice
    const kind = invoiceEventOf(status)
    const data = invoiceObject(of, settings)
    const event: InvoiceEvent = { id: eventId(id, kind, changes), event: kind, createdAt: iso(at), data }
    return storeOf(of.invoice, event, undefined, at)
  }

  /** Stores an event for the endpoints of shop plugins that take it, with its deliveries; where none does, nothing. */
  const publishPlugin = ({ body, invoice, ...event }: PluginEvent, at: number) =>
    store({ ...event, paymentId: invoice }, body, undefined, at)

  /** The same of everything that plugins are to be told of an invoice since the last call. */
  const tellPlugins = Effect.fnUntraced(function* (invoice: InvoiceId, at: number) {
    for (const event of yield* plugins.due(invoice, at)) yield* publishPlugin(event, at)
  })

  return { publish, publishInvoice, publishPlugin, tellPlugins, listen: listeners.listen }
})

export class Outbox extends Context.Tag("tilld/Events/Outbox")<Outbox, Effect.Effect.Success<typeof makeOutbox>>() {
  static readonly layer = Layer.effect(Outbox, makeOutbox)
}

// What events say of decisions, without their times, which differ after a restore.
const decisionOf = ({ amountReceived, failureReason, refunded, txHash }: Payment): string =>
  JSON.stringify([failureReason, `${amountReceived}`, txHash, `${refunded}`])
const saidOf = ({ amount, decisionTx, note, refunds, sentBack, status }: PaymentException): string =>
  JSON.stringify([
    status,
    `${amount}`,
    `${sentBack}`,
    decisionTx,
    note,
    refunds.map(({ note, txHash }) => [txHash, note])
  ])

/** The listeners of each owner and of single payments. */
const makeListeners = () => {
  const bells = new Map<string, Set<Queue.Queue<void>>>()
  const nameOf = (to: Owner | PaymentId | InvoiceId) => (typeof to === "string" ? to : `${to.mode} ${to.account}`)
  // A transaction that is rolled back may leave a name here: its listeners wake for nothing, which does no harm.
  const changed = new Set<string>()

  const add = (name: string, bell: Queue.Queue<void>) =>
    Effect.sync(() => void bells.set(name, (bells.get(name) ?? new Set()).add(bell)))
  const remove = (name: string, bell: Queue.Queue<void>) =>
    Effect.sync(() => {
      const others = bells.get(name)
      others?.delete(bell)
      if (others?.size === 0) bells.delete(name)
    })

  return {
    changed: (by: EventRef) => void changed.add(nameOf(by)).add(by.paymentId),
    /** One function for all, so that a group of commands calls it once. */
    wake: () => {
      for (const name of changed) for (const bell of bells.get(name) ?? []) bell.unsafeOffer(undefined)
      changed.clear()
    },
    /**
     * Listens until the scope closes. The inner effect waits until further events of the owner, or of the one payment or
     * invoice, have been committed.
     */
    listen: (to: Owner | PaymentId | InvoiceId) => {
      const name = nameOf(to)
      const bell = Effect.acquireRelease(
        Effect.tap(Queue.sliding<void>(1), (made) => add(name, made)),
        (made) => remove(name, made)
      )
      return Effect.map(bell, (made) => Queue.take(made))
    }
  }
}

// Never counted by the events, which are deleted when they are old: an id is never used twice.
const ordinalOf = (payment: Payment, kind: PaymentEventKind) => {
  // A payment is created once; the other kinds can come again after a reorg.
  if (kind === "payment.created") return Effect.succeed(0)
  if (kind === "payment.updated") return Effect.succeed(payment.updates)
  return Effect.map(
    Effect.flatMap(Tx, (tx) =>
      tx.get<{ count: number }>("SELECT count(*) AS count FROM transitions WHERE payment_id = ? AND to_status = ?", [
        payment.id,
        payment.status
      ])
    ),
    (row) => Math.max(0, (row?.count ?? 0) - 1)
  )
}
