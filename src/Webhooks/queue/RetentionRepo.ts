import { Effect } from "effect"
import { Tx } from "../../Sql.ts"

// What is old is forgotten here, a bounded number of rows at a time: a page that is full may have another behind it.

/**
 * Forgets deliveries that were done up to `until` (Unix milliseconds), with their attempts, and tells whether there may be
 * more. One that has an attempt ahead, for whatever reason, is not done.
 */
export const forgetDeliveries = (until: number, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const done = yield* tx.all<{ sequence: number }>(
      "SELECT sequence FROM deliveries WHERE done_at <= ? ORDER BY done_at LIMIT ?",
      [until, limit]
    )
    const sequences = JSON.stringify(done.map(({ sequence }) => sequence))
    yield* tx.run("DELETE FROM attempts WHERE delivery IN (SELECT value FROM json_each(?))", [sequences])
    yield* tx.run("DELETE FROM deliveries WHERE sequence IN (SELECT value FROM json_each(?))", [sequences])
    return done.length === limit
  })

/** An event's place in the order of their age. */
export interface Place {
  readonly createdAt: number
  readonly row: number
}

/**
 * Forgets those of the next `limit` events behind `after`, made up to `until` (Unix milliseconds), that no delivery needs.
 * Gives the last one that it looked at, undefined when there are no more.
 */
export const forgetEvents = (until: number, after: Place | undefined, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const { createdAt, row } = after ?? { createdAt: 0, row: -1 }
    const old = yield* tx.all<Place & { readonly id: string }>(
      `SELECT id, created_at AS createdAt, sequence AS row FROM events
       WHERE created_at <= ? AND (created_at, sequence) > (?, ?) ORDER BY created_at, sequence LIMIT ?`,
      [until, createdAt, row, limit]
    )
    // The newest of an owner stays: who has heard it has missed nothing, and its number must not come again.
    yield* tx.run(
      `DELETE FROM events WHERE id IN (SELECT value FROM json_each(?))
         AND sequence < (SELECT max(sequence) FROM events AS e WHERE e.account_id = events.account_id AND e.mode = events.mode)
         AND NOT EXISTS (SELECT 1 FROM deliveries WHERE event_id = events.id)`,
      [JSON.stringify(old.map(({ id }) => id))]
    )
    return old.length === limit ? old.at(-1) : undefined
  })

/**
 * Forgets up to `limit` endpoints that were deleted up to `until` (Unix milliseconds) and that no delivery names any more,
 * and tells whether there may be more.
 */
export const forgetEndpoints = (until: number, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const gone = yield* tx.all(
      `DELETE FROM endpoints WHERE id IN (
         SELECT id FROM endpoints AS e WHERE deleted_at <= ?
           AND NOT EXISTS (SELECT 1 FROM deliveries WHERE endpoint_id = e.id) LIMIT ?) RETURNING id`,
      [until, limit]
    )
    return gone.length === limit
  })
