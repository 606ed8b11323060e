/** The numbered definitions of the store, and which of them a file has. `migrate.ts` brings one to the newest. */
import { existsSync } from "node:fs"
import Database from "better-sqlite3"
import { Either } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import start from "../migrations/0001_start.ts"
import { StoreUnusable } from "./StoreUnusable.ts"

/** Statements, in SQLite's words. */
export type Migration = ReadonlyArray<string>

/** Numbered, forward only. A migration that has shipped is never edited. */
export const migrations: Readonly<Record<string, Migration>> = {
  "0001_start": start
}

export const numberOf = (name: string): number => Number.parseInt(name, 10)

/** The number of the newest schema that this version knows. */
export const newestSchema = Math.max(...Object.keys(migrations).map(numberOf))

/** In the table meta: the last version that opened the database to write. */
const writtenBy = "written_by"
export const selectVersion = `SELECT value FROM meta WHERE key = '${writtenBy}'`
export const noteVersion = `INSERT INTO meta (key, value) VALUES ('${writtenBy}', ?)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE meta.value <> excluded.value`

/** What to do about a store whose schema is newer; `writer`: the version that wrote it, as far as that can be read. */
export const newerSchema = (store: string, writer: string | undefined, schema: number, known: number) => {
  const version = writer === undefined ? "a newer tilld" : `tilld ${writer}`
  return new StoreUnusable({
    message: `${store} was written by ${version} and has its schema ${schema}; this is tilld ${packageJson.version}, which knows schema ${known}. Start ${version} again, or restore a backup from before it was installed.`
  })
}

/**
 * Whether the file at `path` has the newest schema, and this version has opened it before: then a start need not read in what
 * migrates. False where it cannot be read: to migrate it says why.
 */
export const isNewest = (path: string): boolean =>
  existsSync(path) &&
  Either.getOrElse(
    Either.try(() => {
      const database = new Database(path, { fileMustExist: true })
      try {
        // Closing it may move the log into the file.
        database.pragma("synchronous = FULL")
        const schema = database.prepare("SELECT max(migration_id) FROM migrations").pluck().get()
        return schema === newestSchema && database.prepare(selectVersion).pluck().get() === packageJson.version
      } finally {
        database.close()
      }
    }),
    () => false
  )
