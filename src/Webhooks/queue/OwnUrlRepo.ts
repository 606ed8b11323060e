import { Array as Arr, Clock, Effect } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import type { DeliveryStatus } from "../../Domain/DeliveryObject.ts"
import type { EndpointId, EventId } from "../../Domain/Ids.ts"
import { type Db, Tx } from "../../Sql.ts"
import { isSameUrl, ownLane } from "../transport/deliveryTargets.ts"
import { deliveryId, releaseBehind } from "./DeliveriesRepo.ts"
import * as EndpointsRepo from "./EndpointsRepo.ts"

// A delivery to an endpoint with the URL of the payment's own webhookUrl serves both. When the endpoint is deleted or
// gets another URL, the payment's own URL is still owed the event.

/** What serves a payment's own URL in place of an endpoint that had this URL. */
export interface Successor {
  /** Another endpoint of the same URL; undefined: there is none, and the account's default secret signs. */
  readonly endpoint: EndpointId | undefined
  readonly lane: string
}

/** The oldest endpoint with this URL: the same choice as for the targets of a new event. */
export const successorOf = (db: Db, owner: Owner, url: string) =>
  Effect.map(EndpointsRepo.list(db, owner), (endpoints): Successor => {
    const endpoint = endpoints.find((each) => each.plugin === undefined && isSameUrl(each.url, url))?.id
    return { endpoint, lane: endpoint ?? ownLane(owner, url) }
  })

interface OwnRow extends Owner {
  readonly event: EventId
  readonly url: string
  readonly payment: string
}

/**
 * Gives the payment's own URL a delivery of its own, due at `now`, Unix milliseconds: the endpoint that this delivery goes
 * to has got another URL since. Where another endpoint has the former URL, its delivery of the event serves both.
 */
export const splitOwnUrl = (sequence: number, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const row = yield* tx.get<OwnRow>(
      `SELECT event_id AS event, d.account_id AS account, d.mode, p.webhook_url AS url, d.payment_id AS payment
       FROM deliveries AS d JOIN payments AS p ON p.id = d.payment_id
       WHERE d.sequence = ? AND own_url = 1 AND endpoint_id IS NOT NULL`,
      [sequence]
    )
    if (row === undefined) return
    yield* tx.run("UPDATE deliveries SET own_url = 0 WHERE sequence = ?", [sequence])
    const { endpoint, lane } = yield* successorOf(tx, row, row.url)
    const theirs = yield* tx.get<{ sequence: number; status: DeliveryStatus; url: string; ahead: 0 | 1 }>(
      `SELECT sequence, status, url, next_attempt_at IS NOT NULL OR after_sequence IS NOT NULL AS ahead
       FROM deliveries WHERE event_id = ? AND endpoint_id = ? ORDER BY status = 'delivered'`,
      [row.event, endpoint ?? ""]
    )
    // One sent to another URL of the endpoint, or failed permanently, does not count: it gets a second one.
    const serves =
      theirs !== undefined && (theirs.status === "delivered" ? isSameUrl(theirs.url, row.url) : theirs.ahead === 1)
    if (serves) {
      yield* tx.run("UPDATE deliveries SET own_url = 1 WHERE sequence = ?", [theirs.sequence])
      return
    }
    // The payment's events keep their order at this URL, too.
    const before = yield* tx.get<{ sequence: number }>(
      `SELECT d.sequence FROM deliveries AS d JOIN events AS e ON e.id = d.event_id
       WHERE d.payment_id = ? AND own_url = 1 AND status = 'pending' AND attempts = 0
         AND e.sequence < (SELECT sequence FROM events WHERE id = ?) ORDER BY e.sequence DESC LIMIT 1`,
      [row.payment, row.event]
    )
    const made = yield* tx.get<{ sequence: number }>(
      `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
         attempts, next_attempt_at, after_sequence, created_at)
       SELECT ?, event_id, payment_id, account_id, mode, ?, 1, ?, ?, 'pending', 0, ?, ?, created_at
       FROM deliveries WHERE sequence = ? RETURNING sequence`,
      [
        deliveryId(row.event, theirs === undefined ? endpoint : undefined),
        endpoint ?? null,
        lane,
        row.url,
        before === undefined ? now : null,
        before?.sequence ?? null,
        sequence
      ]
    )
    // What waits there for this delivery waits for the new one.
    yield* tx.run(
      `UPDATE deliveries SET after_sequence = ? WHERE after_sequence = ? AND own_url = 1
         AND endpoint_id IS NOT (SELECT endpoint_id FROM deliveries WHERE sequence = ?)`,
      [made?.sequence ?? null, sequence, sequence]
    )
  })

/**
 * Of deliveries that have arrived, those that were to serve the payment's own URL and went elsewhere: they were sent before
 * their endpoint moved there. That URL gets its own.
 */
export const splitArrived = (sequences: ReadonlyArray<number>, now: number) =>
  Effect.gen(function* () {
    if (sequences.length === 0) return
    const tx = yield* Tx
    const rows = yield* tx.all<{ sequence: number; url: string; own: string }>(
      `SELECT d.sequence, d.url, p.webhook_url AS own FROM deliveries AS d JOIN payments AS p ON p.id = d.payment_id
       WHERE d.sequence IN (SELECT value FROM json_each(?)) AND d.own_url = 1 AND d.endpoint_id IS NOT NULL`,
      [JSON.stringify(sequences)]
    )
    for (const { own, sequence, url } of rows) if (!isSameUrl(url, own)) yield* splitOwnUrl(sequence, now)
  })

/**
 * Where the successor has got the same event at this URL or will get it, its delivery also serves the payment's own URL: no
 * receiver gets an event twice. A delivery that waits for the first attempt of the deleted endpoint's waits for the successor's.
 */
const mergeInto = (successor: EndpointId, sequences: string) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    // CROSS JOIN and INDEXED BY go by the event, which has few deliveries. SQLite would otherwise scan all deliveries of
    // the successor, once for each sequence.
    const pairs = yield* tx.all<{ merged: number; other: number; unattempted: 0 | 1 }>(
      `SELECT d.sequence AS merged, o.sequence AS other, o.status = 'pending' AND o.attempts = 0 AS unattempted
       FROM json_each(?) AS s CROSS JOIN deliveries AS d ON d.sequence = s.value
         CROSS JOIN deliveries AS o INDEXED BY deliveries_event ON o.event_id = d.event_id AND o.endpoint_id = ?
       WHERE d.own_url = 1
         AND (o.status = 'delivered' AND o.url = d.url OR o.status <> 'delivered' AND o.next_attempt_at IS NOT NULL
           OR o.after_sequence IS NOT NULL)`,
      [sequences, successor]
    )
    for (const { merged, other, unattempted } of pairs) {
      yield* tx.run("UPDATE deliveries SET own_url = sequence = ? WHERE sequence IN (?, ?)", [other, other, merged])
      if (unattempted === 0) continue
      yield* tx.run("UPDATE deliveries SET after_sequence = ? WHERE after_sequence = ?", [other, merged])
    }
  })

/**
 * The part of a delivery for an endpoint at another URL than the payment's own ends as a delivery of its own, for
 * redelivery elsewhere. It keeps the id; the attempts so far went to the payment's own URL. Gives their number.
 */
const cancelApart = (endpointUrl: string, sequences: string, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const shared = "sequence IN (SELECT value FROM json_each(?)) AND own_url = 1 AND status IN ('pending', 'failed')"
    yield* tx.run(
      `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
         attempts, created_at, done_at)
       SELECT id, event_id, payment_id, account_id, mode, endpoint_id, 0, target, ?, 'cancelled', 0, created_at, ?
       FROM deliveries WHERE ${shared}`,
      [endpointUrl, now, sequences]
    )
    const kept = yield* tx.all<{ sequence: number; event: EventId }>(
      `SELECT sequence, event_id AS event FROM deliveries WHERE ${shared}`,
      [sequences]
    )
    for (const { event, sequence } of kept) {
      yield* tx.run("UPDATE deliveries SET id = ? WHERE sequence = ?", [deliveryId(event, undefined), sequence])
    }
    return kept.length
  })

/** Cancels these deliveries, except those owed to payments' own URLs, which move to the successor. */
const handOver = (successor: Successor, sequences: string, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    return yield* tx.all<{ sequence: number; status: DeliveryStatus }>(
      `UPDATE deliveries SET
         status = iif(own_url = 1 OR status NOT IN ('pending', 'failed'), status, 'cancelled'),
         next_attempt_at = iif(own_url = 1, next_attempt_at, NULL),
         after_sequence = iif(own_url = 1, after_sequence, NULL),
         redelivery = iif(own_url = 1, redelivery, 0),
         resume_at = iif(own_url = 1, resume_at, NULL),
         done_at = iif(own_url = 1, NULL, ?),
         endpoint_id = iif(own_url = 1, ?, endpoint_id),
         target = iif(own_url = 1, ?, target)
       WHERE sequence IN (SELECT value FROM json_each(?)) RETURNING sequence, status`,
      [now, successor.endpoint ?? null, successor.lane, sequences]
    )
  })

/**
 * Empties the queue of a deleted endpoint, at most `limit` deliveries at a time; returns how many it cancelled, and whether
 * nothing is left. Deliveries that are also owed to a payment's own webhookUrl stay queued. Another endpoint of the same
 * URL signs them or, when there is none, the account's default secret.
 */
export const releaseEndpoint = (endpoint: EndpointId, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const owner = yield* EndpointsRepo.ownerOf(tx, endpoint)
    if (owner === undefined) return yield* Effect.dieMessage(`There is no endpoint ${endpoint}`)
    const now = yield* Clock.currentTimeMillis
    const handOverRows = (rows: string, count: number) =>
      Effect.gen(function* () {
        const found = yield* tx.all<{ sequence: number; url: string }>(
          `SELECT sequence, url FROM deliveries WHERE ${rows} LIMIT ?`,
          [endpoint, count]
        )
        // The endpoint may have had several URLs: each payment's own is the one that its delivery has.
        const byUrl = Object.entries(Arr.groupBy(found, ({ url }) => url))
        const handedOver = yield* Effect.forEach(
          byUrl,
          ([url, rows]) =>
            Effect.gen(function* () {
              const sequences = JSON.stringify(rows.map(({ sequence }) => sequence))
              const successor = yield* successorOf(tx, owner.owner, url)
              if (successor.endpoint !== undefined) yield* mergeInto(successor.endpoint, sequences)
              if (!isSameUrl(url, owner.url)) apart += yield* cancelApart(owner.url, sequences, now)
              return yield* handOver(successor, sequences, now)
            }),
          { concurrency: 1 }
        )
        return handedOver.flat()
      })
    let apart = 0
    // Waiting deliveries first: they wait for deliveries to the same endpoint, which must not be cancelled before them.
    const waiting = yield* handOverRows("endpoint_id = ? AND after_sequence IS NOT NULL", limit)
    const due = yield* handOverRows("target = ? AND next_attempt_at IS NOT NULL", limit - waiting.length)
    const cancelled = [...waiting, ...due].filter(({ status }) => status === "cancelled")
    yield* releaseBehind(
      cancelled.map(({ sequence }) => sequence),
      now
    )
    return { cancelled: cancelled.length + apart, isDone: waiting.length + due.length < limit }
  })
