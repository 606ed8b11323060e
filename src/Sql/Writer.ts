import { Cause, Context, Data, Effect, Exit, FiberRef, Option, Queue, type Scope } from "effect"
import { Metrics } from "../Telemetry/Metrics.ts"
import { type Db, StoreUnavailable, Tx } from "./Db.ts"
import { eventLoopTurn } from "./eventLoopTurn.ts"

/** Commands that one commit may carry. */
const groupSize = 256
/** A group commits what it has after this time, so that nobody waits long behind a burst. */
const groupMillis = 10
/** While each turn of the event loop brings more commands, they are waited for, at most for this time. */
const gatherMillis = 5

/** A clock for intervals, which nobody sets back. */
const stopwatch = Effect.map(Effect.clock, (clock) => () => {
  const started = clock.unsafeCurrentTimeNanos()
  return () => Number(clock.unsafeCurrentTimeNanos() - started) / 1e6
})

/**
 * The one writer of the database. Commands that arrive together share a commit; one refusal leaves the others standing,
 * and each is answered, refusals included, only when the commit is on disk.
 *
 * A command touches nothing but its `Tx`: whatever waited inside it would hold up everybody. It may run twice, when what
 * another command of its group wrote has to be taken back.
 */
export class Writer extends Context.Tag("tilld/Sql/Writer")<
  Writer,
  { readonly write: <A, E>(command: Effect.Effect<A, E, Tx>) => Effect.Effect<A, E | StoreUnavailable> }
>() {}

type AlsoCommit = Effect.Effect<void, StoreUnavailable, Tx>

/**
 * What else the commands of a fiber commit: it runs behind each of them that has changed something, in its transaction,
 * and is undone with it. Locally set by whoever wraps work that commits at a place of its own choice.
 */
export const alsoCommit = FiberRef.unsafeMake<AlsoCommit | undefined>(undefined)

const changesSoFar = Effect.flatMap(Tx, (tx) => tx.get<{ changes: number }>("SELECT total_changes() AS changes"))

const commitsToo = <A, E>(command: Effect.Effect<A, E, Tx>, also: AlsoCommit | undefined) =>
  also === undefined
    ? command
    : Effect.gen(function* () {
        const before = yield* changesSoFar
        const result = yield* command
        const after = yield* changesSoFar
        if (before?.changes !== after?.changes) yield* also
        return result
      })

interface Command {
  readonly run: Effect.Effect<unknown, unknown, Tx>
  readonly answer: (exit: Exit.Exit<unknown, unknown>) => void
}

interface Outcome {
  readonly exit: Exit.Exit<unknown, unknown>
  readonly afterCommit: ReadonlyArray<() => void>
}

const isStoreUnavailable = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && Option.exists(Cause.failureOption(exit.cause), (error) => error instanceof StoreUnavailable)

/** A command failed after it had written, and nothing but the whole transaction can be taken back. */
class NotGuarded extends Data.TaggedError("NotGuarded") {}

/**
 * Runs commands in one transaction until all are done or time is up; gives the outcome of each that ran. `guarded` is
 * with a savepoint around each.
 */
const commitGroup = (
  db: Db,
  commands: ReadonlyArray<Command>,
  guarded: boolean
): Effect.Effect<ReadonlyArray<Outcome>, StoreUnavailable | NotGuarded> =>
  Effect.gen(function* () {
    const millis = (yield* stopwatch)()
    const outcomes: Array<Outcome> = []
    let afterCommit: Array<() => void> = []
    const tx: Tx["Type"] = { ...db, afterCommit: (action) => void afterCommit.push(action) }

    yield* db.run("BEGIN IMMEDIATE")
    yield* Effect.gen(function* () {
      for (const command of commands) {
        afterCommit = []
        if (guarded) yield* db.run("SAVEPOINT command")
        const before = db.writes()
        const exit = yield* Effect.exit(command.run)
        // A full disk rolls back the whole transaction, savepoints and all: the group cannot go on.
        if (isStoreUnavailable(exit)) return yield* exit as Exit.Exit<never, StoreUnavailable>
        if (Exit.isFailure(exit) && db.writes() > before) {
          if (!guarded) return yield* new NotGuarded()
          yield* db.run("ROLLBACK TO command")
        }
        if (guarded) yield* db.run("RELEASE command")
        outcomes.push({ exit, afterCommit: Exit.isSuccess(exit) ? afterCommit : [] })
        if (millis() >= groupMillis) break
      }
    }).pipe(Effect.provideService(Tx, tx))
    yield* db.run("COMMIT")
    return outcomes
  })

/**
 * Commands seldom fail after they have written. So they run without savepoints, which would make SQLite copy each page
 * that a command changes, and again with them when one does.
 */
const commit = (db: Db, commands: ReadonlyArray<Command>): Effect.Effect<ReadonlyArray<Outcome>, StoreUnavailable> =>
  commitGroup(db, commands, false).pipe(
    Effect.catchTag("NotGuarded", () => Effect.zipRight(db.run("ROLLBACK"), commitGroup(db, commands, true))),
    Effect.catchTag("NotGuarded", (error) => Effect.die(error))
  )

/**
 * Starts the writer on a connection that nobody else uses. It ends with the scope; what still waits is interrupted.
 * `afterGroup` is run on the connection between two transactions.
 */
export const makeWriter = (
  db: Db,
  afterGroup: (db: Db) => Effect.Effect<void> = () => Effect.void
): Effect.Effect<Context.Tag.Service<Writer>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const metrics = yield* Metrics
    const waiting: Array<Command> = []
    const bell = yield* Queue.sliding<void>(1)
    let stopped: Cause.Cause<never> | undefined

    const answer = (exits: ReadonlyArray<Exit.Exit<unknown, unknown>>) => {
      for (const exit of exits) waiting.shift()?.answer(exit)
    }

    const settle = Effect.gen(function* () {
      const commands = waiting.slice(0, groupSize)
      const group = yield* Effect.exit(commit(db, commands))
      if (Exit.isFailure(group)) {
        // The transaction may be gone already (see above), and then there is nothing to roll back.
        yield* Effect.exit(db.run("ROLLBACK"))
        metrics.storeFailures.add()
        return answer(commands.map(() => group))
      }
      metrics.storeCommits.add()
      metrics.storeCommands.add([], group.value.length)
      const actions = new Set<() => void>()
      for (const action of group.value.flatMap(({ afterCommit }) => afterCommit)) {
        actions.delete(action)
        actions.add(action)
      }
      for (const action of actions) action()
      answer(group.value.map(({ exit }) => exit))
    })

    const startWatch = yield* stopwatch
    /**
     * Lets sockets and timers have their turn, which a loop that never waits would starve, and goes on while that brings
     * more commands: to sync the disk takes longer than to read a request, and one sync is enough for all.
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
        yield* Effect.uninterruptible(Effect.zipRight(settle, afterGroup(db)))
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
      write: <A, E>(command: Effect.Effect<A, E, Tx>) =>
        Effect.flatMap(FiberRef.get(alsoCommit), (also) =>
          Effect.async<A, E | StoreUnavailable>((resume) => {
            if (stopped !== undefined) return resume(Effect.failCause(stopped))
            const run = commitsToo(command, also)
            waiting.push({ run, answer: (exit) => resume(exit as Exit.Exit<A, E | StoreUnavailable>) })
            bell.unsafeOffer(undefined)
          })
        )
    }
  })
