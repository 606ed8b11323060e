import { Effect } from "effect"
import type { Mode } from "../Domain/Chain.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { allRows, anyRow, type Db, execute } from "../Sql.ts"

/** How an act came in: over the control socket, by a command without a daemon, with an API key, or from the portal. */
export type Via = "socket" | "direct" | "api" | "portal"

/** A row of the audit log. */
export interface AuditEntry {
  /** Increases with each stored act. */
  readonly sequence: number
  /** Unix milliseconds. */
  readonly at: number
  readonly via: Via
  /** The user name that the command claimed (not verified), an API key's id, or the portal's user. */
  readonly who: string
  /** The account that the key or the portal's user belongs to, in this mode. */
  readonly account: AccountId | undefined
  readonly mode: Mode | undefined
  /** What was done, by the name of the command: `keys create`. */
  readonly act: string
  /** A JSON object: what the act was done to. Never a secret. */
  readonly detail: string
}

const columns = "sequence, at, via, who, account_id AS account, mode, act, detail"

export const insert = ({ account, act, at, detail, mode, via, who }: Omit<AuditEntry, "sequence">) =>
  execute("INSERT INTO audit (at, via, who, account_id, mode, act, detail) VALUES (?, ?, ?, ?, ?, ?, ?)", [
    at,
    via,
    who,
    account ?? null,
    mode ?? null,
    act,
    detail
  ])

export interface AuditFilter {
  /** Unix milliseconds. */
  readonly since: number
  /** Only acts that were stored before the one with this sequence. */
  readonly before: number | undefined
  readonly limit: number
  /** Only acts of this account; those at a command line belong to none. */
  readonly account?: AccountId | undefined
}

/** Newest first. */
export const list = (db: Db, { account, before, limit, since }: AuditFilter) => {
  const older = before === undefined ? "" : "AND (at, sequence) < (SELECT at, sequence FROM audit WHERE sequence = ?)"
  const of = account === undefined ? "" : "account_id = ? AND"
  return allRows<AuditEntry>(
    db,
    `SELECT ${columns} FROM audit WHERE ${of} at >= ? ${older} ORDER BY at DESC, sequence DESC LIMIT ?`,
    [...(account === undefined ? [] : [account]), since, ...(before === undefined ? [] : [before]), limit]
  )
}

/** In milliseconds; also in the schema. */
const week = 604_800_000

/** Acts that gave access to the portal within a week, by the index `audit_ways_in`. Parameter: the account. */
const inWeek = (number: string) =>
  `account_id IS ? AND at / ${week} = ${number} AND act IN
    ('people invite', 'people link', 'people enable', 'people role', 'portal password', 'portal passkey')`

// Skips from person to person in the index: it reads no more however much one of them did.
const selectMakers = `WITH RECURSIVE makers (week, who) AS (
    VALUES (?, ''), (?, '')
    UNION ALL
    SELECT week, (SELECT min(who) FROM audit WHERE ${inWeek("makers.week")} AND who > makers.who)
    FROM makers WHERE who IS NOT NULL LIMIT 1000)
  SELECT who, max((SELECT max(at) FROM audit WHERE ${inWeek("makers.week")} AND who = makers.who)) AS newest
  FROM makers WHERE who != '' GROUP BY who HAVING newest >= ? ORDER BY newest DESC, who LIMIT ?`

const selectWaysIn = [1, 0]
  .map(
    (later) => `SELECT * FROM (SELECT ${columns} FROM audit WHERE ${inWeek(`? + ${later}`)} AND who = ? AND at >= ?
      ORDER BY at DESC, sequence DESC LIMIT ?)`
  )
  .join(" UNION ALL ")

/**
 * The acts that gave somebody access to the portal in the week from `since` (Unix milliseconds), grouped by person:
 * newest first, and first the person with the latest act. A person with many acts does not hide those of others.
 *
 * @param account whose people; undefined: operators
 * @param most people, and acts of each
 */
export const waysIn = (
  db: Db,
  account: AccountId | undefined,
  since: number,
  most: { readonly people: number; readonly acts: number }
) =>
  Effect.gen(function* () {
    const first = Math.floor(since / week)
    const whose = account ?? null
    const makers = yield* db.all<{ who: string }>(selectMakers, [
      ...[first, first + 1, whose, whose],
      ...[since, most.people]
    ])
    return yield* Effect.forEach(
      makers,
      ({ who }) => {
        const params = [whose, first, who, since, most.acts]
        return Effect.map(allRows<AuditEntry>(db, selectWaysIn, [...params, ...params]), (rows) =>
          rows.slice(0, most.acts)
        )
      },
      { concurrency: 1 }
    )
  })

export const exists = (db: Db, sequence: number) => anyRow(db, "SELECT 1 FROM audit WHERE sequence = ?", [sequence])
