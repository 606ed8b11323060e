import { copyFileSync, existsSync, rmSync } from "node:fs"
import Database from "better-sqlite3"
import { type Db, fromDatabase } from "../../src/Sql/Db.ts"
import { type Transactions, transactionsOn } from "../../src/Sql/Writer.ts"

/** The connections of one life after another to one database. */
export interface Store {
  readonly transactions: Transactions
  readonly reader: Db
  /** The process that used it is dead: what it did not commit is gone. */
  readonly abandon: () => void
  readonly close: () => void
}

/** A connection that only reads, of what checks a daemon. */
export interface Rows {
  readonly all: <Row>(sql: string) => ReadonlyArray<Row>
  readonly close: () => void
}

/** Where the databases of a simulation are; each has the path of a file as its name. */
export interface Engine {
  /** Makes the database that others begin with: an empty one, which takes a promise, or as another that was made so. */
  readonly make: (path: string, statements: ReadonlyArray<string>, from?: string) => Promise<void> | void
  /** Makes one that begins as another. */
  readonly begin: (path: string, from: string) => void
  readonly open: (path: string) => Store
  readonly rows: (path: string) => Rows
  /** Keeps what it has now, between two transactions, and puts it back while nobody has it open. */
  readonly keep: (path: string) => void
  readonly putBack: (path: string) => void
  readonly remove: (path: string) => void
}

/** To compile all statements again takes longer than a life: the connections stay open. */
export const openFile = (path: string): Store => {
  const open = (readonly: boolean) => {
    const database = new Database(path, { readonly })
    // Only a power cut would tell it from FULL, and none comes.
    database.pragma("synchronous = OFF")
    database.pragma("foreign_keys = ON")
    return database
  }
  const [writing, reading] = [open(false), open(true)]
  return {
    transactions: transactionsOn(fromDatabase(writing)),
    reader: fromDatabase(reading),
    abandon: () => {
      if (writing.inTransaction) writing.exec("ROLLBACK")
    },
    close: () => {
      reading.close()
      writing.close()
    }
  }
}

/** The files of a database, without the one that only running processes share. */
const suffixes = ["", "-wal"]

const removeFiles = (path: string): void => {
  for (const suffix of [...suffixes, "-shm"]) rmSync(path + suffix, { force: true })
}

/** The files at `to` become those at `from`. */
const copyFiles = (from: string, to: string): void => {
  removeFiles(to)
  for (const suffix of suffixes) if (existsSync(from + suffix)) copyFileSync(from + suffix, to + suffix)
}

const files: Engine = {
  make: async (path, statements, from) => {
    if (from === undefined) {
      const { migrateFile } = await import("../../src/Sql/migrate.ts")
      const { Effect } = await import("effect")
      await Effect.runPromise(migrateFile(path))
    } else copyFileSync(from, path)
    const database = new Database(path)
    database.pragma("journal_mode = WAL")
    for (const statement of statements) database.exec(statement)
    database.close()
  },
  begin: (path, from) => copyFileSync(from, path),
  open: openFile,
  rows: (path) => {
    const database = new Database(path, { readonly: true })
    const prepared = new Map<string, Database.Statement>()
    return {
      all: <Row>(sql: string) => {
        const statement = prepared.get(sql) ?? database.prepare(sql)
        prepared.set(sql, statement)
        return statement.all() as ReadonlyArray<Row>
      },
      close: () => void database.close()
    }
  },
  keep: (path) => copyFiles(path, `${path}.copy`),
  putBack: (path) => copyFiles(`${path}.copy`, path),
  remove: (path) => {
    for (const one of [path, `${path}.copy`]) removeFiles(one)
  }
}

const { TEST_POSTGRES } = process.env

export const engine: Engine =
  TEST_POSTGRES === undefined ? files : (await import("./serverEngine.ts")).makeServerEngine(Number(TEST_POSTGRES))
