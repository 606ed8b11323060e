import type { Mode } from "../Domain/Chain.ts"
import type { AccountId, ApiKeyId, PersonId } from "../Domain/Ids.ts"
import { allRows, anyRow, type Db, execute } from "../Sql.ts"

/** How an act came in: over the control socket, by a command that needs no daemon, with an API key, from the portal, or by itself. */
export const vias = ["socket", "direct", "api", "portal", "daemon"] as const
export type Via = (typeof vias)[number]

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

/** Acts that give somebody access to the portal or the API; the index `audit_of_access` has the same words. */
const accessActs = `('people invite', 'people link', 'people enable', 'people role', 'portal password', 'portal passkey', 'keys create',
      'keys roll')`

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
  /** Only acts that gave somebody access. */
  readonly access?: boolean
}

/** Newest first. */
export const list = (db: Db, { access, account, before, limit, since }: AuditFilter) => {
  const older = before === undefined ? "" : "AND (at, sequence) < (SELECT at, sequence FROM audit WHERE sequence = ?)"
  const of = `${account === undefined ? "" : "account_id = ? AND"} ${access ? `act IN ${accessActs} AND` : ""}`
  return allRows<AuditEntry>(
    db,
    `SELECT ${columns} FROM audit WHERE ${of} at >= ? ${older} ORDER BY at DESC, sequence DESC LIMIT ?`,
    [...(account === undefined ? [] : [account]), since, ...(before === undefined ? [] : [before]), limit]
  )
}

/**
 * What a person made since a time (Unix milliseconds): people whom they let in, whom these let in, and so on, the person
 * among them or not; and the API keys that any of them made.
 */
export const madeBy = (db: Db, person: PersonId, since: number) =>
  allRows<{ readonly person: PersonId | null; readonly key: ApiKeyId | null }>(
    db,
    `WITH RECURSIVE made AS MATERIALIZED (
       SELECT DISTINCT substr(who, 1, instr(who, ' ') - 1) AS maker, detail ->> 'person' AS person,
         coalesce(detail ->> 'to', detail ->> 'key') AS key
       FROM audit WHERE at >= ? AND act IN ('people invite', 'people link', 'people enable', 'keys create', 'keys roll')),
     makers (id) AS (SELECT id FROM people WHERE id = ? UNION SELECT person FROM makers JOIN made ON maker = id WHERE person IS NOT NULL)
     SELECT DISTINCT person, key FROM makers JOIN made ON maker = id`,
    [since, person]
  )

export const exists = (db: Db, sequence: number) => anyRow(db, "SELECT 1 FROM audit WHERE sequence = ?", [sequence])
