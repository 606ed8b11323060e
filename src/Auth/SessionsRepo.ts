import { Effect } from "effect"
import { type PersonId, SessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { changes, type Db, Tx } from "../Sql.ts"
import { type PersonRow, toPerson } from "./PeopleRepo.ts"

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

interface Row {
  readonly session_id: string
  readonly session_created_at: number
  readonly seen_at: number
  readonly proof_at: number
  readonly user_agent: string
  readonly address: string
}

const toSession = (row: Row): Session => ({
  id: SessionId.make(row.session_id, true),
  createdAt: row.session_created_at,
  seenAt: row.seen_at,
  proofAt: row.proof_at,
  userAgent: row.user_agent,
  address: row.address
})

const columns = "s.id AS session_id, s.created_at AS session_created_at, seen_at, proof_at, user_agent, address"

/** The most sessions of one person. A further one ends the one that was used longest ago. */
const most = 20

/** Stores a session, and forgets the person's expired ones: unused since `idleSince`, or created before `createdSince`. */
export const insert = (
  { address, createdAt, id, proofAt, seenAt, userAgent }: Session,
  person: PersonId,
  hash: Uint8Array,
  { createdSince, idleSince }: { readonly idleSince: number; readonly createdSince: number }
) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    yield* tx.run(
      `DELETE FROM sessions WHERE person_id = ? AND (seen_at < ? OR created_at < ? OR id IN
         (SELECT id FROM sessions WHERE person_id = ? ORDER BY seen_at DESC, id LIMIT -1 OFFSET ${most - 1}))`,
      [person, idleSince, createdSince, person]
    )
    yield* tx.run(
      `INSERT INTO sessions (id, hash, person_id, created_at, seen_at, proof_at, user_agent, address)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      [id, hash, person, createdAt, seenAt, proofAt, userAgent, address]
    )
  })

/** The session of a secret's hash, with its person. */
export const byHash = (db: Db, hash: Uint8Array) =>
  Effect.map(
    db.get<Row & PersonRow>(
      `SELECT ${columns}, p.id, p.name, p.role, p.account_id, p.created_at, p.disabled_at
       FROM sessions s JOIN people p ON p.id = s.person_id WHERE s.hash = ?`,
      [hash]
    ),
    (row): { readonly session: Session; readonly person: Person } | undefined =>
      row && { session: toSession(row), person: toPerson(row) }
  )

/** A person's sessions, oldest first; at most 20. */
export const list = (db: Db, person: PersonId) =>
  Effect.map(
    db.all<Row>(`SELECT ${columns} FROM sessions s WHERE person_id = ? ORDER BY s.created_at, s.id`, [person]),
    (rows) => rows.map(toSession)
  )

export const seen = (id: SessionId, at: number) =>
  Effect.flatMap(Tx, (tx) => tx.run("UPDATE sessions SET seen_at = ? WHERE id = ?", [at, id]))

export const proven = (id: SessionId, at: number) =>
  Effect.flatMap(Tx, (tx) => tx.run("UPDATE sessions SET proof_at = ? WHERE id = ?", [at, id]))

export const endByHash = (hash: Uint8Array) =>
  Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM sessions WHERE hash = ?", [hash]))

/** Whether there was one. */
export const end = (person: PersonId, id: string) =>
  Effect.flatMap(Tx, (tx) => changes(tx, "DELETE FROM sessions WHERE person_id = ? AND id = ?", [person, id]))

/** Ends all sessions of a person but `kept`. Whether there were any. */
export const endAll = (person: PersonId, kept: SessionId | undefined) =>
  Effect.flatMap(Tx, (tx) =>
    changes(tx, "DELETE FROM sessions WHERE person_id = ? AND id IS NOT ?", [person, kept ?? null])
  )

/** Deletes up to `limit` sessions that were last used before `until`, Unix milliseconds. Whether there may be more. */
export const forget = (until: number, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const gone = yield* tx.all(
      "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE seen_at < ? LIMIT ?) RETURNING 1",
      [until, limit]
    )
    return gone.length === limit
  })
