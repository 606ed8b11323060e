import { Effect } from "effect"
import { allValues, changedRows, Tx } from "../../Sql.ts"

// Deletes old rows, a bounded number at a time: after a full page there may be more.

/**
 * Deletes deliveries that were done up to `until` (Unix milliseconds), with their attempts; true when there may be more.
 * A delivery with any attempt ahead is not done.
 */
export const forgetDeliveries = (until: number, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const done = yield* allValues<number>(
      tx,
      "SELECT sequence FROM deliveries WHERE done_at <= ? ORDER BY done_at LIMIT ?",
      [until, limit]
    )
    const sequences = JSON.stringify(done)
    yield* tx.run("DELETE FROM attempts WHERE delivery IN (SELECT value FROM json_each(?))", [sequences])
    yield* tx.run("DELETE FROM deliveries WHERE sequence IN (SELECT value FROM json_each(?))", [sequences])
    return done.length === limit
  })

/**
 * Looks at the next `limit` events after the `sequence` of one, in the order in which they were stored, and deletes those without
 * deliveries that were created up to `until` (Unix milliseconds). Returns the last that it looked at, undefined when there are no
 * more as old: the clock may have been set meanwhile, so a whole page has to be newer.
 */
export const forgetEvents = (until: number, after = 0, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const page = yield* tx.all<{ readonly id: string; readonly createdAt: number; readonly sequence: number }>(
      "SELECT id, created_at AS createdAt, sequence FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?",
      [after, limit]
    )
    const old = page.filter(({ createdAt }) => createdAt <= until)
    // The newest event of each owner stays: a stream client that has seen it has missed nothing, and its number must not
    // be used again.
    yield* tx.run(
      `DELETE FROM events WHERE id IN (SELECT value FROM json_each(?))
         AND sequence < (SELECT max(sequence) FROM events AS e WHERE e.account_id = events.account_id AND e.mode = events.mode)
         AND NOT EXISTS (SELECT 1 FROM deliveries WHERE event_id = events.id)`,
      [JSON.stringify(old.map(({ id }) => id))]
    )
    return page.length === limit && old.length > 0 ? page.at(-1)?.sequence : undefined
  })

/**
 * Removes up to `limit` endpoints that were deleted up to `until` (Unix milliseconds) and have no deliveries left; true
 * when there may be more.
 */
export const forgetEndpoints = (until: number, limit: number) =>
  Effect.map(
    changedRows(
      `DELETE FROM endpoints WHERE id IN (
         SELECT id FROM endpoints AS e WHERE deleted_at <= ?
           AND NOT EXISTS (SELECT 1 FROM deliveries WHERE endpoint_id = e.id) LIMIT ?)`,
      [until, limit]
    ),
    (count) => count === limit
  )
