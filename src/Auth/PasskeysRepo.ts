import type { PersonId } from "../Domain/Ids.ts"
import { allRows, changes, type Db, execute, oneRow } from "../Sql.ts"

/** A WebAuthn credential. Times in Unix milliseconds. */
export interface Passkey {
  /** As the authenticator made it, in base64url. */
  readonly id: string
  readonly person: PersonId
  /** What its person calls it. */
  readonly name: string
  /** COSE. */
  readonly publicKey: Uint8Array
  readonly counter: number
  readonly createdAt: number
  readonly lastUsedAt: number | undefined
}

const columns = `id, person_id AS person, name, public_key AS publicKey, counter, created_at AS createdAt,
  last_used_at AS lastUsedAt`

/** Maximum number per person. */
export const mostPasskeys = 20
/** Maximum length of an id, and of a public key in bytes: those of authenticators are shorter. */
export const longestId = 1_400
export const longestKey = 2_048

export const byId = (db: Db, id: string) => oneRow<Passkey>(db, `SELECT ${columns} FROM passkeys WHERE id = ?`, [id])

/** A person's passkeys, oldest first. */
export const list = (db: Db, person: PersonId) =>
  allRows<Passkey>(db, `SELECT ${columns} FROM passkeys WHERE person_id = ? ORDER BY created_at, id`, [person])

/** Stores a passkey, unless there is one with its id. */
export const insert = (passkey: Omit<Passkey, "lastUsedAt">) =>
  execute(
    `INSERT INTO passkeys (id, person_id, name, public_key, counter, created_at)
       VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    [passkey.id, passkey.person, passkey.name, passkey.publicKey, passkey.counter, passkey.createdAt]
  )

/**
 * Whether it is still there.
 *
 * @param at Unix milliseconds
 */
export const used = (id: string, counter: number, at: number) =>
  changes("UPDATE passkeys SET counter = ?, last_used_at = ? WHERE id = ?", [counter, at, id])

/** Whether there was one. */
export const remove = (person: PersonId, id: string) =>
  changes("DELETE FROM passkeys WHERE person_id = ? AND id = ?", [person, id])

/** Removes all of a person. */
export const removeAll = (person: PersonId) => execute("DELETE FROM passkeys WHERE person_id = ?", [person])
