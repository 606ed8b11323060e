/**
 * Whether the store takes writes. The writer asks before each commit whether the path still names the files that it has
 * open, and notes how the commit went; a worker looks every two seconds, so that /readyz, the metrics and the log say so
 * although nothing is written.
 *
 * SQLite goes on writing to a file that was removed or replaced, and all of it is lost with the process. So nothing more is
 * written, and the process does not end by itself: the removed file exists only as long as it is open, a replacement may
 * be copied only in part, and which of the two is wanted is the operator's decision.
 *
 * A damaged page is another matter: what is written after it may be lost too, and no later try succeeds. The process
 * ends, whichever part meets it.
 */
import { type BigIntStats, statSync } from "node:fs"
import { Context, Deferred, Effect, FiberId } from "effect"
import { LogLimit } from "../Telemetry/LogLimit.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { execute, StoreUnavailable } from "./Db.ts"
import type { Writer } from "./Writer.ts"

const interval = "2 seconds"

/** Undefined: there is no such file. Throws where it is inaccessible. */
const identityOf = (path: string): Pick<BigIntStats, "dev" | "ino"> | undefined =>
  statSync(path, { bigint: true, throwIfNoEntry: false })

const removed = (path: string): string =>
  `${path} was removed or moved while tilld has it open. Nothing is written any more. Put the same file back, and tilld ` +
  `goes on. If it was deleted, copy it and its -wal out of /proc/${process.pid}/fd before tilld is stopped`

const replaced = (path: string): string =>
  `${path} is another file than the one that tilld has open. Nothing is written any more, since it would be lost. Put the ` +
  "former file back, and tilld goes on. If the new one is what you want, then stop tilld, and tilld restore the new one"

type Write = Context.Tag.Service<typeof Writer>["write"]

/** Changes a row, and back: of a row that stays the same SQLite writes no page, so that no disk could refuse it. */
const trial = Effect.zipRight(
  execute("UPDATE meta SET value = value || ' ' WHERE key = 'written_by'"),
  execute("UPDATE meta SET value = rtrim(value) WHERE key = 'written_by'")
)

export class StoreHealth extends Context.Tag("tilld/Sql/StoreHealth")<StoreHealth, FilesHealth>() {}

/** The health of the files at `paths`, which the caller has open. */
export class FilesHealth {
  readonly #files: ReadonlyArray<readonly [path: string, identity: ReturnType<typeof identityOf>]>
  readonly #damage = Deferred.unsafeMake<never>(FiberId.none)
  #failure: StoreUnavailable | undefined

  constructor(paths: ReadonlyArray<string>) {
    this.#files = paths.map((path) => [path, identityOf(path)])
  }

  /** Why nothing may be written: a path no longer names the file that is open. */
  refusal(): StoreUnavailable | undefined {
    for (const [path, own] of this.#files) {
      try {
        const found = identityOf(path)
        if (found?.ino === own?.ino && found?.dev === own?.dev) continue
        const message = (found === undefined ? removed : replaced)(path)
        return new StoreUnavailable({ code: "REPLACED", message })
      } catch {
        // Inaccessible: the next write reports the reason.
      }
    }
    return undefined
  }

  /** The outcome of a commit: undefined is success. */
  note(failure: StoreUnavailable | undefined): void {
    this.#failure = failure
  }

  /** Whether the last commit failed for want of room. */
  isFull(): boolean {
    return this.#failure?.code === "SQLITE_FULL"
  }

  /** A statement met a damaged page: the worker ends with this defect. */
  damaged(cause: unknown): void {
    Deferred.unsafeDone(this.#damage, Effect.die(cause))
  }

  /** Why the store takes no writes; undefined when it does. */
  reason(): string | undefined {
    return (this.refusal() ?? this.#failure)?.message
  }

  /** The worker. After a commit that failed it tries to write, so that the store is ready as soon as it can be. */
  readonly run = (write: Write) =>
    Effect.gen(this, function* () {
      const heartbeat = (yield* Workers).worker("store watch", interval)
      const limited = new LogLimit({ perKey: 1, inAll: 1 })
      let wasWell = true
      const look = Effect.gen(this, function* () {
        if (this.#failure !== undefined && this.refusal() === undefined) yield* Effect.ignore(write(trial))
        const reason = this.reason()
        if (reason !== undefined) yield* limited.write("", Effect.logError(reason))
        else if (!wasWell) yield* Effect.logInfo("the store takes writes again")
        wasWell = reason === undefined
      })
      // Not a race: an interrupted one leaves its sides running, and they would look at the files of a daemon that was reloaded.
      yield* Effect.all(
        [Effect.forever(Effect.zipRight(heartbeat(look), Effect.sleep(interval))), Deferred.await(this.#damage)],
        { concurrency: "unbounded", discard: true }
      )
      return yield* Effect.never
    }).pipe(Effect.annotateLogs({ service: "store" }))
}
