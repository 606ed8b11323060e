import { Clock, Effect } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import type { DeliveryStatus } from "../../Domain/DeliveryObject.ts"
import type { EndpointId } from "../../Domain/Ids.ts"
import { allValues, Tx } from "../../Sql.ts"
import { ownLane } from "../transport/deliveryTargets.ts"
import { releaseBehind } from "./DeliveriesRepo.ts"

/**
 * Of these deliveries of a deleted endpoint, those also owed to their payments' own URLs go there from now on, signed with
 * the account's default secret.
 */
export const moveToOwnUrl = (sequences: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const owed = yield* tx.all<Owner & { sequence: number; url: string }>(
      `SELECT d.sequence, d.account_id AS account, d.mode, p.webhook_url AS url
       FROM deliveries AS d JOIN payments AS p ON p.id = d.payment_id
       WHERE d.sequence IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND d.own_url = 1`,
      [JSON.stringify(sequences)]
    )
    for (const row of owed) {
      yield* tx.run("UPDATE deliveries SET endpoint_id = NULL, target = ?, url = ? WHERE sequence = ?", [
        ownLane(row, row.url),
        row.url,
        row.sequence
      ])
    }
  })

/**
 * Empties the queue of a deleted endpoint, at most `limit` deliveries at a time; returns how many it cancelled, and whether
 * nothing is left. Deliveries that are also owed to a payment's own webhookUrl stay queued.
 */
export const releaseEndpoint = (endpoint: EndpointId, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const now = yield* Clock.currentTimeMillis
    const release = (rows: string, count: number) =>
      Effect.gen(function* () {
        const found = yield* allValues<number>(tx, `SELECT sequence FROM deliveries WHERE ${rows} LIMIT ?`, [
          endpoint,
          count
        ])
        yield* moveToOwnUrl(found)
        const ended = yield* tx.all<{ sequence: number; status: DeliveryStatus }>(
          `UPDATE deliveries SET status = iif(status IN ('pending', 'failed'), 'cancelled', status),
             next_attempt_at = NULL, after_sequence = NULL, redelivery = 0, resume_at = NULL, done_at = ?
           WHERE sequence IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND own_url = 0 RETURNING sequence, status`,
          [now, JSON.stringify(found)]
        )
        const cancelled = ended.flatMap(({ sequence, status }) => (status === "cancelled" ? [sequence] : []))
        return { found: found.length, cancelled }
      })
    // Waiting deliveries first: they wait for deliveries to the same endpoint, which must not be cancelled before them.
    const waiting = yield* release("endpoint_id = ? AND after_sequence IS NOT NULL", limit)
    const due = yield* release("target = ? AND next_attempt_at IS NOT NULL", limit - waiting.found)
    const cancelled = [...waiting.cancelled, ...due.cancelled]
    yield* releaseBehind(cancelled, now)
    return { cancelled: cancelled.length, isDone: waiting.found + due.found < limit }
  })
