import { Clock, Effect } from "effect"
import type { EndpointId } from "../../Domain/Ids.ts"
import type { DeliveryStatus } from "../../Domain/Webhook.ts"
import { type Db, Tx } from "../../Sql.ts"
import { isSameUrl, ownLane } from "../transport/targets.ts"
import { releaseBehind } from "./DeliveriesRepo.ts"
import * as EndpointsRepo from "./EndpointsRepo.ts"

/** Who sends on what payments' own webhookUrls are owed, after their endpoint was deleted. */
export interface Successor {
  /** Another endpoint of the same URL; undefined: there is none, and the account's default secret signs. */
  readonly endpoint: EndpointId | undefined
  readonly lane: string
}

/** The oldest other endpoint of a deleted one's URL, as an event's target is chosen too. */
export const successorOf = (db: Db, deleted: EndpointId) =>
  Effect.gen(function* () {
    const was = yield* EndpointsRepo.targetOf(db, deleted)
    if (was === undefined) return yield* Effect.dieMessage(`There is no endpoint ${deleted}`)
    const endpoint = (yield* EndpointsRepo.list(db, was)).find(({ url }) => isSameUrl(url, was.url))?.id
    const successor: Successor = { endpoint, lane: endpoint ?? ownLane(was, was.url) }
    return successor
  })

/**
 * What the successor has been sent or will be sent of the same event pays the debt to the payment's own URL: nobody is to
 * get it twice. What waits for such a delivery's first attempt waits for the successor's.
 */
const yieldTo = (successor: EndpointId, sequences: string) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    // An event has few deliveries. SQLite would look through all that the successor ever had, once for each.
    const pairs = yield* tx.all<{ yielding: number; other: number; unattempted: 0 | 1 }>(
      `SELECT d.sequence AS yielding, o.sequence AS other, o.status = 'pending' AND o.attempts = 0 AS unattempted
       FROM json_each(?) AS s CROSS JOIN deliveries AS d ON d.sequence = s.value
         CROSS JOIN deliveries AS o INDEXED BY deliveries_event ON o.event_id = d.event_id AND o.endpoint_id = ?
       WHERE d.own_url = 1 AND (o.status = 'delivered' OR o.next_attempt_at IS NOT NULL OR o.after_sequence IS NOT NULL)`,
      [sequences, successor]
    )
    for (const { other, unattempted, yielding } of pairs) {
      yield* tx.run("UPDATE deliveries SET own_url = sequence = ? WHERE sequence IN (?, ?)", [other, other, yielding])
      if (unattempted === 0) continue
      yield* tx.run("UPDATE deliveries SET after_sequence = ? WHERE after_sequence = ?", [other, yielding])
    }
  })

/** Cancels these deliveries, but for what is owed to payments' own URLs: the successor sends that. */
const handOver = (successor: Successor, sequences: string, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    if (successor.endpoint !== undefined) yield* yieldTo(successor.endpoint, sequences)
    return yield* tx.all<{ sequence: number; status: DeliveryStatus }>(
      `UPDATE deliveries SET
         status = iif(own_url = 1 OR status <> 'pending', status, 'cancelled'),
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
 * Empties the queue of a deleted endpoint, at most `limit` deliveries at a time, and tells whether there was nothing
 * left. What is owed to a payment's own webhookUrl too stays queued, for another endpoint of the same URL or, where there
 * is none, for the account's default secret to sign.
 */
export const releaseEndpoint = (endpoint: EndpointId, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const successor = yield* successorOf(tx, endpoint)
    const now = yield* Clock.currentTimeMillis
    const change = (rows: string, count: number) =>
      Effect.gen(function* () {
        const found = yield* tx.all<{ sequence: number }>(`SELECT sequence FROM deliveries WHERE ${rows} LIMIT ?`, [
          endpoint,
          count
        ])
        return yield* handOver(successor, JSON.stringify(found.map(({ sequence }) => sequence)), now)
      })
    // Those that wait come first: they wait for deliveries to the same endpoint, and must not be left without.
    const waiting = yield* change("endpoint_id = ? AND after_sequence IS NOT NULL", limit)
    const due = yield* change("target = ? AND next_attempt_at IS NOT NULL", limit - waiting.length)
    const cancelled = [...waiting, ...due].filter(({ status }) => status === "cancelled")
    yield* releaseBehind(
      cancelled.map(({ sequence }) => sequence),
      now
    )
    return waiting.length + due.length < limit
  })
