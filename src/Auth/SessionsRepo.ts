import { Effect } from "effect"
import type { PersonId, SessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { allRows, type Db, execute, oneRow, type StoreUnavailable, Tx } from "../Sql.ts"
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
  /** The session in which the link, password or passkey that began it was made. */
  readonly cameOf: SessionId | undefined
}

const columns = `s.id, s.created_at AS createdAt, seen_at AS seenAt, proof_at AS proofAt, user_agent AS userAgent, address,
  came_of AS cameOf`

/** Maximum number of sessions per person. A further one ends the least recently used. */
const most = 20

export const insert = (
  { address, cameOf, createdAt, id, proofAt, seenAt, userAgent }: Session,
  person: PersonId,
  hash: Uint8Array
) =>
  execute(
    `INSERT INTO sessions (id, hash, person_id, created_at, seen_at, proof_at, user_agent, address, came_of)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [id, hash, person, createdAt, seenAt, proofAt, userAgent, address, cameOf ?? null]
  )

const peopled = (db: Db, condition: string, param: string | Uint8Array) =>
  Effect.map(
    oneRow<Session & PersonColumns>(
      db,
      `SELECT ${columns}, ${personColumns} FROM sessions s JOIN people p ON p.id = s.person_id WHERE ${condition}`,
      [param]
    ),
    (row): { readonly session: Session; readonly person: Person } | undefined => {
      if (row === undefined) return undefined
      const { person, ...session } = withPerson(row)
      return { session, person }
    }
  )

/** The session of a secret's hash, with its person. */
export const byHash = (db: Db, hash: Uint8Array) => peopled(db, "s.hash = ?", hash)

/** An open session, with its person. */
export const withItsPerson = (db: Db, id: SessionId) => peopled(db, "s.id = ? AND s.hash IS NOT NULL", id)

/** A person's sessions, oldest first; at most 20. */
export const list = (db: Db, person: PersonId) =>
  allRows<Session>(
    db,
    `SELECT ${columns} FROM sessions s WHERE person_id = ? AND hash IS NOT NULL ORDER BY s.created_at, s.id`,
    [person]
  )

export const seen = (id: SessionId, at: number) => execute("UPDATE sessions SET seen_at = ? WHERE id = ?", [at, id])

export const proven = (id: SessionId, at: number) => execute("UPDATE sessions SET proof_at = ? WHERE id = ?", [at, id])

/** Gives an open session another secret. */
export const rehash = (id: SessionId, hash: Uint8Array) =>
  execute("UPDATE sessions SET hash = ? WHERE id = ? AND hash IS NOT NULL", [hash, id])

/** An open session, in the caller's transaction. */
export const open = (id: SessionId) =>
  Effect.flatMap(Tx, (tx) =>
    oneRow<Session>(tx, `SELECT ${columns} FROM sessions s WHERE id = ? AND hash IS NOT NULL`, [id])
  )

/**
 * Open sessions to start from: the one of a secret's hash, one of a person, those of a person that are over or make
 * room for a further one, or up to `limit` of all that are over. Over means last used before `idleSince`, or created
 * before `createdSince`, Unix milliseconds.
 */
export type OpenStart =
  | { readonly hash: Uint8Array }
  | { readonly person: PersonId; readonly id: string }
  | { readonly person: PersonId; readonly idleSince: number; readonly createdSince: number }
  | { readonly idleSince: number; readonly limit: number }

/** Open sessions, or all of a person, ended ones too. */
type Start = OpenStart | { readonly person: PersonId }

const conditionOf = (
  start: Start
): readonly [condition: string, params: ReadonlyArray<string | number | Uint8Array>] => {
  if ("hash" in start) return ["hash = ?", [start.hash]]
  if ("limit" in start) {
    const { idleSince, limit } = start
    return ["id IN (SELECT id FROM sessions WHERE hash IS NOT NULL AND seen_at < ? LIMIT ?)", [idleSince, limit]]
  }
  const { person } = start
  if ("createdSince" in start) {
    const { createdSince, idleSince } = start
    return [
      `person_id = ? AND hash IS NOT NULL AND (seen_at < ? OR created_at < ? OR id IN
         (SELECT id FROM sessions WHERE person_id = ? AND hash IS NOT NULL
          ORDER BY seen_at DESC, id LIMIT -1 OFFSET ${most - 1}))`,
      [person, idleSince, createdSince, person]
    ]
  }
  return "id" in start
    ? ["person_id = ? AND id = ? AND hash IS NOT NULL", [person, start.id]]
    : ["person_id = ?", [person]]
}

/** The ids of these sessions and of all that came of them, ended ones too. */
export const withDescendants = (start: Start) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const [condition, params] = conditionOf(start)
    const rows = yield* tx.all<{ readonly id: string }>(
      `WITH RECURSIVE family (id) AS (
         SELECT id FROM sessions WHERE ${condition}
         UNION SELECT s.id FROM family f JOIN sessions s ON s.came_of = f.id)
       SELECT id FROM family`,
      params
    )
    return rows.map(({ id }) => id)
  })

/** The ids of the people whose session it is, or came of, or whose that one came of, and so on; ended ones too. */
export const lineOf = (db: Db, id: SessionId): Effect.Effect<ReadonlySet<string>, StoreUnavailable> =>
  Effect.map(
    db.all<{ readonly person_id: string }>(
      `WITH RECURSIVE line (id, person_id, came_of) AS (
         SELECT id, person_id, came_of FROM sessions WHERE id = ?
         UNION SELECT s.id, s.person_id, s.came_of FROM line l JOIN sessions s ON s.id = l.came_of)
       SELECT person_id FROM line`,
      [id]
    ),
    (rows) => new Set(rows.map((row) => row.person_id))
  )

/** Forgets ended sessions of which nothing came that is still there. Of a chain that is the last one. */
const forget = (establishedBefore: number) =>
  execute(
    `DELETE FROM sessions WHERE hash IS NULL
         AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.came_of = sessions.id)
         AND NOT EXISTS (SELECT 1 FROM sign_in_links WHERE came_of = sessions.id)
         AND NOT EXISTS (SELECT 1 FROM passwords WHERE came_of = sessions.id AND created_at >= ?)
         AND NOT EXISTS (SELECT 1 FROM passkeys WHERE came_of = sessions.id AND created_at >= ?)`,
    [establishedBefore, establishedBefore]
  )

/**
 * Ends these sessions, a JSON array of ids, but `kept`.
 *
 * @param establishedBefore what was made before it, Unix milliseconds, counts as established
 */
export const end = (ids: string, kept: SessionId | undefined, establishedBefore: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    yield* tx.run("UPDATE sessions SET hash = NULL WHERE id IN (SELECT value FROM json_each(?)) AND id IS NOT ?", [
      ids,
      kept ?? null
    ])
    yield* forget(establishedBefore)
  })
