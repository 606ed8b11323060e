import { closeSync, openSync, writeSync } from "node:fs"
import Database from "better-sqlite3"

/** Overwrites every page of a table, or of an index, as a failing disk may. How many there were. */
export const damagePages = (path: string, table: string): number => {
  const database = new Database(path)
  const size = Number(database.pragma("page_size", { simple: true }))
  const pages = database.prepare("SELECT pageno FROM dbstat WHERE name = ?").pluck().all(table) as Array<number>
  // Moves the log into the file, where the pages are.
  database.close()
  const file = openSync(path, "r+")
  for (const page of pages) writeSync(file, Buffer.alloc(size, 0x5a), 0, size, (page - 1) * size)
  closeSync(file)
  return pages.length
}
