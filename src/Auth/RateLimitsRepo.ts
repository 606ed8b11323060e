import { Effect } from "effect"
import { type Db, Tx } from "../Sql.ts"
import type { Usage } from "./rateLimitWindows.ts"

interface Row {
  readonly of_id: string
  readonly minute_start: number
  readonly minute_count: number
  readonly hour_start: number
  readonly hour_count: number
}

/** The stored usage of every key, and of those that share a limit, that were active lately. */
export const all = (db: Db) =>
  Effect.map(
    db.all<Row>("SELECT of_id, minute_start, minute_count, hour_start, hour_count FROM rate_windows"),
    (rows) =>
      rows.map((row): readonly [string, Usage] => [
        row.of_id,
        {
          minute: { start: row.minute_start, count: row.minute_count },
          hour: { start: row.hour_start, count: row.hour_count }
        }
      ])
  )

/** Stores the usage of some keys, and of those that share a limit, and deletes that of `expired` ones. */
export const replace = (usages: Iterable<readonly [string, Usage]>, expired: Iterable<string>) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const id of expired) yield* tx.run("DELETE FROM rate_windows WHERE of_id = ?", [id])
    for (const [id, { hour, minute }] of usages) {
      yield* tx.run(
        `INSERT INTO rate_windows (of_id, minute_start, minute_count, hour_start, hour_count) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (of_id) DO UPDATE SET minute_start = excluded.minute_start, minute_count = excluded.minute_count,
           hour_start = excluded.hour_start, hour_count = excluded.hour_count`,
        [id, minute.start, minute.count, hour.start, hour.count]
      )
    }
  })
