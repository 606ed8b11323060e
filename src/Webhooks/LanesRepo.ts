import { Effect } from "effect"
import { type Db, Tx } from "../Sql.ts"

/** A target's place in the queue of targets. */
export interface LaneRef {
  readonly target: string
  /** Unix milliseconds. */
  readonly nextAt: number
}

/** The lanes of a class whose turn comes first. Those that are due have waited longest since their last turn. */
export const first = (db: Db, slow: boolean, limit: number) =>
  Effect.map(
    db.all<{ target: string; next_at: number }>(
      "SELECT target, next_at FROM lanes WHERE slow = ? ORDER BY next_at LIMIT ?",
      [slow ? 1 : 0, limit]
    ),
    (rows): ReadonlyArray<LaneRef> => rows.map((row) => ({ target: row.target, nextAt: row.next_at }))
  )

/** A delivery's place in its lane. */
export interface Place {
  readonly sequence: number
  /** Unix milliseconds. */
  readonly nextAttemptAt: number
}

/** The deliveries of a lane that come first, due or not. */
export const head = (db: Db, target: string, limit: number) =>
  Effect.map(
    db.all<{ sequence: number; next_attempt_at: number }>(
      `SELECT sequence, next_attempt_at FROM deliveries WHERE target = ? AND next_attempt_at IS NOT NULL
       ORDER BY next_attempt_at, sequence LIMIT ?`,
      [target, limit]
    ),
    (rows): ReadonlyArray<Place> => rows.map((row) => ({ sequence: row.sequence, nextAttemptAt: row.next_attempt_at }))
  )

/** Ends a lane's turn: it is next when its first delivery is due, after all that are due already, or gone when empty. */
export const endTurn = (target: string, slow: boolean, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const row = yield* tx.get<{ next_attempt_at: number | null }>(
      "SELECT min(next_attempt_at) AS next_attempt_at FROM deliveries WHERE target = ? AND next_attempt_at IS NOT NULL",
      [target]
    )
    const next = row?.next_attempt_at ?? undefined
    if (next === undefined) return yield* tx.run("DELETE FROM lanes WHERE target = ?", [target])
    yield* tx.run("UPDATE lanes SET next_at = ?, slow = ? WHERE target = ?", [
      Math.max(now, next),
      slow ? 1 : 0,
      target
    ])
  })

/** Counting stops here. */
const countLimit = 10_000

export interface Backlog {
  /** Deliveries whose time has come, those that are being attempted included; no more than 10,000 are counted. */
  readonly due: number
  /** How long ago the time of the oldest of them came, 0 when there is none. Milliseconds. */
  readonly oldestDueMillis: number
}

export const backlog = (db: Db, now: number) =>
  Effect.gen(function* () {
    const oldest = yield* db.get<{ at: number | null }>(
      `SELECT min((SELECT min(next_attempt_at) FROM deliveries WHERE target = l.target AND next_attempt_at IS NOT NULL)) AS at
       FROM lanes AS l WHERE slow IN (0, 1) AND next_at <= ?`,
      [now]
    )
    // CROSS JOIN: the lanes that are due come first. SQLite would look through all deliveries, those of tomorrow too.
    const counted = yield* db.get<{ due: number }>(
      `SELECT count(*) AS due FROM (
         SELECT 1 FROM lanes AS l CROSS JOIN deliveries AS d ON d.target = l.target
         WHERE l.slow IN (0, 1) AND l.next_at <= ? AND d.next_attempt_at IS NOT NULL AND d.next_attempt_at <= ? LIMIT ?)`,
      [now, now, countLimit]
    )
    const at = oldest?.at ?? now
    const found: Backlog = { due: counted?.due ?? 0, oldestDueMillis: Math.max(0, now - at) }
    return found
  })

/** Lanes of endpoints that are looked at. */
const laneLimit = 1_000

/** Endpoints whose lanes are not empty; no more than 1,000. */
export const endpointLanes = (db: Db) =>
  Effect.map(
    db.all<{ target: string }>("SELECT target FROM lanes WHERE target GLOB 'wh_*' LIMIT ?", [laneLimit]),
    (rows): ReadonlyArray<string> => rows.map(({ target }) => target)
  )

/** Deliveries of a lane that an attempt is ahead of, due or not; no more than 10,000 are counted. */
export const waiting = (db: Db, target: string) =>
  Effect.map(
    db.get<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT 1 FROM deliveries WHERE target = ? AND next_attempt_at IS NOT NULL LIMIT ?)`,
      [target, countLimit]
    ),
    (row) => row?.count ?? 0
  )

/** The same of all lanes together that are no endpoint's, but a payment's own webhookUrl's. */
export const waitingAtUrls = (db: Db) =>
  Effect.map(
    db.get<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT 1 FROM deliveries WHERE target GLOB 'https:*' AND next_attempt_at IS NOT NULL LIMIT ?)`,
      [countLimit]
    ),
    (row) => row?.count ?? 0
  )
