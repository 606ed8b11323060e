/**
 * The ends of a copy from one store to another, and the end that is a file. Values pass as texts that each engine writes and
 * reads itself, so that none goes through a number of JavaScript: an integer keeps its 64 bits, and bytes are hexadecimal.
 * A target has no indexes, triggers or references until all rows are in: nothing is counted twice, and no order is needed.
 */
import Database from "better-sqlite3"
import { Effect } from "effect"
import type { StoreUnavailable } from "./Db.ts"
import { migrations } from "./schema.ts"

/** Values in the order of the table's columns; null for NULL. */
export type CopiedRow = ReadonlyArray<string | null>

export interface CopiedTable {
  readonly name: string
  readonly columns: ReadonlyArray<{ readonly name: string; readonly type: string }>
  /** What its rows are ordered by: the primary key, or all columns where it has none. */
  readonly key: ReadonlyArray<string>
}

/** Rows that are read or written at once, at most. */
export const batch = 500

export interface CopySource {
  /** Begins to read a table in the order of its key; gives the next rows each time: fewer than `batch` at the end. */
  readonly read: (
    table: CopiedTable
  ) => Effect.Effect<Effect.Effect<ReadonlyArray<CopiedRow>, StoreUnavailable>, StoreUnavailable>
}

export interface CopyTarget extends CopySource {
  readonly insert: (table: CopiedTable, rows: ReadonlyArray<CopiedRow>) => Effect.Effect<void, StoreUnavailable>
  /** Makes indexes, triggers and references, after the last row. */
  readonly complete: Effect.Effect<void, StoreUnavailable>
}

/** The tables of the newest schema. A file may have others beside them, as of Litestream. */
export const copiedTables = (): ReadonlyArray<CopiedTable> => {
  const database = new Database(":memory:")
  for (const definition of Object.values(migrations).flat()) database.exec(definition)
  const names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
  const columnsOf = database.prepare<[string], { name: string; type: string; pk: number }>(
    "SELECT name, type, pk FROM pragma_table_info(?)"
  )
  return database
    .prepare<[], string>(names)
    .pluck()
    .all()
    .map((name) => {
      const columns = columnsOf.all(name)
      const keyed = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk)
      return {
        name,
        // The one table whose rows have an order that no column has.
        columns: name === "endpoints" ? [{ name: "rowid", type: "INTEGER" }, ...columns] : columns,
        key: (keyed.length === 0 ? columns : keyed).map((column) => column.name)
      }
    })
}

/** In what SQLite and PostgreSQL have in common. Without the table's name the order would be that of the texts. */
export const selectRows = ({ columns, key, name: table }: CopiedTable): string => {
  const texts = columns.map(({ name, type }) => {
    if (type === "BLOB") return `CASE WHEN ${name} IS NULL THEN NULL ELSE hex(${name}) END`
    return type === "INTEGER" ? `CAST(${name} AS TEXT)` : name
  })
  return `SELECT ${texts.join(", ")} FROM ${table} ORDER BY ${key.map((name) => `${table}.${name}`).join(", ")}`
}

/**
 * Reads a database that nothing else writes meanwhile. Texts are as PostgreSQL has them: without U+0000, which no key has, so
 * that the order is the same.
 */
export const fileSource = (database: Database.Database): CopySource => ({
  read: (table) =>
    Effect.sync(() => {
      const rows = database.prepare<[], CopiedRow>(selectRows(table)).raw().iterate()
      return Effect.sync(() => {
        const read: Array<CopiedRow> = []
        while (read.length < batch) {
          const { done, value } = rows.next()
          if (done) break
          read.push(value.map((text: string | null) => text?.replaceAll("\0", "\ufdd0") ?? null))
        }
        return read
      })
    })
})

/** Writes into a new database, of which nothing is durable before the caller has synced its file. */
export const fileTarget = (database: Database.Database, tables: ReadonlyArray<CopiedTable>): CopyTarget => {
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"]) database.pragma(pragma)
  const later = database
    .prepare<[], { type: string; name: string; sql: string }>(
      "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY rowid"
    )
    .all()
  for (const { name, type } of later) database.exec(`DROP ${type} ${name}`)
  for (const { name } of tables) database.exec(`DELETE FROM ${name}`)
  database.exec("BEGIN")
  const parsed: Readonly<Record<string, string>> = { INTEGER: "CAST(? AS INTEGER)", BLOB: "unhex(?)" }
  return {
    ...fileSource(database),
    insert: ({ columns, name }, rows) =>
      Effect.sync(() => {
        const values = columns.map(({ type }) => parsed[type] ?? "?").join(", ")
        const into = `${name} (${columns.map((column) => column.name).join(", ")})`
        const statement = database.prepare(`INSERT INTO ${into} VALUES (${values})`)
        for (const row of rows) statement.run(row)
      }),
    complete: Effect.sync(() => {
      for (const { sql } of [...later, { sql: "COMMIT" }]) database.exec(sql)
    })
  }
}
