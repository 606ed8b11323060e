import { Effect } from "effect"
import type { AccountId, PersonId, SessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { changes, type Db, execute, oneRow, Tx } from "../Sql.ts"
import { type PersonColumns, personColumns, withPerson } from "./PeopleRepo.ts"

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

const one = (db: Db, where: string, params: ReadonlyArray<string>) =>
  Effect.map(
    oneRow<Omit<Password, "person"> & PersonColumns>(
      db,
      `SELECT sign_in_name AS signInName, salt, hash, w.created_at AS createdAt, came_of AS cameOf, ${personColumns}
       FROM passwords w JOIN people p ON p.id = w.person_id WHERE ${where}`,
      params
    ),
    (row): Password | undefined => row && withPerson(row)
  )

/** @param signInName in its normal form */
export const bySignInName = (db: Db, realm: AccountId, signInName: string) =>
  one(db, "realm = ? AND sign_in_name = ?", [realm, signInName])

export const ofPerson = (db: Db, person: PersonId) => one(db, "person_id = ?", [person])

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
