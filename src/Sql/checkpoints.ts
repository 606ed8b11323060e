import { Effect, Queue } from "effect"
import type { Db } from "./Db.ts"
import { threadOf } from "./thread.ts"

/** Statements that write until the log is moved: about as many pages of it. */
const every = 4_000

/** A slow disk takes seconds for a log of its usual size. */
const deadline = "5 minutes"

// In the bundle a file of its own, beside the one that this is a part of.
const checkpointer = new URL("./checkpointer.js", import.meta.url)

/**
 * Moves the write-ahead log of the database at `path` into its file. Left to itself SQLite does so inside a commit, where
 * everybody waits for the disk: half a second for 16 MiB at times. So a thread moves the most of it beside the commits,
 * `sync` brings that to the disk, which SQLite leaves to whoever reaches the log's end, and what was written meanwhile is
 * moved between two commits: that is little, and only when nothing is left in the log does SQLite begin it anew. What this
 * gives is run on the writer's connection after each commit.
 */
export const checkpoints = (path: string, sync: Effect.Effect<void>, file = checkpointer) =>
  Effect.gen(function* () {
    const move = yield* threadOf<string, null>(file, deadline)
    const due = yield* Queue.sliding<void>(1)
    let movedAt = 0
    let stage: "waiting" | "moving" | "moved" = "waiting"

    // Without a thread the writer has all of it to move, as it would by itself.
    const moveMost = Effect.gen(function* () {
      yield* Queue.take(due)
      yield* Effect.catchTag(move(path), "NoThread", ({ cause }) =>
        Effect.logWarning("no thread moves the log of the database: commits take longer now and then").pipe(
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
        // What fails here is tried again with the next one, and whoever writes is told of the disk.
        return Effect.ignoreLogged(db.get("PRAGMA wal_checkpoint(PASSIVE)"))
      })
  })
