/**
 * Redelivery orders of merchants and operators: stored with one command of the writer, which wakes the dispatcher. The
 * HTTP handlers and the operator's commands call it.
 */
import { Clock, Effect } from "effect"
import { keepWithin } from "../../Auth/UsageRepo.ts"
import type { Owner } from "../../Domain/Account.ts"
import { isStatusEventKind, type OutboxEventKind } from "../../Domain/Event.ts"
import type { EndpointId, EventId } from "../../Domain/Ids.ts"
import { type Endpoint, takes } from "../../Domain/Webhook.ts"
import { Settings } from "../../Settings.ts"
import { type CommitWith, type StoreUnavailable, Tx, Writer } from "../../Sql.ts"
import { deliveryId } from "./DeliveriesRepo.ts"
import { DeliveryBell } from "./DeliveryBell.ts"
import { eventOf, type Selection, selecting } from "./DeliveryLogRepo.ts"
import { moveToOwnUrl } from "./OwnUrlRepo.ts"

/** Maximum deliveries that one command of the writer orders: a long range must not block other writes. */
const orderedAtOnce = 500

/**
 * Finds the endpoint to send to; undefined: where each delivery went. In the transaction of the order, so that nothing is sent
 * to an endpoint that is deleted meanwhile.
 */
export type FindTarget<E> = Effect.Effect<Endpoint | undefined, E, Tx>

/** Stores an order and wakes the dispatcher. Each attempt is a row of the account, which is kept within its quota. */
const commit = Effect.fnUntraced(function* <A, E>(
  owner: Owner,
  target: FindTarget<E>,
  order: (now: number, to: Endpoint | undefined) => Effect.Effect<A, StoreUnavailable, Tx>
) {
  const bell = yield* DeliveryBell
  const writer = yield* Writer
  const { quotaBytes } = (yield* Settings).accounts
  const now = yield* Clock.currentTimeMillis
  return yield* writer.write(
    Effect.gen(function* () {
      yield* keepWithin(owner, quotaBytes)
      const to = yield* target
      const ordered = yield* order(now, to)
      yield* bell.ring
      return ordered
    })
  )
})

/**
 * Orders one delivery again, or its event to the endpoint `target` of the same owner. Undefined when there is none of that id.
 * Fails with `QuotaExceeded` when its account has used up its quota.
 */
export const redeliver = <E>(
  owner: Owner,
  id: string,
  target: FindTarget<E>,
  commitWith: CommitWith<Ordered> = () => Effect.void
) =>
  commit(owner, target, (now, to) =>
    Effect.tap(orderAgain(id, now, to), (ordered) =>
      ordered === undefined || ordered.result === "refused" ? Effect.void : commitWith(ordered)
    )
  )

/** The result of a page of a range, and where the next one begins. */
export type RangePage = Effect.Effect.Success<ReturnType<typeof redeliverSome>>

/** Orders one page of a range again, oldest first, from `after` on. Fails as `redeliver` does. */
export const redeliverPage = <E>(
  selection: Selection,
  target: FindTarget<E>,
  after: RedeliveryCursor | undefined,
  commitWith: CommitWith<RangePage> = () => Effect.void
) =>
  commit(selection.owner, target, (now, to) =>
    Effect.tap(redeliverSome(selection, after, orderedAtOnce, now, to), commitWith)
  )

/**
 * The result of an order to send a delivery again. `due`: an attempt is under way, is due, or waits for an earlier
 * event's; in a range to another endpoint, also that the event has arrived there. `refused`: the endpoint was deleted, and the event is not owed to the payment's own webhookUrl either; or the event
 * is of a kind that comes to those who name it, and the endpoint to send to does not.
 */
export type Verdict = "ordered" | "due" | "refused"

interface Row extends Owner {
  readonly sequence: number
  readonly id: string
  readonly event_id: EventId
  readonly kind: OutboxEventKind
  readonly status: string
  readonly endpoint_id: EndpointId | null
  readonly own_url: 0 | 1
  readonly redelivery: 0 | 1
  readonly next_attempt_at: number | null
  readonly after_sequence: number | null
  readonly created_at: number
  readonly attempts_made: number
  readonly endpoint_deleted: 0 | 1
}

const rows = `SELECT d.sequence, d.id, d.event_id, (SELECT kind FROM events WHERE id = d.event_id) AS kind, d.account_id AS account, d.mode, d.status, d.endpoint_id, d.own_url,
    d.redelivery, d.next_attempt_at, d.after_sequence, d.created_at, d.attempts + d.redeliveries AS attempts_made, e.deleted_at IS NOT NULL OR coalesce(CAST(e.plugin ->> 'enabled' AS BIGINT), 1) = 0 AS endpoint_deleted
  FROM deliveries AS d LEFT JOIN endpoints AS e ON e.id = d.endpoint_id`

const verdictOn = (row: Row, now: number): Verdict => {
  if (row.endpoint_deleted === 1 && row.own_url === 0) return "refused"
  const isDue = row.redelivery === 1 || (row.next_attempt_at !== null && row.next_attempt_at <= now)
  return isDue || row.after_sequence !== null ? "due" : "ordered"
}

/** The delivery that an order was for, and its result. */
export interface Ordered {
  readonly id: string
  readonly result: Verdict
  /** The attempts that it had by then. */
  readonly attemptsMade: number
}

/**
 * Makes an extra attempt due now; the retry schedule goes on after it. When the endpoint was deleted but the event is
 * owed to the payment's own webhookUrl, the delivery goes there.
 */
const order = (row: Row, now: number) =>
  Effect.gen(function* () {
    const ordered: Ordered = { id: row.id, result: verdictOn(row, now), attemptsMade: row.attempts_made }
    if (ordered.result !== "ordered") return ordered
    const tx = yield* Tx
    if (row.endpoint_deleted === 1) yield* moveToOwnUrl([row.sequence])
    yield* tx.run(
      `UPDATE deliveries SET redelivery = 1, resume_at = next_attempt_at, next_attempt_at = ?, done_at = NULL
       WHERE sequence = ?`,
      [now, row.sequence]
    )
    return ordered
  })

/** Sends the event of a delivery to another endpoint of its owner: by the delivery that it has there, or by a new one. */
const orderTo = (row: Row, to: Endpoint, now: number, inRange: boolean) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const there = yield* tx.get<Row>(`${rows} WHERE d.event_id = ? AND d.endpoint_id = ?`, [row.event_id, to.id])
    if (there?.status === "delivered" && inRange) {
      return { id: there.id, result: "due", attemptsMade: there.attempts_made } satisfies Ordered
    }
    if (there !== undefined) return yield* order(there, now)
    if (!takes(to, row.kind) && (to.plugin !== undefined || !isStatusEventKind(row.kind))) {
      return { id: row.id, result: "refused", attemptsMade: row.attempts_made } satisfies Ordered
    }
    const id = deliveryId(row.event_id, to.id)
    const before = yield* tx.get<{ sequence: number }>(
      `SELECT sequence FROM deliveries WHERE payment_id = (SELECT payment_id FROM deliveries WHERE sequence = ?)
         AND endpoint_id = ? AND status = 'pending' AND attempts = 0 ORDER BY sequence DESC LIMIT 1`,
      [row.sequence, to.id]
    )
    yield* tx.run(
      `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, plugin, target, url, status,
         attempts, next_attempt_at, after_sequence, created_at)
       SELECT ?, event_id, payment_id, account_id, mode, ?, 0, plugin, ?, ?, 'pending', 0, ?, ?, ? FROM deliveries WHERE sequence = ?`,
      [id, to.id, to.id, to.url, before === undefined ? now : null, before?.sequence ?? null, now, row.sequence]
    )
    const ordered: Ordered = { id, result: "ordered", attemptsMade: 0 }
    return ordered
  })

const orderedBy = (row: Row, to: Endpoint | undefined, now: number, inRange: boolean) =>
  to === undefined ? order(row, now) : orderTo(row, to, now, inRange)

/**
 * Orders one delivery again, or its event to the endpoint `to` of the same owner; undefined when there is none of that id.
 * `now` in Unix milliseconds.
 */
export const orderAgain = (id: string, now: number, to?: Endpoint) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const row = yield* tx.get<Row>(`${rows} WHERE d.event_id = ? AND d.id = ?`, [eventOf(id), id])
    return row && (yield* orderedBy(row, to, now, false))
  })

/** The last delivery of a page: the next page begins after it. */
export interface RedeliveryCursor {
  readonly createdAt: number
  readonly sequence: number
}

/** Orders up to `limit` deliveries of a range again, oldest first, from `after` on; to the endpoint `to`, if one is given. */
export const redeliverSome = (
  selection: Selection,
  after: RedeliveryCursor | undefined,
  limit: number,
  now: number,
  to?: Endpoint
) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const since = Math.max(selection.since, after?.createdAt ?? 0)
    const each = yield* Effect.forEach(
      selecting({ ...selection, since }),
      ({ params, where }) =>
        tx.all<Row>(
          `${rows} WHERE ${where} AND (d.created_at, d.sequence) > (?, ?) ORDER BY d.created_at, d.sequence LIMIT ?`,
          [...params, after?.createdAt ?? 0, after?.sequence ?? -1, limit]
        ),
      { concurrency: 1 }
    )
    const found = each
      .flat()
      .sort((a, b) => a.created_at - b.created_at || a.sequence - b.sequence)
      .slice(0, limit)
    const results = yield* Effect.forEach(found, (row) => orderedBy(row, to, now, true), { concurrency: 1 })
    const count = (verdict: Verdict) => results.filter(({ result }) => result === verdict).length
    const last = found.length === limit ? found.at(-1) : undefined
    return {
      ordered: count("ordered"),
      due: count("due"),
      refused: count("refused"),
      /** Where the next page begins; undefined when the range is done. */
      next: last && { createdAt: last.created_at, sequence: last.sequence }
    }
  })
