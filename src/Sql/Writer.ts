/**
 * The single writer of the database. Every service that stores something gives it a command, a transaction body; commands
 * that arrive together share one transaction and one disk sync. A command that fails leaves the others of its group
 * untouched, and every caller gets its result, failures included, only after the commit is on disk.
 */
import { Cause, Context, Data, Effect, Exit, FiberRef, Option, Queue, type Scope } from "effect"
import { eventLoopTurn } from "../lib/waiting.ts"
import { LogLimit } from "../Telemetry/LogLimit.ts"
import { Metrics } from "../Telemetry/Metrics.ts"
import { type Db, StoreUnavailable, Tx } from "./Db.ts"
import type { FilesHealth } from "./StoreHealth.ts"

/** Maximum number of commands in one commit. */
const groupSize = 256
/** A group commits what it has after this time, so that no caller waits long during a burst. */
const groupMillis = 10
/** The writer waits for more commands while each turn of the event loop brings some, but no longer than this. */
const gatherMillis = 5
/** A commit that takes longer is logged: meanwhile no request is answered. */
const slowMillis = 500

/** A monotonic clock for intervals. */
const stopwatch = Effect.map(Effect.clock, (clock) => () => {
  const started = clock.unsafeCurrentTimeNanos()
  return () => Number(clock.unsafeCurrentTimeNanos() - started) / 1e6
})

/**
 * Runs commands, each in a transaction. A command may use nothing but its `Tx`: waiting inside it would block all others.
 * It may run twice, when the group is rolled back because another of its commands failed after it had written.
 */
export class Writer extends Context.Tag("tilld/Sql/Writer")<
  Writer,
  {
    /**
     * @param isIndependent that it may run among others of which that is true: what it reads none of them writes, but for
     *   rows that a unique key or one statement keeps apart. A store that is far away carries out many at a time.
     */
    readonly write: <A, E>(
      command: Effect.Effect<A, E, Tx>,
      isIndependent?: boolean
    ) => Effect.Effect<A, E | StoreUnavailable>
  }
>() {}

type AlsoCommit = Effect.Effect<void, StoreUnavailable, Tx>

/**
 * An effect that every command of a fiber also commits: it runs after each command that has changed something, in the
 * same transaction, and is rolled back with it. Set locally, around work that commits at points of its own choice: the
 * audit log adds its row to an administrative act in this way.
 */
export const alsoCommit = FiberRef.unsafeMake<AlsoCommit | undefined>(undefined)

const changesSoFar = Effect.flatMap(Tx, (tx) => tx.changes)

const withAlsoCommit = <A, E>(command: Effect.Effect<A, E, Tx>, also: AlsoCommit | undefined) =>
  also === undefined
    ? command
    : Effect.gen(function* () {
        const before = yield* changesSoFar
        const result = yield* command
        const after = yield* changesSoFar
        if (before !== after) yield* also
        return result
      })

interface Command {
  readonly isIndependent: boolean
  readonly run: Effect.Effect<unknown, unknown, Tx>
  readonly answer: (exit: Exit.Exit<unknown, unknown>) => void
}

interface CommandResult {
  readonly exit: Exit.Exit<unknown, unknown>
  readonly afterCommit: ReadonlyArray<() => void>
}

const storeUnavailableIn = (exit: Exit.Exit<unknown, unknown>): StoreUnavailable | undefined => {
  const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.failureOption(exit.cause)) : undefined
  return error instanceof StoreUnavailable ? error : undefined
}

/** How a store runs transactions, one after another. */
export interface Transactions {
  /** Begins one, and gives the connection that runs it, for each command with counters of its own. */
  readonly begin: Effect.Effect<() => Db, StoreUnavailable>
  readonly commit: Effect.Effect<void, StoreUnavailable>
  readonly rollback: Effect.Effect<void, StoreUnavailable>
  /** Whether a statement waits for its answer, so that independent commands had better run among each other. */
  readonly isFar: boolean
}

/** Those of a connection to SQLite. */
export const transactionsOn = (db: Db): Transactions => ({
  begin: Effect.as(db.run("BEGIN IMMEDIATE"), () => db),
  commit: db.run("COMMIT"),
  rollback: db.run("ROLLBACK"),
  isFar: false
})

/** A command failed after it had written, and without savepoints only the whole transaction can be rolled back. */
class NeedsSavepoints extends Data.TaggedError("NeedsSavepoints") {}

/**
 * Runs commands in one transaction until all are done or `groupMillis` is over; returns the result of each that ran.
 * `savepoints`: with a savepoint around each command.
 */
const commitGroup = (
  transactions: Transactions,
  commands: ReadonlyArray<Command>,
  savepoints: boolean
): Effect.Effect<ReadonlyArray<CommandResult>, StoreUnavailable | NeedsSavepoints> =>
  Effect.gen(function* () {
    const millis = (yield* stopwatch)()
    const session = yield* transactions.begin
    const place = () => {
      const db = session()
      const queued: { actions: Array<() => void> } = { actions: [] }
      const tx: Tx["Type"] = { ...db, afterCommit: (action) => void queued.actions.push(action) }
      return { db, queued, tx }
    }
    const runOne = Effect.fnUntraced(function* ({ run }: Command, { db, queued }: ReturnType<typeof place>) {
      queued.actions = []
      if (savepoints) yield* db.run("SAVEPOINT command")
      const before = db.writes()
      const exit = yield* Effect.exit(run)
      // On a full disk SQLite rolls back the whole transaction, with its savepoints: the group cannot go on.
      if (storeUnavailableIn(exit) !== undefined) return yield* exit as Exit.Exit<never, StoreUnavailable>
      if (Exit.isFailure(exit) && db.writes() > before) {
        if (!savepoints) return yield* new NeedsSavepoints()
        yield* db.run("ROLLBACK TO command")
      }
      if (savepoints) yield* db.run("RELEASE command")
      return { exit, afterCommit: Exit.isSuccess(exit) ? queued.actions : [] } satisfies CommandResult
    })
    const runAlone = (command: Command) => {
      const own = place()
      return Effect.provideService(runOne(command, own), Tx, own.tx)
    }

    const results: Array<CommandResult> = []
    if (transactions.isFar && !savepoints) {
      do {
        const from = results.length
        let to = from + 1
        if (commands[from]?.isIndependent) while (commands[to]?.isIndependent) to++
        results.push(...(yield* Effect.forEach(commands.slice(from, to), runAlone, { concurrency: "unbounded" })))
      } while (results.length < commands.length && millis() < groupMillis)
    } else {
      const shared = place()
      yield* Effect.gen(function* () {
        for (const command of commands) {
          results.push(yield* runOne(command, shared))
          if (millis() >= groupMillis) break
        }
      }).pipe(Effect.provideService(Tx, shared.tx))
    }
    yield* transactions.commit
    return results
  })

/**
 * Commands seldom fail after they have written. A group first runs without savepoints, which make SQLite copy each page
 * that a command changes. When a command does fail after a write, the group is rolled back and runs again with
 * savepoints.
 */
const commit = (transactions: Transactions, commands: ReadonlyArray<Command>) =>
  commitGroup(transactions, commands, false).pipe(
    Effect.catchTag("NeedsSavepoints", () =>
      Effect.zipRight(transactions.rollback, commitGroup(transactions, commands, true))
    ),
    Effect.catchTag("NeedsSavepoints", (error) => Effect.die(error))
  )

/**
 * Starts the writer. It ends with the scope; commands that still wait are interrupted. `afterGroup` runs between two
 * transactions. `health` may refuse commits, and gets the outcome of
 * each.
 */
export const makeWriter = (
  transactions: Transactions,
  afterGroup: Effect.Effect<void> = Effect.void,
  health: Pick<FilesHealth, "refusal" | "note"> = { refusal: () => undefined, note: () => {} }
): Effect.Effect<Context.Tag.Service<Writer>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const metrics = yield* Metrics
    const waiting: Array<Command> = []
    const bell = yield* Queue.sliding<void>(1)
    const slowCommits = new LogLimit({ perKey: 6, inAll: 6 })
    const startWatch = yield* stopwatch
    let stopped: Cause.Cause<never> | undefined

    const answer = (exits: ReadonlyArray<Exit.Exit<unknown, unknown>>) => {
      for (const exit of exits) waiting.shift()?.answer(exit)
    }

    const finish = Effect.gen(function* () {
      const commands = waiting.slice(0, groupSize)
      const millis = startWatch()
      const refusal = health.refusal()
      const group = yield* Effect.exit(refusal ?? commit(transactions, commands))
      const took = millis()
      health.note(storeUnavailableIn(group))
      if (took > slowMillis) {
        const line = Effect.annotateLogs(Effect.logWarning("a commit was slow"), {
          millis: took,
          commands: commands.length
        })
        yield* slowCommits.write("", line)
      }
      if (Exit.isFailure(group)) {
        // SQLite may have rolled the transaction back already (see above): an error of this ROLLBACK is ignored.
        yield* Effect.exit(transactions.rollback)
        metrics.storeFailures.inc()
        return answer(commands.map(() => group))
      }
      metrics.storeCommits.inc()
      metrics.storeCommitDuration.observe(took / 1000)
      metrics.storeCommands.inc(group.value.length)
      const actions = new Set<() => void>()
      for (const action of group.value.flatMap(({ afterCommit }) => afterCommit)) {
        actions.delete(action)
        actions.add(action)
      }
      for (const action of actions) action()
      answer(group.value.map(({ exit }) => exit))
    })

    /**
     * Lets sockets and timers run, which a loop that never waits would starve, and repeats while that brings more
     * commands: a disk sync takes longer than reading a request, and one sync serves the whole group.
     */
    const gather = Effect.gen(function* () {
      const millis = startWatch()
      let before: number
      do {
        before = waiting.length
        yield* eventLoopTurn
      } while (waiting.length > before && waiting.length < groupSize && millis() < gatherMillis)
    })

    const loop = Effect.gen(function* () {
      while (true) {
        while (waiting.length === 0) yield* Queue.take(bell)
        yield* gather
        yield* Effect.uninterruptible(Effect.zipRight(finish, afterGroup))
      }
    })

    yield* loop.pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          const cause = Exit.isFailure(exit) ? exit.cause : Cause.empty
          stopped = cause
          answer(waiting.map(() => Exit.failCause(cause)))
        })
      ),
      Effect.forkScoped
    )

    return {
      write: <A, E>(command: Effect.Effect<A, E, Tx>, isIndependent = false) =>
        Effect.flatMap(FiberRef.get(alsoCommit), (also) =>
          Effect.async<A, E | StoreUnavailable>((resume) => {
            if (stopped !== undefined) return resume(Effect.failCause(stopped))
            const run = withAlsoCommit(command, also)
            waiting.push({ run, isIndependent, answer: (exit) => resume(exit as Exit.Exit<A, E | StoreUnavailable>) })
            bell.unsafeOffer(undefined)
          })
        )
    }
  })
