import { Effect } from "effect"
import type { EndpointId } from "../../Domain/Ids.ts"
import { Tx } from "../../Sql.ts"
import { eventOf, type Selection, selecting } from "./DeliveryLogRepo.ts"
import { successorOf } from "./EndpointReleaseRepo.ts"

/**
 * The result of an order to send a delivery again. `due`: an attempt is under way, is due, or waits for an earlier
 * event's. `refused`: the endpoint was deleted, and the event is not owed to the payment's own webhookUrl either.
 */
export type Verdict = "ordered" | "due" | "refused"

interface Row {
  readonly sequence: number
  readonly endpoint_id: EndpointId | null
  readonly own_url: 0 | 1
  readonly target: string
  readonly redelivery: 0 | 1
  readonly next_attempt_at: number | null
  readonly after_sequence: number | null
  readonly created_at: number
  readonly endpoint_deleted: 0 | 1
}

const rows = `SELECT d.sequence, d.endpoint_id, d.own_url, d.target, d.redelivery, d.next_attempt_at, d.after_sequence,
    d.created_at, e.deleted_at IS NOT NULL AS endpoint_deleted
  FROM deliveries AS d LEFT JOIN endpoints AS e ON e.id = d.endpoint_id`

const verdictOn = (row: Row, now: number): Verdict => {
  if (row.endpoint_deleted === 1 && row.own_url === 0) return "refused"
  const isDue = row.redelivery === 1 || (row.next_attempt_at !== null && row.next_attempt_at <= now)
  return isDue || row.after_sequence !== null ? "due" : "ordered"
}

/**
 * Makes an extra attempt due now; the retry schedule goes on after it. When the endpoint was deleted but the event is
 * owed to the payment's own webhookUrl, the delivery moves to the successor, as it does when an endpoint is deleted.
 */
const order = (row: Row, now: number) =>
  Effect.gen(function* () {
    const verdict = verdictOn(row, now)
    if (verdict !== "ordered") return verdict
    const tx = yield* Tx
    const { endpoint_deleted, endpoint_id: endpoint, target } = row
    const successor = endpoint_deleted === 1 && endpoint !== null ? yield* successorOf(tx, endpoint) : undefined
    yield* tx.run(
      `UPDATE deliveries SET redelivery = 1, resume_at = next_attempt_at, next_attempt_at = ?, done_at = NULL,
         endpoint_id = ?, target = ? WHERE sequence = ?`,
      [now, (successor === undefined ? endpoint : successor.endpoint) ?? null, successor?.lane ?? target, row.sequence]
    )
    return verdict
  })

/** Orders one delivery again; undefined when there is none of that id. `now` in Unix milliseconds. */
export const redeliver = (id: string, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const row = yield* tx.get<Row>(`${rows} WHERE d.event_id = ? AND d.id = ?`, [eventOf(id), id])
    return row && (yield* order(row, now))
  })

/** The last delivery of a page: the next page begins after it. */
export interface RedeliveryCursor {
  readonly createdAt: number
  readonly sequence: number
}

/** Orders up to `limit` deliveries of a range again, oldest first, from `after` on. */
export const redeliverSome = (selection: Selection, after: RedeliveryCursor | undefined, limit: number, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const since = Math.max(selection.since, after?.createdAt ?? 0)
    const { params, where } = selecting({ ...selection, since })
    const found = yield* tx.all<Row>(
      `${rows} WHERE ${where} AND (d.created_at, d.sequence) > (?, ?) ORDER BY d.created_at, d.sequence LIMIT ?`,
      [...params, after?.createdAt ?? 0, after?.sequence ?? -1, limit]
    )
    const verdicts = yield* Effect.forEach(found, (row) => order(row, now), { concurrency: 1 })
    const count = (verdict: Verdict) => verdicts.filter((each) => each === verdict).length
    const last = found.length === limit ? found.at(-1) : undefined
    return {
      ordered: count("ordered"),
      due: count("due"),
      refused: count("refused"),
      /** Where the next page begins; undefined when the range is done. */
      next: last && { createdAt: last.created_at, sequence: last.sequence }
    }
  })
