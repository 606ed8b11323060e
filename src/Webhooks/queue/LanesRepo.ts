/**
 * The store's table of lanes: one row for each target with deliveries ahead, with the time of its next turn. Due lanes
 * are in the order in which they had their last turn. `DueQueue` reads due accounts, lanes and deliveries here and ends
 * turns; metrics and health read the backlog. Everything is read by index, so that a long backlog costs no more than a
 * short one.
 */
import { Effect } from "effect"
import { allValues, countRows, type Db, execute, oneValue, type Param, Tx } from "../../Sql.ts"

/** A lane and the time of its next turn. */
interface LaneRef {
  readonly target: string
  /** Unix milliseconds. */
  readonly nextAt: number
}

/** The slow lanes, or the others, whose turn comes first. Of the due ones: those that have waited longest. */
const firstLanes = (db: Db, slow: boolean, limit: number) =>
  db.all<LaneRef>("SELECT target, next_at AS nextAt FROM lanes WHERE slow = ? ORDER BY next_at LIMIT ?", [
    slow ? 1 : 0,
    limit
  ])

/** The accounts with a due lane. Skips from account to account by index, past all lanes of each. */
export const dueAccounts = (db: Db, now: number) =>
  allValues<string>(
    db,
    `WITH RECURSIVE a (account) AS (
       SELECT min(account_id) FROM lanes UNION ALL
       SELECT (SELECT min(account_id) FROM lanes WHERE account_id > a.account) FROM a WHERE a.account IS NOT NULL)
     SELECT account FROM a WHERE account IS NOT NULL AND (
       EXISTS (SELECT 1 FROM lanes WHERE account_id = account AND slow = 0 AND next_at <= ?)
       OR EXISTS (SELECT 1 FROM lanes WHERE account_id = account AND slow = 1 AND next_at <= ?))`,
    [now, now]
  )

/** A lane with something due. */
export interface DueLane {
  readonly target: string
  /** Its last attempt took long. */
  readonly slow: boolean
}

/** An account's due lanes, slow ones or the others: the one that has waited longest since its last turn is first. */
export const dueOf = (db: Db, account: string, slow: boolean, now: number, limit: number) =>
  Effect.map(
    allValues<string>(
      db,
      "SELECT target FROM lanes WHERE account_id = ? AND slow = ? AND next_at <= ? ORDER BY next_at LIMIT ?",
      [account, slow ? 1 : 0, now, limit]
    ),
    (targets) => targets.map((target): DueLane => ({ target, slow }))
  )

/** When the next lane becomes due, in Unix milliseconds; undefined when none is planned after `now`. */
export const firstAfter = (db: Db, now: number) =>
  oneValue<number>(
    db,
    `SELECT min(at) FROM (
       SELECT min(next_at) AS at FROM lanes WHERE slow = 0 AND next_at > ? UNION ALL
       SELECT min(next_at) FROM lanes WHERE slow = 1 AND next_at > ?)`,
    [now, now]
  )

/** The due lanes among `targets` that are not slow: the one that has waited longest is first. */
export const dueAmong = (db: Db, targets: ReadonlyArray<string>, now: number, limit: number) =>
  Effect.map(
    allValues<string>(
      db,
      `SELECT l.target FROM json_each(?) AS t CROSS JOIN lanes AS l ON l.target = t.value
       WHERE l.slow = 0 AND l.next_at <= ? ORDER BY l.next_at LIMIT ?`,
      [JSON.stringify(targets), now, limit]
    ),
    (due) => due.map((target): DueLane => ({ target, slow: false }))
  )

/** The first deliveries to a target that have an attempt ahead, due or not: scheduled ones, or redeliveries. */
export const head = (db: Db, target: string, isRedelivery: boolean, limit: number) =>
  db.all<{ readonly sequence: number; readonly nextAttemptAt: number }>(
    `SELECT sequence, next_attempt_at AS nextAttemptAt FROM deliveries
     WHERE target = ? AND redelivery = ? AND next_attempt_at IS NOT NULL ORDER BY next_attempt_at, sequence LIMIT ?`,
    [target, isRedelivery ? 1 : 0, limit]
  )

/** When the first delivery to a target is due, in SQL. */
export const firstDueAt = (target: string) =>
  `(SELECT min(at) FROM (
     SELECT min(next_attempt_at) AS at FROM deliveries
     WHERE target = ${target} AND redelivery = 0 AND next_attempt_at IS NOT NULL UNION ALL
     SELECT min(next_attempt_at) FROM deliveries
     WHERE target = ${target} AND redelivery = 1 AND next_attempt_at IS NOT NULL))`

/**
 * Ends a lane's turn. Its next turn, which is returned, is when its first delivery is due, after the lanes due by now. Empty: it
 * is deleted.
 */
export const endTurn = (target: string, slow: boolean, now: number) =>
  Effect.gen(function* () {
    const next = yield* oneValue<number>(yield* Tx, `SELECT ${firstDueAt("?")}`, [target, target])
    if (next === undefined) yield* execute("DELETE FROM lanes WHERE target = ?", [target])
    else {
      const row = [Math.max(now, next), slow ? 1 : 0, target]
      yield* execute("UPDATE lanes SET next_at = ?, slow = ? WHERE target = ?", row)
    }
    return next ?? Number.POSITIVE_INFINITY
  })

/** Counting stops at `countLimit` deliveries, and reads at most `laneLimit` lanes of each class. */
export const countLimit = 10_000
const laneLimit = 1_000

/**
 * Due deliveries of the 1,000 slow lanes and the 1,000 others that have waited longest since their last turn. More
 * lanes are due at once only when a great many receivers fail.
 */
export interface Backlog {
  /** Due deliveries, including those whose attempt is under way. At most 10,000 are counted. */
  readonly due: number
  /** Age of the oldest due delivery, 0 without one. Milliseconds. */
  readonly oldestDueMillis: number
}

export const backlog = (db: Db, now: number) =>
  Effect.gen(function* () {
    const lanes = [...(yield* firstLanes(db, false, laneLimit)), ...(yield* firstLanes(db, true, laneLimit))]
    const targets = JSON.stringify(lanes.filter(({ nextAt }) => nextAt <= now).map(({ target }) => target))
    const select = `SELECT min(${firstDueAt("l.value")}) FROM json_each(?) AS l`
    const oldest = (yield* oneValue<number>(db, select, [targets])) ?? now
    // CROSS JOIN fixes the join order: due lanes first. SQLite would otherwise scan all deliveries, future ones too.
    const due = yield* countRows(
      db,
      `SELECT 1 FROM json_each(?) AS l CROSS JOIN deliveries AS d ON d.target = l.value
       WHERE d.redelivery IN (0, 1) AND d.next_attempt_at <= ? LIMIT ?`,
      [targets, now, countLimit]
    )
    return { due, oldestDueMillis: Math.max(0, now - oldest) } satisfies Backlog
  })

/** Endpoints with a delivery ahead, at most 1,000. */
export const endpointLanes = (db: Db) =>
  allValues<string>(db, "SELECT target FROM lanes WHERE target GLOB 'wh_*' LIMIT ?", [laneLimit])

/**
 * Counts deliveries that have an attempt ahead (SQL condition `scheduled`) and those that wait for an earlier event's
 * (condition `blocked`).
 */
export const countWaiting = (db: Db, scheduled: string, blocked: string, params: ReadonlyArray<Param>) =>
  countRows(
    db,
    `SELECT 1 FROM deliveries WHERE ${scheduled} AND next_attempt_at IS NOT NULL UNION ALL
     SELECT 1 FROM deliveries INDEXED BY deliveries_waiting WHERE ${blocked} AND after_sequence IS NOT NULL LIMIT ?`,
    [...params, countLimit]
  )

/**
 * Deliveries to an endpoint that have an attempt ahead, due or not, or wait for an earlier event's. At most 10,000 are
 * counted.
 */
export const waiting = (db: Db, endpoint: string) =>
  countWaiting(db, "target = ?", "endpoint_id = ?", [endpoint, endpoint])

/** The same for all deliveries that go to a payment's own webhookUrl and not to an endpoint. */
export const waitingAtUrls = (db: Db) => countWaiting(db, "target GLOB 'https:*'", "endpoint_id IS NULL", [])
