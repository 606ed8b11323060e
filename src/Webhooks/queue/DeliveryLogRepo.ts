import { Array as Arr, Effect } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import type { Mode } from "../../Domain/Chain.ts"
import type { DeliveryFilter, DeliveryStatus, OperatorDelivery } from "../../Domain/DeliveryObject.ts"
import type { EventKind, OutboxEventKind } from "../../Domain/Event.ts"
import type { AccountId, EndpointId, PaymentId } from "../../Domain/Ids.ts"
import { iso } from "../../lib/moment.ts"
import { allOf, countRows, type Db, when } from "../../Sql.ts"

// Deliveries as operators and merchants see them. Only reads. Times in Unix milliseconds.

export interface LoggedAttempt {
  readonly number: number
  /** Ordered by an operator, outside the retry schedule. */
  readonly isRedelivery: boolean
  readonly startedAt: number
  readonly endedAt: number
  /** The IP address that was connected to, or all that were tried. */
  readonly address: string | null
  readonly status: number | null
  readonly error: string | null
  readonly bodyStart: string | null
}

export interface LoggedDelivery {
  readonly sequence: number
  readonly id: string
  readonly event: string
  readonly kind: OutboxEventKind
  /** The payment, or the invoice, that it tells of. */
  readonly payment: string
  /** Its reference; the id of an invoice without one. */
  readonly merchantRef: string
  readonly account: AccountId
  readonly mode: Mode
  /** Where the last attempt went; before the first one, where it will go. */
  readonly url: string
  /** Null for a payment's own webhookUrl. */
  readonly endpoint: string | null
  readonly status: DeliveryStatus
  readonly createdAt: number
  readonly nextAttemptAt: number | null
  /** In the order in which they were made: the first and the last ones, when there were many. */
  readonly attempts: ReadonlyArray<LoggedAttempt>
  /** The number of all attempts made. */
  readonly made: number
}

/** Deliveries of one owner, of one of its endpoints or payments, created in `since` ≤ time < `until`. */
export interface Selection {
  readonly owner: Owner
  readonly endpoint: EndpointId | undefined
  /** Undefined: of all payments. */
  readonly payment?: PaymentId | undefined
  /** Whether it has those to endpoints of shop plugins, of which the own API knows nothing. */
  readonly plugins?: boolean
  readonly status: DeliveryFilter
  readonly since: number
  readonly until: number
}

/**
 * Conditions on `deliveries AS d` that an index serves: each in the order of (created_at, sequence), except for a payment's few.
 */
export const selecting = (selection: Selection) =>
  (selection.plugins && selection.endpoint === undefined ? [0, 1] : [0]).map((plugin) => conditionOf(selection, plugin))

const conditionOf = (
  { endpoint, owner: { account, mode }, payment, since, status, until }: Selection,
  plugin: number
) =>
  allOf([
    ...when("d.event_id IN (SELECT id FROM events WHERE payment_id = ?)", payment),
    // `+` excludes a column from the choice of the index: an endpoint's own is the better one.
    endpoint === undefined
      ? ["d.account_id = ? AND d.mode = ? AND d.plugin = ?", account, mode, plugin]
      : ["d.endpoint_id = ? AND +d.account_id = ? AND +d.mode = ?", endpoint, account, mode],
    status === "failing"
      ? ["d.status IN ('pending', 'failed') AND d.attempts + d.redeliveries > 0"]
      : ["d.status = ?", status],
    ["d.created_at >= ? AND d.created_at < ?", since, until]
  ])

type DeliveryRow = Omit<LoggedDelivery, "attempts">
type AttemptRow = Omit<LoggedAttempt, "isRedelivery"> & { readonly delivery: number; readonly redelivery: 0 | 1 }

/** Where the last attempt went; before the first one, where its endpoint is now. */
const place = `iif(d.attempts + d.redeliveries > 0, d.url,
  coalesce((SELECT url FROM endpoints WHERE id = d.endpoint_id), d.url))`

const columns = `d.sequence, d.id, d.event_id AS event, e.kind, d.payment_id AS payment,
  coalesce(p.merchant_ref, (SELECT merchant_ref FROM invoices WHERE id = d.payment_id), d.payment_id) AS merchantRef,
  d.account_id AS account, d.mode, d.endpoint_id AS endpoint, d.status, d.created_at AS createdAt, d.next_attempt_at AS nextAttemptAt,
  d.attempts + d.redeliveries AS made, ${place} AS url`

const withAttempts = (db: Db, deliveries: ReadonlyArray<DeliveryRow>) =>
  Effect.map(
    db.all<AttemptRow>(
      `SELECT delivery, number, redelivery, started_at AS startedAt, ended_at AS endedAt, address, status, error,
         iif(body_of IS NULL, body_start,
           (SELECT body_start FROM attempts WHERE delivery = a.delivery AND number = a.body_of)) AS bodyStart
       FROM attempts AS a WHERE delivery IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY delivery, number`,
      [JSON.stringify(deliveries.map(({ sequence }) => sequence))]
    ),
    (rows): ReadonlyArray<LoggedDelivery> => {
      const byDelivery = Arr.groupBy(rows, ({ delivery }) => String(delivery))
      return deliveries.map((delivery) => ({
        ...delivery,
        attempts: (byDelivery[String(delivery.sequence)] ?? []).map(({ delivery: _, redelivery, ...attempt }) => ({
          ...attempt,
          isRedelivery: redelivery === 1
        }))
      }))
    }
  )

/** A delivery's place in the lists. */
export type Position = Pick<LoggedDelivery, "createdAt" | "sequence">

/** The newest of all selections together, newest first, from behind `before` on. */
export const list = Effect.fn("DeliveryLogRepo.list")(function* (
  db: Db,
  selections: ReadonlyArray<Selection>,
  limit: number,
  before: Position = { createdAt: Number.MAX_SAFE_INTEGER, sequence: 0 }
) {
  const found: Array<DeliveryRow> = []
  for (const { params, where } of selections.flatMap(selecting)) {
    const rows = yield* db.all<DeliveryRow>(
      `SELECT ${columns} FROM deliveries AS d JOIN events AS e ON e.id = d.event_id LEFT JOIN payments AS p ON p.id = d.payment_id
       WHERE ${where} AND (d.created_at, d.sequence) < (?, ?) ORDER BY d.created_at DESC, d.sequence DESC LIMIT ?`,
      [...params, before.createdAt, before.sequence, limit]
    )
    found.push(...rows)
  }
  found.sort((a, b) => b.createdAt - a.createdAt || b.sequence - a.sequence)
  return yield* withAttempts(db, found.slice(0, limit))
})

/** All deliveries of a payment, in the order of its events. Joined by events: only their index has the payment. */
export const ofPayment = (db: Db, payment: PaymentId) =>
  Effect.flatMap(
    db.all<DeliveryRow>(
      `SELECT ${columns} FROM events AS e JOIN deliveries AS d ON d.event_id = e.id LEFT JOIN payments AS p ON p.id = d.payment_id
       WHERE e.payment_id = ? ORDER BY d.sequence`,
      [payment]
    ),
    (rows) => withAttempts(db, rows)
  )

/** The event that a delivery's id begins with: `dlv_`, the event's 30 characters, and the target. */
export const eventOf = (deliveryId: string): string => `evt_${deliveryId.slice(4, 34)}`

export const byId = (db: Db, id: string) =>
  db
    .all<DeliveryRow>(
      `SELECT ${columns} FROM deliveries AS d JOIN events AS e ON e.id = d.event_id
         LEFT JOIN payments AS p ON p.id = d.payment_id WHERE d.event_id = ? AND d.id = ?`,
      [eventOf(id), id]
    )
    .pipe(
      Effect.flatMap((rows) => withAttempts(db, rows)),
      Effect.map(([delivery]) => delivery)
    )

/** A delivery of this owner. */
export const ofOwner = (db: Db, { account, mode }: Owner, id: string) =>
  Effect.map(byId(db, id), (delivery) =>
    delivery?.account === account && delivery.mode === mode ? delivery : undefined
  )

const counted = {
  delivered: "INDEXED BY deliveries_list WHERE status = 'delivered'",
  failing: "INDEXED BY deliveries_failing WHERE status IN ('pending', 'failed') AND attempts + redeliveries > 0",
  triedAgain: `INDEXED BY deliveries_tried_again WHERE status IN ('pending', 'failed') AND attempts + redeliveries > 0
    AND next_attempt_at IS NOT NULL`
} as const

/** The number of an owner's deliveries that have arrived, or were tried and have not, created at `since` or later, counted up to `limit`. */
export const countSince = (
  db: Db,
  { account, mode }: Owner,
  which: keyof typeof counted,
  since: number,
  limit: number
) =>
  countRows(
    db,
    `SELECT 1 FROM deliveries ${counted[which]}
     AND account_id = ? AND mode = ? AND plugin IN (0, 1) AND created_at >= ? LIMIT ?`,
    [account, mode, since, limit]
  )

/** The number of deliveries of all owners that have failed and are tried again, counted up to `limit`. */
export const countTriedAgain = (db: Db, limit: number) =>
  countRows(db, `SELECT 1 FROM deliveries ${counted.triedAgain} LIMIT ?`, [limit])

/** A target of an owner with deliveries that have failed and not succeeded yet. */
export interface FailingTarget {
  /** Null: payments' own webhookUrls. */
  readonly endpoint: string | null
  readonly url: string
  readonly failing: number
}

/**
 * Of the newest `limit` deliveries that are failing and will be tried again: where they go, the most first. The last retry is a
 * day later; a failure whose retries are over says nothing of its receiver's state.
 */
export const failingTargets = (db: Db, { account, mode }: Owner, limit: number) =>
  db.all<FailingTarget>(
    `SELECT endpoint_id AS endpoint, max(url) AS url, count(*) AS failing FROM (
       SELECT endpoint_id, url FROM deliveries INDEXED BY deliveries_tried_again
       WHERE account_id = ? AND mode = ? AND status IN ('pending', 'failed') AND attempts + redeliveries > 0
         AND next_attempt_at IS NOT NULL ORDER BY sequence DESC LIMIT ?)
     GROUP BY endpoint_id ORDER BY failing DESC, endpoint_id`,
    [account, mode, limit]
  )

export const attemptObject = ({
  bodyStart,
  endedAt,
  error,
  isRedelivery,
  number,
  startedAt,
  status
}: LoggedAttempt) => ({
  number,
  ...(isRedelivery ? { redelivery: true as const } : {}),
  startedAt: iso(startedAt),
  durationMillis: Math.max(0, endedAt - startedAt),
  ...(status === null ? {} : { status }),
  ...(error === null ? {} : { error }),
  ...(bodyStart === null ? {} : { bodyStart })
})

/** Without its attempts, but for the last one. The own API shows no other kinds than its own. */
export const deliveryObject = (delivery: LoggedDelivery) => {
  const { attempts, createdAt, endpoint, event, id, kind, made, merchantRef, nextAttemptAt, payment, status, url } =
    delivery
  const last = attempts.at(-1)
  return {
    ...{
      id,
      event,
      kind: kind as EventKind,
      ...(payment.startsWith("inv_") ? { invoice: payment } : { payment }),
      merchantRef
    },
    ...(endpoint === null ? {} : { endpoint }),
    url,
    status,
    createdAt: iso(createdAt),
    ...(nextAttemptAt === null ? {} : { nextAttemptAt: iso(nextAttemptAt) }),
    attemptsMade: made,
    ...(last === undefined ? {} : { lastAttempt: attemptObject(last) })
  }
}

/** With its attempts, the addresses that were connected to, and whose it is. */
export const operatorDelivery = (delivery: LoggedDelivery): OperatorDelivery => ({
  account: delivery.account,
  mode: delivery.mode,
  ...deliveryObject(delivery),
  attempts: delivery.attempts.map((attempt) => ({
    ...attemptObject(attempt),
    ...(attempt.address === null ? {} : { address: attempt.address })
  }))
})
