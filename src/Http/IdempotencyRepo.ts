import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import { wellFormedJson } from "../lib/text.ts"
import { changes, type Db, execute, oneRow } from "../Sql.ts"

/** An `Idempotency-Key` with its scope: the same text is a different key in another account, mode or route. */
export interface Scope extends Owner {
  readonly route: string
  readonly key: string
}

/** A stored response with the hash of the request's body. */
export interface Stored {
  /** Keyed by the master key, and so undefined after a change of that key. */
  readonly hash: Uint8Array | undefined
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The response, if it was stored after `since`, Unix milliseconds. */
export const find = (db: Db, { account, key, mode, route }: Scope, since: number) =>
  Effect.map(
    oneRow<Omit<Stored, "headers"> & { readonly headers: string }>(
      db,
      `SELECT body_hash AS hash, status, headers, body FROM idempotent_responses
       WHERE account_id = ? AND mode = ? AND route = ? AND key = ? AND created_at > ?`,
      [account, mode, route, key, since]
    ),
    (row): Stored | undefined => row && { ...row, headers: JSON.parse(row.headers), body: wellFormedJson(row.body) }
  )

/** Stores a response. It replaces one under the same key that has expired. */
export const keep = ({ account, key, mode, route }: Scope, { body, hash, headers, status }: Stored, at: number) =>
  execute(
    `INSERT INTO idempotent_responses (account_id, mode, route, key, body_hash, status, headers, body, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (account_id, mode, route, key) DO UPDATE SET body_hash = excluded.body_hash,
         status = excluded.status, headers = excluded.headers, body = excluded.body, created_at = excluded.created_at`,
    [account, mode, route, key, hash ?? null, status, JSON.stringify(headers), body, at]
  )

/** Drops the hashes of all bodies after a change of the master key: from then on any body gets the stored response. */
export const forgetBodies = execute("UPDATE idempotent_responses SET body_hash = NULL")

/** Deletes up to `limit` responses stored up to `until`, Unix milliseconds. Whether there may be more. */
export const forget = (until: number, limit: number) =>
  changes(
    `DELETE FROM idempotent_responses WHERE (account_id, mode, route, key) IN (
       SELECT account_id, mode, route, key FROM idempotent_responses WHERE created_at <= ? ORDER BY created_at LIMIT ?)`,
    [until, limit],
    limit
  )
