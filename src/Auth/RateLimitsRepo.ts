import { Effect } from "effect"
import { ApiKeyId } from "../Domain/Ids.ts"
import { type Db, Tx } from "../Sql.ts"
import type { Usage } from "./rateLimitWindows.ts"

interface Row {
  readonly key_id: string
  readonly minute_start: number
  readonly minute_count: number
  readonly hour_start: number
  readonly hour_count: number
}

/** The stored usage of every recently active key. */
export const all = (db: Db) =>
  Effect.map(
    db.all<Row>("SELECT key_id, minute_start, minute_count, hour_start, hour_count FROM rate_windows"),
    (rows) =>
      rows.map((row): readonly [ApiKeyId, Usage] => [
        ApiKeyId.make(row.key_id, true),
        {
          minute: { start: row.minute_start, count: row.minute_count },
          hour: { start: row.hour_start, count: row.hour_count }
        }
      ])
  )

/** Stores the usage of some keys, and deletes that of `expired` ones. */
export const replace = (usages: Iterable<readonly [ApiKeyId, Usage]>, expired: Iterable<ApiKeyId>) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const key of expired) yield* tx.run("DELETE FROM rate_windows WHERE key_id = ?", [key])
    for (const [key, { hour, minute }] of usages) {
      yield* tx.run(
        `INSERT INTO rate_windows (key_id, minute_start, minute_count, hour_start, hour_count) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (key_id) DO UPDATE SET minute_start = excluded.minute_start, minute_count = excluded.minute_count,
           hour_start = excluded.hour_start, hour_count = excluded.hour_count`,
        [key, minute.start, minute.count, hour.start, hour.count]
      )
    }
  })
