import { Effect, Queue } from "effect"
import type { Db } from "./Db.ts"
import { threadOf } from "./workerThread.ts"

/** A checkpoint runs after this many writing statements: about as many pages of the log. */
const every = 4_000

/** A log of the usual size takes seconds on a slow disk. */
const deadline = "5 minutes"

// In the bundle, a separate file next to the main one.
const checkpointer = new URL("./checkpointer.js", import.meta.url)

/**
 * Checkpoints the database at `path`: moves its write-ahead log into the database file. By itself SQLite does so within a
 * commit, while all requests wait: up to half a second for 16 MiB. Here a thread moves most of the log in parallel to
 * commits; `sync` flushes the file, which SQLite leaves to the connection that reaches the log's end; and the writer
 * moves the small rest between two commits. SQLite restarts the log only when nothing is left in it. The returned effect
 * runs on the writer's connection after each commit.
 */
export const checkpoints = (path: string, sync: Effect.Effect<void>, file = checkpointer) =>
  Effect.gen(function* () {
    const move = yield* threadOf<string, null>(file, deadline)
    const due = yield* Queue.sliding<void>(1)
    let movedAt = 0
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
        if (stage === "waiting" && db.writes() - movedAt >= every) {
          stage = "moving"
          due.unsafeOffer(undefined)
        }
        if (stage !== "moved") return Effect.void
        stage = "waiting"
        movedAt = db.writes()
        // A failure is retried with the next checkpoint. A disk error shows up in the next command, too.
        return Effect.ignoreLogged(db.get("PRAGMA wal_checkpoint(PASSIVE)"))
      })
  })
