import { Effect } from "effect"
import type { Owner } from "../Domain/Owner.ts"
import { type Db, Tx } from "../Sql.ts"

/** What an `Idempotency-Key` belongs to: the same text is another key in another mode or on another path. */
export interface Scope extends Owner {
  readonly route: string
  readonly key: string
}

/** The response that was given, and to what. */
export interface Stored {
  /** Of the request's body; undefined after a change of the master key, under which it was made. */
  readonly hash: Uint8Array | undefined
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

interface Row {
  readonly body_hash: Uint8Array | null
  readonly status: number
  readonly headers: string
  readonly body: string
}

/** What was answered after `since`, Unix milliseconds. */
export const find = (db: Db, { account, key, mode, route }: Scope, since: number) =>
  Effect.map(
    db.get<Row>(
      `SELECT body_hash, status, headers, body FROM idempotent_responses
       WHERE account_id = ? AND mode = ? AND route = ? AND key = ? AND created_at > ?`,
      [account, mode, route, key, since]
    ),
    (row): Stored | undefined =>
      row && { hash: row.body_hash ?? undefined, status: row.status, headers: JSON.parse(row.headers), body: row.body }
  )

/** Takes the place of one that is too old to count. */
export const keep = ({ account, key, mode, route }: Scope, { body, hash, headers, status }: Stored, at: number) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run(
      `INSERT INTO idempotent_responses (account_id, mode, route, key, body_hash, status, headers, body, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (account_id, mode, route, key) DO UPDATE SET body_hash = excluded.body_hash,
         status = excluded.status, headers = excluded.headers, body = excluded.body, created_at = excluded.created_at`,
      [account, mode, route, key, hash ?? null, status, JSON.stringify(headers), body, at]
    )
  )

/** The answers are given again to whatever is sent with their keys: no body can be compared any more. */
export const forgetBodies = Effect.flatMap(Tx, (tx) => tx.run("UPDATE idempotent_responses SET body_hash = NULL"))

/** Forgets up to `limit` of those that were given up to `until`, Unix milliseconds; tells whether there may be more. */
export const forget = (until: number, limit: number) =>
  Effect.flatMap(Tx, (tx) =>
    Effect.map(
      tx.all(
        `DELETE FROM idempotent_responses WHERE rowid IN (
           SELECT rowid FROM idempotent_responses WHERE created_at <= ? ORDER BY created_at LIMIT ?) RETURNING rowid`,
        [until, limit]
      ),
      (rows) => rows.length === limit
    )
  )
