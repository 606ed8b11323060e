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

/** Acts that give somebody access to the portal, by the index `audit_ways_in`; those of each person together. */
const selectWaysIn = `SELECT ${columns}, place, acts FROM (
    SELECT *, row_number() OVER (PARTITION BY who ORDER BY at DESC, sequence DESC) AS place,
      count(*) OVER (PARTITION BY who) AS acts, max(at) OVER (PARTITION BY who) AS newest
    FROM (SELECT * FROM audit WHERE account_id IS ? AND at >= ? AND act IN
        ('people invite', 'people link', 'people enable', 'people role', 'portal password', 'portal passkey')
      ORDER BY at DESC LIMIT 2000))
  WHERE place <= ? ORDER BY newest DESC, who, place LIMIT ?`

export interface WayIn extends AuditEntry {
  /** 1 for the person's newest of so many acts. */
  readonly place: number
  readonly acts: number
}

/**
 * The acts that gave somebody access to the portal since a time (Unix milliseconds), grouped by person: first the person
 * with the latest act. A person with many acts does not hide those of others, unless they are thousands.
 *
 * @param account whose people; undefined: operators
 * @param most people, and acts of each
 */
export const waysIn = (
  db: Db,
  account: AccountId | undefined,
  since: number,
  most: { readonly people: number; readonly acts: number }
) => allRows<WayIn>(db, selectWaysIn, [account ?? null, since, most.acts, most.people * most.acts])

export const exists = (db: Db, sequence: number) => anyRow(db, "SELECT 1 FROM audit WHERE sequence = ?", [sequence])
