import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { Mode } from "../Domain/Chain.ts"
import type { AccountId, ApiKeyId } from "../Domain/Ids.ts"
import { changes, type Db, execute, type Param, Tx } from "../Sql.ts"

/** A request to the API that a key authenticated. */
export interface LoggedRequest {
  /** As in `X-Request-Id`. */
  readonly id: string
  /** When it was answered, Unix milliseconds. */
  readonly at: number
  readonly account: AccountId
  readonly mode: Mode
  readonly key: ApiKeyId
  readonly method: string
  /** With parameters by name, such as `/v1/payments/:id`. */
  readonly path: string
  readonly status: number
  readonly durationMicros: number
  readonly errorCode: string | null
  readonly errorMessage: string | null
  /** What it sent, see `redactor`; null for a request without a body. */
  readonly request: string | null
}

const columns = `id, at, account_id AS account, mode, key_id AS key, method, path, status,
  duration_us AS durationMicros, error_code AS errorCode, error_message AS errorMessage, request`

/**
 * Stores rows. One statement for each, prepared once: one for all of them, from JSON or with as many parameters, was
 * measured to take 1.5 to 2 times as long.
 */
export const insert = (rows: ReadonlyArray<LoggedRequest>) =>
  Effect.flatMap(Tx, (tx) =>
    tx.runEach(
      `INSERT INTO requests (id, at, account_id, mode, key_id, method, path, status, duration_us, error_code,
         error_message, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      rows.map((row) => [
        ...[row.id, row.at, row.account, row.mode, row.key, row.method, row.path, row.status, row.durationMicros],
        ...[row.errorCode, row.errorMessage, row.request]
      ])
    )
  )

/** What a list selects: an index serves each combination. */
export interface RequestFilter {
  /** Only those of this key. */
  readonly key?: string | undefined
  /** Only those with a status of 400 or more. */
  readonly isRefused: boolean
}

export interface ListedRequest extends LoggedRequest {
  readonly sequence: number
}

/** An owner's requests, newest first, from before the row `before` on. */
export const list = (db: Db, { account, mode }: Owner, filter: RequestFilter, limit: number, before?: number) => {
  const conditions: ReadonlyArray<readonly [string, ...ReadonlyArray<Param>]> = [
    // `+` excludes a column from the choice of the index: a key's own is the better one.
    filter.key === undefined
      ? ["account_id = ? AND mode = ?", account, mode]
      : ["key_id = ? AND +account_id = ? AND +mode = ?", filter.key, account, mode],
    ...(filter.isRefused ? [["status >= 400"] as const] : []),
    ...(before === undefined ? [] : [["sequence < ?", before] as const])
  ]
  return db.all<ListedRequest>(
    `SELECT sequence, ${columns} FROM requests WHERE ${conditions.map(([sql]) => sql).join(" AND ")}
     ORDER BY sequence DESC LIMIT ?`,
    [...conditions.flatMap(([_, ...params]) => params), limit]
  )
}

/** An owner's request of this id. */
export const byId = (db: Db, { account, mode }: Owner, id: string) =>
  db.get<LoggedRequest>(`SELECT ${columns} FROM requests WHERE id = ? AND +account_id = ? AND +mode = ?`, [
    id,
    account,
    mode
  ])

/** Deletes up to `limit` of the oldest rows, those from before `until` (Unix milliseconds). Whether there may be more. */
export const forget = (until: number, limit: number) =>
  changes(
    "DELETE FROM requests WHERE at < ? AND sequence IN (SELECT sequence FROM requests ORDER BY sequence LIMIT ?)",
    [until, limit],
    limit
  )

/** Deletes an owner's `count` oldest rows. */
export const forgetOldest = ({ account, mode }: Owner, count: number) =>
  execute(
    `DELETE FROM requests WHERE sequence IN
         (SELECT sequence FROM requests WHERE account_id = ? AND mode = ? ORDER BY sequence LIMIT ?)`,
    [account, mode, count]
  )

interface Counted extends Owner {
  readonly rows: number
}

/** The maximum rows that each owner may keep, so that all have at most `keep`: none loses rows to those with more. */
export const fairShare = (counts: ReadonlyArray<number>, keep: number): number => {
  const ascending = counts.toSorted((a, b) => a - b)
  let left = keep
  for (const [i, count] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - i))
    if (count > share) return share
    left -= count
  }
  return keep
}

/** How many rows each owner has beyond its fair share of `keep`; the owners that have none are left out. */
export const beyondShare = (db: Db, keep: number) =>
  Effect.gen(function* () {
    // Counting reads a whole index, so only if there may be too many.
    const span = yield* db.get<{ rows: number }>(
      "SELECT (SELECT max(sequence) FROM requests) - (SELECT min(sequence) FROM requests) + 1 AS rows"
    )
    if ((span?.rows ?? 0) <= keep) return []
    const counted = yield* db.all<Counted>(
      "SELECT account_id AS account, mode, count(*) AS rows FROM requests GROUP BY account_id, mode"
    )
    const share = fairShare(
      counted.map(({ rows }) => rows),
      keep
    )
    return counted.filter(({ rows }) => rows > share).map(({ rows, ...owner }) => ({ owner, excess: rows - share }))
  })
