import { statSync } from "node:fs"
import { Effect, Queue } from "effect"
import type { Db } from "./Db.ts"
import { threadOf } from "./workerThread.ts"

/**
 * Bytes of the log from which a checkpoint runs. SQLite writes each page that a commit changes whole, so that a lone create
 * takes 70 KB of it; and it cuts the file to this size once it restarts the log, so that its size says how much is in it.
 */
export const longestLog = 4 * 1024 * 1024
/** Further bytes before the next attempt, where a reader has kept one from moving all. */
const step = longestLog / 4

/** A log of the usual size takes seconds on a slow disk. */
const deadline = "5 minutes"

// In the bundle, a separate file next to the main one.
const checkpointer = new URL("./checkpointer.js", import.meta.url)

/**
 * Checkpoints the database at `path`: moves its write-ahead log into the database file. By itself SQLite does so within a
 * commit, while all requests wait: up to half a second for 16 MiB. Here a thread moves most of the log in parallel to
 * commits; `sync` flushes the file, which SQLite leaves to the connection that reaches the log's end; and the writer
 * moves the small rest between two commits. SQLite restarts the log only when nothing is left in it. The returned effect
 * runs on the writer's connection after each commit. After one that failed it checkpoints however short the log is: on a full
 * disk what is in the database file needs no further room, and the log starts again in the room that it has.
 *
 * @param isFull whether the last commit failed for want of room
 */
export const checkpoints = (path: string, sync: Effect.Effect<void>, isFull: () => boolean, file = checkpointer) =>
  Effect.gen(function* () {
    const move = yield* threadOf<string, null>(file, deadline)
    const due = yield* Queue.sliding<void>(1)
    let tried = 0
    let stage: "waiting" | "moving" | "moved" = "waiting"

    // If there is no thread the writer moves the whole log, as SQLite does by default.
    const moveMost = Effect.gen(function* () {
      yield* Queue.take(due)
      yield* Effect.catchTag(move(path), "NoThread", ({ cause }) =>
        Effect.logWarning("no thread checkpoints the database: some commits take longer").pipe(
          Effect.annotateLogs({ reason: String(cause) })
        )
      )
      yield* sync
      stage = "moved"
    })
    yield* Effect.forkScoped(Effect.forever(moveMost))

    return (db: Db): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (stage === "moving") return Effect.void
        const bytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
        // It was cut.
        if (bytes < tried) tried = 0
        if (stage === "waiting") {
          if ((bytes > longestLog && bytes >= tried + step) || isFull()) {
            stage = "moving"
            due.unsafeOffer(undefined)
          }
          return Effect.void
        }
        stage = "waiting"
        tried = bytes
        // A failure is retried with the next checkpoint. A disk error shows up in the next command, too.
        return Effect.ignoreLogged(db.get("PRAGMA wal_checkpoint(PASSIVE)"))
      })
  })
