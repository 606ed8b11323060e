import type { AccountId, PersonId } from "../Domain/Ids.ts"
import type { Person, Role } from "../Domain/Person.ts"
import { allRows, countRows, type Db, execute, oneRow } from "../Sql.ts"
import { behind, type ListPage } from "./AccountsRepo.ts"

const columns = "id, name, role, account_id AS account, created_at AS createdAt, disabled_at AS disabledAt"

/** The columns of a person in a row of what is the person's, where `id` and `createdAt` are its own. */
export const personColumns = `p.id AS personId, p.name, p.role, p.account_id AS account, p.created_at AS personCreatedAt,
  p.disabled_at AS disabledAt`

export interface PersonColumns extends Omit<Person, "id" | "createdAt"> {
  readonly personId: PersonId
  readonly personCreatedAt: number
}

/** Such a row with the person as one field. */
export const withPerson = <Row extends PersonColumns>(row: Row) => {
  const { account, disabledAt, name, personCreatedAt: createdAt, personId: id, role, ...own } = row
  const person: Person = { id, name, role, account, createdAt, disabledAt }
  return { ...own, person }
}

export const insert = ({ account, createdAt, id, name, role }: Person) =>
  execute("INSERT INTO people (id, name, role, account_id, created_at) VALUES (?, ?, ?, ?, ?)", [
    ...[id, name, role],
    account ?? null,
    createdAt
  ])

export const byId = (db: Db, id: string) => oneRow<Person>(db, `SELECT ${columns} FROM people WHERE id = ?`, [id])

/** The first person with this name, role and account who is not disabled. */
export const named = (db: Db, { account, name, role }: Pick<Person, "account" | "name" | "role">) =>
  oneRow<Person>(
    db,
    `SELECT ${columns} FROM people WHERE account_id IS NOT DISTINCT FROM ? AND name = ? AND role = ? AND disabled_at IS NULL
     ORDER BY created_at, id LIMIT 1`,
    [account ?? null, name, role]
  )

/** Maximum number of people of an account who may sign in. */
export const mostPeople = 200

/** How many people of an account may sign in. */
export const countOf = (db: Db, account: AccountId) =>
  countRows(db, "SELECT 1 FROM people INDEXED BY people_signing_in WHERE account_id = ? AND disabled_at IS NULL", [
    account
  ])

/** A person of this name and account, of any role: one who is not disabled, if there is one. */
export const ofName = (db: Db, { account, name }: Pick<Person, "account" | "name">) =>
  oneRow<Person>(
    db,
    `SELECT ${columns} FROM people WHERE account_id IS NOT DISTINCT FROM ? AND name = ? ORDER BY disabled_at IS NOT NULL LIMIT 1`,
    [account ?? null, name]
  )

/** A page of the people of an account, or of all; disabled ones too, oldest first. */
export const list = (db: Db, page: ListPage, account?: AccountId) => {
  const [isBehind, params] = behind("people", page)
  const [isOf, of] = account === undefined ? ["TRUE", []] : ["account_id = ?", [account]]
  return allRows<Person>(
    db,
    `SELECT ${columns} FROM people WHERE ${isOf} AND ${isBehind} ORDER BY created_at, id LIMIT ?`,
    [...of, ...params, page.limit]
  )
}

export const changeRole = (id: PersonId, role: Role) => execute("UPDATE people SET role = ? WHERE id = ?", [role, id])

/** @param at Unix milliseconds; undefined: enables the person again */
export const disable = (id: PersonId, at: number | undefined) =>
  execute("UPDATE people SET disabled_at = ? WHERE id = ?", [at ?? null, id])
