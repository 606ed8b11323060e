import { copyFileSync, existsSync, rmSync } from "node:fs"
import Database from "better-sqlite3"
import { type Db, fromDatabase } from "../../src/Sql/Db.ts"

/** The connections of one life after another to one file: to compile all statements again takes longer than a life. */
export class Store {
  readonly #writing: Database.Database
  readonly #reading: Database.Database
  readonly writer: Db
  readonly reader: Db

  constructor(path: string) {
    const open = (readonly: boolean) => {
      const database = new Database(path, { readonly })
      // Only a power cut would tell it from FULL, and none comes.
      database.pragma("synchronous = OFF")
      database.pragma("foreign_keys = ON")
      return database
    }
    this.#writing = open(false)
    this.#reading = open(true)
    this.writer = fromDatabase(this.#writing)
    this.reader = fromDatabase(this.#reading)
  }

  /** The process that used it is dead: what it did not commit is gone. */
  abandon(): void {
    if (this.#writing.inTransaction) this.#writing.exec("ROLLBACK")
  }

  close(): void {
    this.#reading.close()
    this.#writing.close()
  }
}

/** The files of a database, without the one that only running processes share. */
const suffixes = ["", "-wal"]

export const removeFiles = (path: string): void => {
  for (const suffix of [...suffixes, "-shm"]) rmSync(path + suffix, { force: true })
}

/** The files at `to` become those at `from`. */
export const copyFiles = (from: string, to: string): void => {
  removeFiles(to)
  for (const suffix of suffixes) if (existsSync(from + suffix)) copyFileSync(from + suffix, to + suffix)
}
