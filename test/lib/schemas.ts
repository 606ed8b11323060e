import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { root } from "./processes.ts"

/** Where the schema of each release lies, with rows of that time: `<version>.sql`. */
export const schemasFolder = join(root, "test/vectors/schemas")

/** The versions that have been released, and the SQL of each. */
export const keptSchemas = (): ReadonlyArray<readonly [version: string, sql: string]> =>
  existsSync(schemasFolder)
    ? readdirSync(schemasFolder)
        .filter((file) => file.endsWith(".sql"))
        .map((file) => [file.slice(0, -".sql".length), readFileSync(join(schemasFolder, file), "utf8")])
    : []

type Row = Readonly<Record<string, unknown>>

const using = <A>(path: string, use: (database: Database.Database) => A): A => {
  const database = new Database(path)
  try {
    return use(database)
  } finally {
    database.close()
  }
}

interface SchemaEntry {
  readonly type: string
  readonly name: string
  readonly sql: string
}

/** Everything that was created, in the order of its creation. */
const schemaIn = (database: Database.Database) =>
  database
    .prepare<[], SchemaEntry>(
      "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY rowid"
    )
    .all()

const tablesIn = (database: Database.Database) => schemaIn(database).filter(({ type }) => type === "table")

/** Those that are stored: generated ones are not written. */
const columnsIn = (database: Database.Database, table: string) =>
  database.prepare<[string], { name: string }>("SELECT name FROM pragma_table_info(?)").all(table)

/** The statements that created the database, by the name of what each created. */
export const schemaOf = (path: string): Readonly<Record<string, string>> =>
  using(path, (database) => Object.fromEntries(schemaIn(database).map(({ name, sql }) => [name, sql])))

/** The stored rows of each table. */
export const rowsOf = (path: string): Readonly<Record<string, ReadonlyArray<Row>>> =>
  using(path, (database) =>
    Object.fromEntries(
      tablesIn(database).map(({ name }) => {
        const columns = columnsIn(database, name).map((column) => `"${column.name}"`)
        return [name, database.prepare<[], Row>(`SELECT ${columns} FROM "${name}" ORDER BY ${columns}`).all()]
      })
    )
  )

/** SQL that makes the same database: tables, rows, and then indexes and triggers. */
export const dump = (path: string): string =>
  using(path, (database) => {
    const inserts = tablesIn(database).flatMap(({ name }) => {
      const columns = columnsIn(database, name).map((column) => `"${column.name}"`)
      const values = columns.map((column) => `quote(${column})`).join(" || ', ' || ")
      return database
        .prepare<[], string>(`SELECT 'INSERT INTO "${name}" (${columns}) VALUES (' || ${values} || ')' FROM "${name}"`)
        .pluck()
        .all()
    })
    const tables = tablesIn(database).map(({ sql }) => sql)
    const others = schemaIn(database).flatMap(({ sql, type }) => (type === "table" ? [] : [sql]))
    return [...tables, ...inserts, ...others].map((statement) => `${statement};\n`).join("")
  })

/** Makes the database that `dump` gave the SQL of. */
export const restoreDump = (path: string, sql: string): void =>
  using(path, (database) => {
    // Rows refer to rows of tables that follow.
    database.pragma("foreign_keys = OFF")
    database.exec(`BEGIN;\n${sql}COMMIT`)
  })
