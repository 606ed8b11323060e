import { Effect } from "effect"
import type { AccountId, PersonId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { changes, type Db, execute, oneRow } from "../Sql.ts"
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
}

const one = (db: Db, where: string, params: ReadonlyArray<string>) =>
  Effect.map(
    oneRow<Omit<Password, "person"> & PersonColumns>(
      db,
      `SELECT sign_in_name AS signInName, salt, hash, w.created_at AS createdAt, ${personColumns}
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
export const set = (realm: AccountId, { createdAt, hash, person, salt, signInName }: Password) =>
  execute(
    `INSERT INTO passwords (person_id, realm, sign_in_name, salt, hash, created_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (person_id) DO UPDATE SET sign_in_name = excluded.sign_in_name, salt = excluded.salt,
         hash = excluded.hash, created_at = excluded.created_at`,
    [person.id, realm, signInName, salt, hash, createdAt]
  )

/** Whether there was one. */
export const remove = (person: PersonId) => changes("DELETE FROM passwords WHERE person_id = ?", [person])
