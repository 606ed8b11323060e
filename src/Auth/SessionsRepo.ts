import { Effect } from "effect"
import type { PersonId, SessionId } from "../Domain/Ids.ts"
import { allRows, changes, type Db, execute, oneRow, Tx } from "../Sql.ts"
import { type PersonColumns, personColumns, withPerson } from "./PeopleRepo.ts"

/** A session of the portal. Times in Unix milliseconds. */
export interface Session {
  readonly id: SessionId
  readonly createdAt: number
  /** Of its last request; at most a minute behind. */
  readonly seenAt: number
  /** Of the last proof of who the person is. */
  readonly proofAt: number
  readonly userAgent: string
  readonly address: string
}

const columns = `s.id, s.created_at AS createdAt, seen_at AS seenAt, proof_at AS proofAt, user_agent AS userAgent, address`

/** Maximum number of sessions per person. A further one ends the least recently used. */
const most = 20

export const insert = (
  { address, createdAt, id, proofAt, seenAt, userAgent }: Session,
  person: PersonId,
  hash: Uint8Array
) =>
  execute(
    `INSERT INTO sessions (id, hash, person_id, created_at, seen_at, proof_at, user_agent, address)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    [id, hash, person, createdAt, seenAt, proofAt, userAgent, address]
  )

const peopled = (db: Db, condition: string, param: string | Uint8Array) =>
  Effect.map(
    oneRow<Session & PersonColumns>(
      db,
      `SELECT ${columns}, ${personColumns} FROM sessions s JOIN people p ON p.id = s.person_id WHERE ${condition}`,
      [param]
    ),
    (row) => {
      if (row === undefined) return undefined
      const { person, ...session } = withPerson(row)
      return { session, person }
    }
  )

/** The session of a secret's hash, with its person. */
export const byHash = (db: Db, hash: Uint8Array) => peopled(db, "s.hash = ?", hash)

/** A session with its person. */
export const withItsPerson = (db: Db, id: SessionId) => peopled(db, "s.id = ?", id)

/** A person's sessions, oldest first; at most 20. */
export const list = (db: Db, person: PersonId) =>
  allRows<Session>(db, `SELECT ${columns} FROM sessions s WHERE person_id = ? ORDER BY s.created_at, s.id`, [person])

export const seen = (id: SessionId, at: number) => execute("UPDATE sessions SET seen_at = ? WHERE id = ?", [at, id])

export const proven = (id: SessionId, at: number) => execute("UPDATE sessions SET proof_at = ? WHERE id = ?", [at, id])

/** Gives a session another secret. */
export const rehash = (id: SessionId, hash: Uint8Array) =>
  execute("UPDATE sessions SET hash = ? WHERE id = ?", [hash, id])

/** An open session, in the caller's transaction. */
export const open = (id: SessionId) =>
  Effect.flatMap(Tx, (tx) => oneRow<Session>(tx, `SELECT ${columns} FROM sessions s WHERE id = ?`, [id]))

/** Ends the session of a secret's hash. */
export const endByHash = (hash: Uint8Array) => execute("DELETE FROM sessions WHERE hash = ?", [hash])

/** Ends one of a person's sessions. Whether there was one. */
export const endOne = (person: PersonId, id: string) =>
  changes("DELETE FROM sessions WHERE person_id = ? AND id = ?", [person, id])

/** Ends all sessions of a person but `kept`. */
export const endAllOf = (person: PersonId, kept?: SessionId) =>
  execute("DELETE FROM sessions WHERE person_id = ? AND id IS DISTINCT FROM ?", [person, kept ?? null])

/** Ends those of a person that are over, last used or created before a time (Unix milliseconds), or make room for one. */
export const makeRoom = (person: PersonId, idleSince: number, createdSince: number) =>
  execute(
    `DELETE FROM sessions WHERE person_id = ? AND (seen_at < ? OR created_at < ? OR id IN
       (SELECT id FROM sessions WHERE person_id = ? ORDER BY seen_at DESC, id LIMIT -1 OFFSET ${most - 1}))`,
    [person, idleSince, createdSince, person]
  )

/** Deletes up to `limit` that were last used before `idleSince`, Unix milliseconds. Whether there may be more. */
export const forget = (idleSince: number, limit: number) =>
  changes(
    "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE seen_at < ? LIMIT ?)",
    [idleSince, limit],
    limit
  )
