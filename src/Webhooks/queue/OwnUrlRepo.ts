import { Effect } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import type { DeliveryStatus } from "../../Domain/DeliveryObject.ts"
import type { EndpointId, EventId } from "../../Domain/Ids.ts"
import { type Db, Tx } from "../../Sql.ts"
import { isSameUrl, ownLane } from "../transport/deliveryTargets.ts"
import { deliveryId } from "./DeliveriesRepo.ts"
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
    const endpoint = endpoints.find((each) => isSameUrl(each.url, url))?.id
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
