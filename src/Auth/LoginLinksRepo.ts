import { Effect } from "effect"
import type { PersonId } from "../Domain/Ids.ts"
import { changes, type Db, execute, oneRow } from "../Sql.ts"

/** A one-time link. Times in Unix milliseconds. */
export interface LoginLink {
  readonly person: PersonId
  readonly expiresAt: number
  readonly usedAt: number | undefined
  /** When a use of it was first refused. */
  readonly refusedAt: number | undefined
}

/** Used and expired links are kept for this long, so that their page says what became of them. */
export const memory = 24 * 60 * 60_000

/** Maximum number of links per person. A further one ends the oldest. */
const most = 20

/** Stores a link, and forgets old ones of the same person. */
export const insert = (hash: Uint8Array, { expiresAt, person }: Pick<LoginLink, "expiresAt" | "person">, now: number) =>
  Effect.zipRight(
    execute(
      `DELETE FROM sign_in_links WHERE person_id = ? AND (expires_at < ? OR hash IN
         (SELECT hash FROM sign_in_links WHERE person_id = ? ORDER BY expires_at DESC, hash LIMIT -1 OFFSET ${most - 1}))`,
      [person, now - memory, person]
    ),
    execute("INSERT INTO sign_in_links (hash, person_id, expires_at) VALUES (?, ?, ?)", [hash, person, expiresAt])
  )

export const byHash = (db: Db, hash: Uint8Array) =>
  oneRow<LoginLink>(
    db,
    `SELECT person_id AS person, expires_at AS expiresAt, used_at AS usedAt, refused_at AS refusedAt
     FROM sign_in_links WHERE hash = ?`,
    [hash]
  )

/** @param at Unix milliseconds */
export const use = (hash: Uint8Array, at: number) =>
  execute("UPDATE sign_in_links SET used_at = ? WHERE hash = ?", [at, hash])

/** @param at Unix milliseconds */
export const refuse = (hash: Uint8Array, at: number) =>
  execute("UPDATE sign_in_links SET refused_at = ? WHERE hash = ?", [at, hash])

/** Ends all links of a person that are still open. */
export const end = (person: PersonId, at: number) =>
  execute("UPDATE sign_in_links SET used_at = ? WHERE person_id = ? AND used_at IS NULL", [at, person])

/** Deletes up to `limit` links that ended before `until`, Unix milliseconds. Whether there may be more. */
export const forget = (until: number, limit: number) =>
  changes(
    "DELETE FROM sign_in_links WHERE hash IN (SELECT hash FROM sign_in_links WHERE expires_at < ? LIMIT ?)",
    [until, limit],
    limit
  )
