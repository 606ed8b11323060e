import { Effect } from "effect"
import type { EndpointId, EventId } from "../../Domain/Ids.ts"
import type { Owner } from "../../Domain/Owner.ts"
import type { DeliveryStatus } from "../../Domain/Webhook.ts"
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
}

/**
 * Gives the payment's own URL a delivery of its own, due at `now`, Unix milliseconds: the endpoint that this delivery goes
 * to has got another URL since. Where another endpoint has the former URL, its delivery of the event serves both.
 */
export const splitOwnUrl = (sequence: number, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const row = yield* tx.get<OwnRow>(
      `SELECT event_id AS event, account_id AS account, mode, url FROM deliveries
       WHERE sequence = ? AND own_url = 1 AND endpoint_id IS NOT NULL`,
      [sequence]
    )
    if (row === undefined) return
    yield* tx.run("UPDATE deliveries SET own_url = 0 WHERE sequence = ?", [sequence])
    const { endpoint, lane } = yield* successorOf(tx, row, row.url)
    const theirs = yield* tx.get<{ sequence: number; status: DeliveryStatus; url: string }>(
      "SELECT sequence, status, url FROM deliveries WHERE event_id = ? AND endpoint_id = ? ORDER BY status = 'delivered'",
      [row.event, endpoint ?? ""]
    )
    // One that that endpoint got at another URL serves nobody here: it gets a second one.
    const isElsewhere = theirs?.status === "delivered" && !isSameUrl(theirs.url, row.url)
    if (theirs !== undefined && !isElsewhere) {
      yield* tx.run("UPDATE deliveries SET own_url = 1 WHERE sequence = ?", [theirs.sequence])
      return
    }
    yield* tx.run(
      `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
         attempts, next_attempt_at, created_at)
       SELECT ?, event_id, payment_id, account_id, mode, ?, 1, ?, url, 'pending', 0, ?, created_at
       FROM deliveries WHERE sequence = ?`,
      [deliveryId(row.event, isElsewhere ? undefined : endpoint), endpoint ?? null, lane, now, sequence]
    )
  })
