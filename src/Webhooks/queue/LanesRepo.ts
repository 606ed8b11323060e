import { Effect } from "effect"
import { type Db, type Param, Tx } from "../../Sql.ts"

/** A target's place in the queue of targets. */
interface LaneRef {
  readonly target: string
  /** Unix milliseconds. */
  readonly nextAt: number
}

/** The lanes of a class whose turn comes first. Those that are due have waited longest since their last turn. */
const first = (db: Db, slow: boolean, limit: number) =>
  Effect.map(
    db.all<{ target: string; next_at: number }>(
      "SELECT target, next_at FROM lanes WHERE slow = ? ORDER BY next_at LIMIT ?",
      [slow ? 1 : 0, limit]
    ),
    (rows): ReadonlyArray<LaneRef> => rows.map((row) => ({ target: row.target, nextAt: row.next_at }))
  )

/** The accounts that have a lane that is due. From one account to the next by index, past all of its lanes. */
export const dueAccounts = (db: Db, now: number) =>
  Effect.map(
    db.all<{ account: string }>(
      `WITH RECURSIVE a (account) AS (
         SELECT min(account_id) FROM lanes UNION ALL
         SELECT (SELECT min(account_id) FROM lanes WHERE account_id > a.account) FROM a WHERE a.account IS NOT NULL)
       SELECT account FROM a WHERE account IS NOT NULL AND (
         EXISTS (SELECT 1 FROM lanes WHERE account_id = account AND slow = 0 AND next_at <= ?)
         OR EXISTS (SELECT 1 FROM lanes WHERE account_id = account AND slow = 1 AND next_at <= ?))`,
      [now, now]
    ),
    (rows): ReadonlyArray<string> => rows.map(({ account }) => account)
  )

/** Lanes of an account's, of one class, that are due: the one first that has waited longest since its last turn. */
export const dueOf = (db: Db, account: string, slow: boolean, now: number, limit: number) =>
  Effect.map(
    db.all<{ target: string }>(
      "SELECT target FROM lanes WHERE account_id = ? AND slow = ? AND next_at <= ? ORDER BY next_at LIMIT ?",
      [account, slow ? 1 : 0, now, limit]
    ),
    (rows): ReadonlyArray<string> => rows.map(({ target }) => target)
  )

/** When the first of the lanes will be due that are not yet, Unix milliseconds. */
export const firstAfter = (db: Db, now: number) =>
  Effect.map(
    db.get<{ at: number | null }>(
      `SELECT min(at) AS at FROM (
         SELECT min(next_at) AS at FROM lanes WHERE slow = 0 AND next_at > ? UNION ALL
         SELECT min(next_at) FROM lanes WHERE slow = 1 AND next_at > ?)`,
      [now, now]
    ),
    (row) => row?.at ?? undefined
  )

/** Those of `targets` that are due, longest first, however many others are. */
export const dueAmong = (db: Db, targets: ReadonlyArray<string>, now: number, limit: number) =>
  Effect.map(
    db.all<{ target: string }>(
      `SELECT l.target FROM json_each(?) AS t CROSS JOIN lanes AS l ON l.target = t.value
       WHERE l.slow = 0 AND l.next_at <= ? ORDER BY l.next_at LIMIT ?`,
      [JSON.stringify(targets), now, limit]
    ),
    (rows): ReadonlyArray<string> => rows.map(({ target }) => target)
  )

/** A delivery's place in its lane. */
export interface Place {
  readonly sequence: number
  /** Unix milliseconds. */
  readonly nextAttemptAt: number
  /** Somebody ordered it besides the schedule. */
  readonly isRedelivery: boolean
}

/** Each has an index of its own order, so that a long range of one hides nothing of the other. */
const headOf = (db: Db, target: string, isRedelivery: boolean, limit: number) =>
  Effect.map(
    db.all<{ sequence: number; next_attempt_at: number }>(
      `SELECT sequence, next_attempt_at FROM deliveries
       WHERE target = ? AND redelivery = ? AND next_attempt_at IS NOT NULL ORDER BY next_attempt_at, sequence LIMIT ?`,
      [target, isRedelivery ? 1 : 0, limit]
    ),
    (rows) => rows.map((row): Place => ({ sequence: row.sequence, nextAttemptAt: row.next_attempt_at, isRedelivery }))
  )

/**
 * The deliveries of a lane that come first: those that are due, what was ordered again behind all others, and then those
 * that are not due yet.
 */
export const head = (db: Db, target: string, limit: number, now: number) =>
  Effect.gen(function* () {
    const places = [...(yield* headOf(db, target, false, limit)), ...(yield* headOf(db, target, true, limit))]
    const due = places.filter(({ nextAttemptAt }) => nextAttemptAt <= now)
    const later = places.filter(({ nextAttemptAt }) => nextAttemptAt > now)
    return [...due, ...later.sort((a, b) => a.nextAttemptAt - b.nextAttemptAt)].slice(0, limit)
  })

/** The first time that something of a target is due, in SQL. */
const firstOf = (target: string) =>
  `(SELECT min(at) FROM (
     SELECT min(next_attempt_at) AS at FROM deliveries
     WHERE target = ${target} AND redelivery = 0 AND next_attempt_at IS NOT NULL UNION ALL
     SELECT min(next_attempt_at) FROM deliveries
     WHERE target = ${target} AND redelivery = 1 AND next_attempt_at IS NOT NULL))`

/** Ends a lane's turn: it is next when its first delivery is due, after all that are due already, or gone when empty. */
export const endTurn = (target: string, slow: boolean, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const row = yield* tx.get<{ at: number | null }>(`SELECT ${firstOf("?")} AS at`, [target, target])
    const next = row?.at ?? undefined
    if (next === undefined) return yield* tx.run("DELETE FROM lanes WHERE target = ?", [target])
    yield* tx.run("UPDATE lanes SET next_at = ?, slow = ? WHERE target = ?", [
      Math.max(now, next),
      slow ? 1 : 0,
      target
    ])
  })

/** Counting stops here, and so many lanes of a kind are looked at. */
const countLimit = 10_000
const laneLimit = 1_000

/**
 * What is due, of the 1,000 lanes of each class that have waited longest since their last turn: there are more only
 * where a great many receivers fail.
 */
export interface Backlog {
  /** Deliveries whose time has come, those that are being attempted included; no more than 10,000 are counted. */
  readonly due: number
  /** How long ago the time of the oldest of them came, 0 when there is none. Milliseconds. */
  readonly oldestDueMillis: number
}

export const backlog = (db: Db, now: number) =>
  Effect.gen(function* () {
    const lanes = [...(yield* first(db, false, laneLimit)), ...(yield* first(db, true, laneLimit))]
    const targets = JSON.stringify(lanes.filter(({ nextAt }) => nextAt <= now).map(({ target }) => target))
    const oldest = yield* db.get<{ at: number | null }>(
      `SELECT min(${firstOf("l.value")}) AS at FROM json_each(?) AS l`,
      [targets]
    )
    // CROSS JOIN: the lanes that are due come first. SQLite would look through all deliveries, those of tomorrow too.
    const counted = yield* db.get<{ due: number }>(
      `SELECT count(*) AS due FROM (
         SELECT 1 FROM json_each(?) AS l CROSS JOIN deliveries AS d ON d.target = l.value
         WHERE d.redelivery IN (0, 1) AND d.next_attempt_at <= ? LIMIT ?)`,
      [targets, now, countLimit]
    )
    const at = oldest?.at ?? now
    const found: Backlog = { due: counted?.due ?? 0, oldestDueMillis: Math.max(0, now - at) }
    return found
  })

/** Endpoints whose lanes are not empty; no more than 1,000. */
export const endpointLanes = (db: Db) =>
  Effect.map(
    db.all<{ target: string }>("SELECT target FROM lanes WHERE target GLOB 'wh_*' LIMIT ?", [laneLimit]),
    (rows): ReadonlyArray<string> => rows.map(({ target }) => target)
  )

/** Counts those that have an attempt ahead, and those behind an earlier event; whose they are, in SQL. */
const countWaiting = (db: Db, scheduled: string, behind: string, params: ReadonlyArray<Param>) =>
  Effect.map(
    db.get<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT 1 FROM deliveries WHERE ${scheduled} AND next_attempt_at IS NOT NULL UNION ALL
         SELECT 1 FROM deliveries INDEXED BY deliveries_waiting WHERE ${behind} AND after_sequence IS NOT NULL LIMIT ?)`,
      [...params, countLimit]
    ),
    (row) => row?.count ?? 0
  )

/**
 * Deliveries to an endpoint that an attempt is ahead of, due or not, and those whose turn comes after an earlier event's;
 * no more than 10,000 are counted.
 */
export const waiting = (db: Db, endpoint: string) =>
  countWaiting(db, "target = ?", "endpoint_id = ?", [endpoint, endpoint])

/** The same of all deliveries together that go to no endpoint, but to a payment's own webhookUrl. */
export const waitingAtUrls = (db: Db) => countWaiting(db, "target GLOB 'https:*'", "endpoint_id IS NULL", [])
