import { Effect } from "effect"
import { AccountId, PersonId } from "../Domain/Ids.ts"
import type { Person, Role } from "../Domain/Person.ts"
import { type Db, execute } from "../Sql.ts"
import { behind, type ListPage } from "./listPage.ts"

export interface PersonRow {
  readonly id: string
  readonly name: string
  readonly role: Role
  readonly account_id: string | null
  readonly created_at: number
  readonly disabled_at: number | null
}

export const toPerson = (row: PersonRow): Person => ({
  id: PersonId.make(row.id, true),
  name: row.name,
  role: row.role,
  account: row.account_id === null ? undefined : AccountId.make(row.account_id, true),
  createdAt: row.created_at,
  disabledAt: row.disabled_at ?? undefined
})

const orUndefined = (row: PersonRow | undefined) => (row === undefined ? undefined : toPerson(row))

const columns = "id, name, role, account_id, created_at, disabled_at"

export const insert = ({ account, createdAt, id, name, role }: Person) =>
  execute("INSERT INTO people (id, name, role, account_id, created_at) VALUES (?, ?, ?, ?, ?)", [
    ...[id, name, role],
    account ?? null,
    createdAt
  ])

export const byId = (db: Db, id: string) =>
  Effect.map(db.get<PersonRow>(`SELECT ${columns} FROM people WHERE id = ?`, [id]), orUndefined)

/** The first person with this name, role and account who is not disabled. */
export const named = (db: Db, { account, name, role }: Pick<Person, "account" | "name" | "role">) =>
  Effect.map(
    db.get<PersonRow>(
      `SELECT ${columns} FROM people WHERE account_id IS ? AND name = ? AND role = ? AND disabled_at IS NULL
       ORDER BY created_at, id LIMIT 1`,
      [account ?? null, name, role]
    ),
    orUndefined
  )

/** Maximum number of people of an account who may sign in. */
export const mostPeople = 200

/** How many people of an account may sign in. */
export const countOf = (db: Db, account: AccountId) =>
  Effect.map(
    db.get<{ count: number }>(
      "SELECT count(*) AS count FROM people INDEXED BY people_signing_in WHERE account_id = ? AND disabled_at IS NULL",
      [account]
    ),
    (row) => row?.count ?? 0
  )

/** A person of this name and account, of any role: one who is not disabled, if there is one. */
export const ofName = (db: Db, { account, name }: Pick<Person, "account" | "name">) =>
  Effect.map(
    db.get<PersonRow>(
      `SELECT ${columns} FROM people WHERE account_id IS ? AND name = ? ORDER BY disabled_at IS NOT NULL LIMIT 1`,
      [account ?? null, name]
    ),
    orUndefined
  )

/** A page of the people of an account, or of all; disabled ones too, oldest first. */
export const list = (db: Db, page: ListPage, account?: AccountId) => {
  const [isBehind, params] = behind("people", page)
  const [isOf, of] = account === undefined ? ["1", []] : ["account_id = ?", [account]]
  return Effect.map(
    db.all<PersonRow>(`SELECT ${columns} FROM people WHERE ${isOf} AND ${isBehind} ORDER BY created_at, id LIMIT ?`, [
      ...of,
      ...params,
      page.limit
    ]),
    (rows) => rows.map(toPerson)
  )
}

export const changeRole = (id: PersonId, role: Role) => execute("UPDATE people SET role = ? WHERE id = ?", [role, id])

/** @param at Unix milliseconds; undefined: enables the person again */
export const disable = (id: PersonId, at: number | undefined) =>
  execute("UPDATE people SET disabled_at = ? WHERE id = ?", [at ?? null, id])
