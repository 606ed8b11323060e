import { Effect } from "effect"
import type { Mode } from "../../Domain/Chain.ts"
import type { EndpointId } from "../../Domain/Ids.ts"
import { eventLoopTurn } from "../../lib/waiting.ts"
import { countRows, type Db, oneRow } from "../../Sql.ts"

// The health of an owner's endpoints, for people. Only reads, by index. Newer is by the order of events: by their
// times, a success while the clock was ahead would hide all failures after it was set back, for as long.

/** Maximum number of counted rows. */
export const countLimit = 10_000

export interface EndpointHealth {
  /** When the newest event that has arrived did so, Unix milliseconds; undefined before the first. */
  readonly deliveredAt: number | undefined
  /** Deliveries of which an attempt has failed and none has succeeded; at most `countLimit` are counted. */
  readonly failing: number
  /** Deliveries that have an attempt ahead, or wait for an earlier event's; at most `countLimit` are counted. */
  readonly waiting: number
}

/** Maximum number of endpoints in one look-up. */
export const mostEndpoints = 1_000

/** An event on its way to an endpoint. `at` is in Unix milliseconds, by a clock that may have been wrong. */
interface EventOutcome {
  /** Of all events on their way, in the order in which they happened. */
  readonly sequence: number
  readonly at: number
}

/** The outcomes of an endpoint's newest events. */
export interface EndpointOutcome {
  readonly endpoint: EndpointId
  readonly mode: Mode
  /** The newest event that has arrived, and when it did; undefined before the first. */
  readonly delivered: EventOutcome | undefined
  /** The first event after that of which an attempt has failed, and when it happened; undefined where there is none. */
  readonly failing: EventOutcome | undefined
}

/** The outcomes of all accounts' endpoints, `mostEndpoints` at most. Requests are served between two endpoints. */
export const outcomesOf = (db: Db) =>
  Effect.flatMap(
    db.all<Pick<EndpointOutcome, "endpoint" | "mode">>(
      "SELECT id AS endpoint, mode FROM endpoints WHERE deleted_at IS NULL LIMIT ?",
      [mostEndpoints]
    ),
    Effect.forEach(
      Effect.fnUntraced(function* ({ endpoint, mode }) {
        yield* eventLoopTurn
        const delivered = yield* db.get<EventOutcome>(
          `SELECT sequence, coalesce(done_at, created_at) AS at FROM deliveries INDEXED BY deliveries_arrived
           WHERE endpoint_id = ? AND status = 'delivered' ORDER BY sequence DESC LIMIT 1`,
          [endpoint]
        )
        const failing = yield* db.get<EventOutcome>(
          `SELECT sequence, created_at AS at FROM deliveries INDEXED BY deliveries_not_arrived
           WHERE endpoint_id = ? AND status IN ('pending', 'failed') AND attempts + redeliveries > 0 AND sequence > ?
           ORDER BY sequence LIMIT 1`,
          [endpoint, delivered?.sequence ?? 0]
        )
        const outcome: EndpointOutcome = { endpoint, mode, delivered, failing }
        return outcome
      }),
      { concurrency: 1 }
    )
  )

export const healthOf = (db: Db, endpoint: EndpointId) =>
  Effect.map(
    oneRow<EndpointHealth>(
      db,
      `SELECT
         (SELECT coalesce(done_at, created_at) FROM deliveries INDEXED BY deliveries_arrived
          WHERE endpoint_id = ? AND status = 'delivered' ORDER BY sequence DESC LIMIT 1) AS deliveredAt,
         (SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY deliveries_not_arrived
          WHERE endpoint_id = ? AND status IN ('pending', 'failed') AND attempts + redeliveries > 0
          LIMIT ${countLimit})) AS failing,
         (SELECT count(*) FROM (
            SELECT 1 FROM deliveries WHERE target = ? AND next_attempt_at IS NOT NULL UNION ALL
            SELECT 1 FROM deliveries INDEXED BY deliveries_waiting WHERE endpoint_id = ? AND after_sequence IS NOT NULL
            LIMIT ${countLimit})) AS waiting`,
      [endpoint, endpoint, endpoint, endpoint]
    ),
    (row): EndpointHealth => row ?? { deliveredAt: undefined, failing: 0, waiting: 0 }
  )

/**
 * How many deliveries deleting the endpoint would cancel: those that have not arrived and have an attempt ahead, except what
 * is also owed to a payment's own webhookUrl. At most `countLimit` are counted.
 */
export const wouldCancel = (db: Db, endpoint: EndpointId) =>
  countRows(
    db,
    `SELECT 1 FROM deliveries WHERE target = ? AND next_attempt_at IS NOT NULL AND own_url = 0
     AND status IN ('pending', 'failed') UNION ALL
     SELECT 1 FROM deliveries INDEXED BY deliveries_waiting WHERE endpoint_id = ? AND after_sequence IS NOT NULL
     AND own_url = 0
     LIMIT ${countLimit}`,
    [endpoint, endpoint]
  )
