import { parentPort } from "node:worker_threads"
import Database from "better-sqlite3"

// What runs on the thread. It answers when it has moved all but little of the log of the database at `path`.

/** What came into the log during a round, in pages, that the writer can move without holding anybody up. */
const few = 500
const rounds = 5

interface Progress {
  /** Pages in the log. */
  readonly log: number
  /** Of them, those that are in the file too. */
  readonly checkpointed: number
}

parentPort?.on("message", (path: string) => {
  const database = new Database(path, { fileMustExist: true })
  database.pragma("synchronous = FULL")
  let moved = 0
  for (let round = 0; round < rounds; round++) {
    const [{ checkpointed, log }] = database.pragma("wal_checkpoint(PASSIVE)") as [Progress]
    if (log - moved <= few) break
    moved = checkpointed
  }
  database.close()
  parentPort?.postMessage(null)
})
