/**
 * The ends of a copy from one store to another, and the end that is a file. Values pass as texts that each engine writes and
 * reads itself, so that none goes through a number of JavaScript: an integer keeps all of its 64 bits, bytes are hexadecimal.
 * A target has neither triggers nor references until all rows are in: nothing is counted twice, and no order is needed.
 */
import Database from "better-sqlite3"
import { Data, Effect } from "effect"
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

/** Rows of a table that are read or written at once, at most. */
export const batch = 500

export interface CopySource {
  /** Begins to read a table in the order of its key; gives the next rows each time: less than `batch` at the end. */
  readonly read: (
    table: CopiedTable
  ) => Effect.Effect<Effect.Effect<ReadonlyArray<CopiedRow>, StoreUnavailable>, StoreUnavailable>
}

export interface CopyTarget extends CopySource {
  readonly insert: (table: CopiedTable, rows: ReadonlyArray<CopiedRow>) => Effect.Effect<void, StoreUnavailable>
  /** Makes indexes, references and triggers, which it does without while rows are inserted. */
  readonly complete: Effect.Effect<void, StoreUnavailable | CopyFailed>
}

/** The copy was not made, and its target is not there; or it is complete, and the message says what is left to do. */
export class CopyFailed extends Data.TaggedError("CopyFailed")<{ readonly message: string }> {}

/** The tables of the newest schema. A file may have others beside them, as of Litestream. */
export const copiedTables = (): ReadonlyArray<CopiedTable> => {
  const database = new Database(":memory:")
  for (const definition of Object.values(migrations).flat()) database.exec(definition)
  const names = database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'")
    .pluck()
  const columnsOf = database.prepare<[string], { name: string; type: string; pk: number }>(
    "SELECT name, type, pk FROM pragma_table_info(?)"
  )
  const tables = names.all().map((name): CopiedTable => {
    const columns = columnsOf.all(name)
    const keyed = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk)
    return {
      name,
      // The one table whose rows have an order that no column has.
      columns: name === "endpoints" ? [{ name: "rowid", type: "INTEGER" }, ...columns] : columns,
      key: (keyed.length === 0 ? columns : keyed).map((column) => column.name)
    }
  })
  database.close()
  return tables
}

const printed: Readonly<Record<string, (column: string) => string>> = {
  INTEGER: (column) => `CAST(${column} AS TEXT)`,
  BLOB: (column) => `iif(${column} IS NULL, NULL, lower(hex(${column})))`
}
const parsed: Readonly<Record<string, string>> = { INTEGER: "CAST(? AS INTEGER)", BLOB: "unhex(?)" }

/** Reads a database that nothing else writes meanwhile. Texts are as PostgreSQL has them: without U+0000. */
export const fileSource = (database: Database.Database): CopySource => ({
  read: ({ columns, key, name }) =>
    Effect.sync(() => {
      const values = columns.map((column) => printed[column.type]?.(column.name) ?? column.name)
      const rows = database
        .prepare<[], Array<string | null>>(`SELECT ${values.join(", ")} FROM ${name} ORDER BY ${key.join(", ")}`)
        .raw()
        .iterate()
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

/** Writes into a new database, which is not durable before `complete` has ended and its file is synced. */
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
  const statements = new Map(
    tables.map(({ columns, name }) => {
      const values = columns.map(({ type }) => parsed[type] ?? "?").join(", ")
      const names = columns.map((column) => column.name).join(", ")
      return [name, database.prepare(`INSERT INTO ${name} (${names}) VALUES (${values})`)]
    })
  )
  return {
    ...fileSource(database),
    insert: ({ name }, rows) =>
      Effect.sync(() => {
        for (const row of rows) statements.get(name)?.run(row)
      }),
    complete: Effect.gen(function* () {
      for (const { sql } of later) database.exec(sql)
      database.exec("COMMIT")
      const [dangling] = database.pragma("foreign_key_check") as ReadonlyArray<{ table: string; parent: string }>
      if (dangling === undefined) return
      return yield* new CopyFailed({
        message: `A row of ${dangling.table} names a row of ${dangling.parent} that is not there: nothing was copied`
      })
    })
  }
}
