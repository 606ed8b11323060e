import { Effect } from "effect"
import { type AccountId, type PersonId, SessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { changes, type Db, execute, Tx } from "../Sql.ts"
import { type PersonRow, toPerson } from "./PeopleRepo.ts"

/** A password with its person. */
export interface Password {
  readonly person: Person
  /** Unique in its realm, see `realmOf`. */
  readonly signInName: string
  readonly salt: Uint8Array
  readonly hash: Uint8Array
  /** Unix milliseconds. */
  readonly createdAt: number
  readonly cameOf: SessionId | undefined
}

interface Row extends PersonRow {
  readonly sign_in_name: string
  readonly salt: Uint8Array
  readonly hash: Uint8Array
  readonly set_at: number
  readonly came_of: string | null
}

const select = (where: string) =>
  `SELECT p.id, p.name, p.role, p.account_id, p.created_at, p.disabled_at, sign_in_name, salt, hash,
     w.created_at AS set_at, came_of
   FROM passwords w JOIN people p ON p.id = w.person_id WHERE ${where}`

const toPassword = (row: Row | undefined): Password | undefined =>
  row && {
    ...{ person: toPerson(row), signInName: row.sign_in_name, salt: row.salt, hash: row.hash, createdAt: row.set_at },
    cameOf: row.came_of === null ? undefined : SessionId.make(row.came_of, true)
  }

/** @param signInName in its normal form */
export const bySignInName = (db: Db, realm: AccountId, signInName: string) =>
  Effect.map(db.get<Row>(select("realm = ? AND sign_in_name = ?"), [realm, signInName]), toPassword)

export const ofPerson = (db: Db, person: PersonId) =>
  Effect.map(db.get<Row>(select("person_id = ?"), [person]), toPassword)

/** Sets a person's password, in place of the one before. */
export const set = (realm: AccountId, { cameOf, createdAt, hash, person, salt, signInName }: Password) =>
  execute(
    `INSERT INTO passwords (person_id, realm, sign_in_name, salt, hash, created_at, came_of) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (person_id) DO UPDATE SET sign_in_name = excluded.sign_in_name, salt = excluded.salt,
         hash = excluded.hash, created_at = excluded.created_at, came_of = excluded.came_of`,
    [person.id, realm, signInName, salt, hash, createdAt, cameOf ?? null]
  )

/** Whether there was one. */
export const remove = (person: PersonId) =>
  Effect.flatMap(Tx, (tx) => changes(tx, "DELETE FROM passwords WHERE person_id = ?", [person]))

/** Removes those that came of these sessions and were made since `since`, Unix milliseconds. */
export const removeOf = (sessions: string, since: number) =>
  execute("DELETE FROM passwords WHERE came_of IN (SELECT value FROM json_each(?)) AND created_at >= ?", [
    sessions,
    since
  ])
