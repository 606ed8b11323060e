import { Effect } from "effect"
import type { Mode } from "../../Domain/Chain.ts"
import type { EndpointId } from "../../Domain/Ids.ts"
import { eventLoopTurn } from "../../Sql/eventLoopTurn.ts"
import type { Db } from "../../Sql.ts"

// How an owner's endpoints are doing, for people. Only reads, by index.

/** Most rows that are counted of anything. */
export const countLimit = 10_000

export interface EndpointHealth {
  /** When the newest event that has arrived did so, Unix milliseconds; undefined before the first. */
  readonly deliveredAt: number | undefined
  /** Deliveries of which an attempt has failed and none has succeeded; at most `countLimit` are counted. */
  readonly failing: number
  /** Deliveries that have an attempt ahead, or wait for an earlier event's; at most `countLimit` are counted. */
  readonly waiting: number
}

/** Most endpoints that are looked at together. */
export const mostEndpoints = 1_000

/** How the newest events of an endpoint fare. Times in Unix milliseconds. */
export interface EndpointOutcome {
  readonly endpoint: EndpointId
  readonly mode: Mode
  /** When the newest event that has arrived did so; undefined before the first. */
  readonly deliveredAt: number | undefined
  /** When the first event after that happened of which an attempt has failed; undefined where there is none. */
  readonly failingSince: number | undefined
}

interface EndpointRow {
  readonly id: EndpointId
  readonly mode: Mode
}

/** The outcomes of all accounts' endpoints, `mostEndpoints` at most. Requests are served between two endpoints. */
export const outcomesOf = (db: Db) =>
  Effect.flatMap(
    db.all<EndpointRow>("SELECT id, mode FROM endpoints WHERE deleted_at IS NULL LIMIT ?", [mostEndpoints]),
    Effect.forEach(
      Effect.fnUntraced(function* ({ id, mode }) {
        yield* eventLoopTurn
        const arrived = yield* db.get<{ at: number; created_at: number }>(
          `SELECT coalesce(done_at, created_at) AS at, created_at FROM deliveries
           WHERE endpoint_id = ? AND status = 'delivered' ORDER BY created_at DESC LIMIT 1`,
          [id]
        )
        const failing = yield* db.get<{ created_at: number }>(
          `SELECT created_at FROM deliveries INDEXED BY deliveries_failing_endpoint
           WHERE endpoint_id = ? AND status IN ('pending', 'failed') AND attempts + redeliveries > 0 AND created_at > ?
           ORDER BY created_at LIMIT 1`,
          [id, arrived?.created_at ?? 0]
        )
        const outcome: EndpointOutcome = {
          endpoint: id,
          mode,
          deliveredAt: arrived?.at,
          failingSince: failing?.created_at
        }
        return outcome
      }),
      { concurrency: 1 }
    )
  )

interface HealthRow {
  readonly delivered_at: number | null
  readonly failing: number
  readonly waiting: number
}

export const healthOf = (db: Db, endpoint: EndpointId) =>
  Effect.map(
    db.get<HealthRow>(
      `SELECT
         (SELECT coalesce(done_at, created_at) FROM deliveries
          WHERE endpoint_id = ? AND status = 'delivered' ORDER BY created_at DESC, sequence DESC LIMIT 1) AS delivered_at,
         (SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY deliveries_failing_endpoint
          WHERE endpoint_id = ? AND status IN ('pending', 'failed') AND attempts + redeliveries > 0
          LIMIT ${countLimit})) AS failing,
         (SELECT count(*) FROM (
            SELECT 1 FROM deliveries WHERE target = ? AND next_attempt_at IS NOT NULL UNION ALL
            SELECT 1 FROM deliveries INDEXED BY deliveries_waiting WHERE endpoint_id = ? AND after_sequence IS NOT NULL
            LIMIT ${countLimit})) AS waiting`,
      [endpoint, endpoint, endpoint, endpoint]
    ),
    (row): EndpointHealth => ({
      deliveredAt: row?.delivered_at ?? undefined,
      failing: row?.failing ?? 0,
      waiting: row?.waiting ?? 0
    })
  )

/**
 * How many deliveries deleting the endpoint would cancel: those that have not arrived and have an attempt ahead, except what
 * is also owed to a payment's own webhookUrl. At most `countLimit` are counted.
 */
export const wouldCancel = (db: Db, endpoint: EndpointId) =>
  Effect.map(
    db.get<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT 1 FROM deliveries WHERE target = ? AND next_attempt_at IS NOT NULL AND own_url = 0
           AND status IN ('pending', 'failed') UNION ALL
         SELECT 1 FROM deliveries INDEXED BY deliveries_waiting WHERE endpoint_id = ? AND after_sequence IS NOT NULL
           AND own_url = 0
         LIMIT ${countLimit})`,
      [endpoint, endpoint]
    ),
    (row) => row?.count ?? 0
  )
