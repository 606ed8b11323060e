import { parentPort } from "node:worker_threads"
import Database from "better-sqlite3"
import { mustNotOpen } from "./logOwner.ts"

// The worker thread of `checkpoints.ts`. It replies when only a few pages of the write-ahead log of the database at
// `path` are not in the database file.

/** Pages that the writer can move itself without a noticeable delay. */
const few = 500
const rounds = 5

interface Progress {
  /** Pages in the log. */
  readonly log: number
  /** Pages of them that are in the database file too. */
  readonly checkpointed: number
}

const checkpoint = (path: string) => {
  const database = new Database(path, { fileMustExist: true })
  database.pragma("synchronous = FULL")
  let moved = 0
  try {
    for (let round = 0; round < rounds; round++) {
      const [{ checkpointed, log }] = database.pragma("wal_checkpoint(PASSIVE)") as [Progress]
      if (log - moved <= few) break
      moved = checkpointed
    }
  } catch (error) {
    // A full disk: it has moved what there was room for, and the store says so with its next commit.
    if (!(error instanceof Database.SqliteError) || error.code !== "SQLITE_FULL") throw error
  } finally {
    database.close()
  }
}

parentPort?.on("message", (path: string) => {
  // The file may have been replaced since the commit.
  if (mustNotOpen(path) === undefined) checkpoint(path)
  parentPort?.postMessage(null)
})
