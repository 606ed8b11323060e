import { Effect } from "effect"
import type { Mode } from "../Domain/Chain.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { type Db, Tx } from "../Sql.ts"

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

interface AuditRow {
  readonly sequence: number
  readonly at: number
  readonly via: Via
  readonly who: string
  readonly account_id: AccountId | null
  readonly mode: Mode | null
  readonly act: string
  readonly detail: string
}

const toEntry = ({ account_id: account, mode, ...row }: AuditRow): AuditEntry => ({
  ...row,
  account: account ?? undefined,
  mode: mode ?? undefined
})

export const insert = ({ account, act, at, detail, mode, via, who }: Omit<AuditEntry, "sequence">) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run("INSERT INTO audit (at, via, who, account_id, mode, act, detail) VALUES (?, ?, ?, ?, ?, ?, ?)", [
      at,
      via,
      who,
      account ?? null,
      mode ?? null,
      act,
      detail
    ])
  )

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
  return Effect.map(
    db.all<AuditRow>(`SELECT * FROM audit WHERE ${of} at >= ? ${older} ORDER BY at DESC, sequence DESC LIMIT ?`, [
      ...(account === undefined ? [] : [account]),
      since,
      ...(before === undefined ? [] : [before]),
      limit
    ]),
    (rows) => rows.map(toEntry)
  )
}

/**
 * The newest acts that made somebody a way into the portal, since `since`, Unix milliseconds.
 *
 * @param account whose people; undefined: operators
 */
export const waysIn = (db: Db, account: AccountId | undefined, since: number, limit: number) =>
  Effect.map(
    db.all<AuditRow>(
      `SELECT * FROM audit WHERE account_id IS ? AND at >= ?
         AND act IN ('people invite', 'people link', 'portal password', 'portal passkey')
       ORDER BY at DESC, sequence DESC LIMIT ?`,
      [account ?? null, since, limit]
    ),
    (rows) => rows.map(toEntry)
  )

export const exists = (db: Db, sequence: number) =>
  Effect.map(db.get("SELECT 1 FROM audit WHERE sequence = ?", [sequence]), (row) => row !== undefined)
