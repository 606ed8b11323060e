/** Facts of a database file for backup and restore. These queries run on a connection of their own, blocking. */
import type Database from "better-sqlite3"

export interface WalletFacts {
  readonly wallet: string
  /** Before the jump that it owes. */
  readonly next: number
  readonly jump: number
}

export interface DatabaseFacts {
  /** The number of the newest migration, and the version of tilld that last wrote. */
  readonly schema: number
  readonly tilld: string | null
  readonly installation: string
  /** The fingerprint of the master key; null where nothing is sealed. */
  readonly masterKey: string | null
  /** Unix milliseconds of the newest payment, transition, event or act of an operator but a restore; null: there is none. */
  readonly newest: number | null
  readonly payments: number
  readonly wallets: ReadonlyArray<WalletFacts>
}

const row = <Row>(database: Database.Database, sql: string): Row | undefined => database.prepare<[], Row>(sql).get()

/** Whether the file has no tables, as after `touch`. */
export const isEmpty = (database: Database.Database): boolean =>
  row(database, "SELECT 1 FROM sqlite_schema") === undefined

const metaOf = (database: Database.Database, key: string): string | null =>
  database.prepare<[string], { value: string }>("SELECT value FROM meta WHERE key = ?").get(key)?.value ?? null

/** Throws where the database is damaged, or has other tables than tilld's. */
export const factsOf = (database: Database.Database): DatabaseFacts => ({
  schema: row<{ id: number | null }>(database, "SELECT max(migration_id) AS id FROM migrations")?.id ?? 0,
  installation: row<{ installation: string }>(database, "SELECT installation FROM numbering")?.installation ?? "",
  tilld: metaOf(database, "written_by"),
  masterKey: metaOf(database, "master_key_fingerprint"),
  payments: row<{ n: number }>(database, "SELECT count(*) AS n FROM payments")?.n ?? 0,
  newest:
    row<{ newest: number | null }>(
      database,
      `SELECT max(at) AS newest FROM (
         SELECT max(created_at) AS at FROM payments UNION ALL SELECT max(at) FROM transitions
         UNION ALL SELECT max(created_at) FROM events UNION ALL SELECT max(at) FROM audit WHERE act <> 'restore')`
    )?.newest ?? null,
  wallets: database
    .prepare<[], WalletFacts>(
      "SELECT fingerprint AS wallet, next_index AS next, jump FROM wallets ORDER BY fingerprint"
    )
    .all()
})

/** The problems found by the integrity check; empty where the database is sound. */
export const damageOf = (database: Database.Database): ReadonlyArray<string> =>
  (database.pragma("integrity_check(5)") as ReadonlyArray<{ integrity_check: string }>)
    .map((line) => line.integrity_check)
    .filter((line) => line !== "ok")
