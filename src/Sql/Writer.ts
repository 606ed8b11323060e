import { Cause, Chunk, Clock, Context, Deferred, Effect, Exit, FiberId, Option, Queue, type Scope } from "effect"
import { eventLoopTurn } from "../eventLoopTurn.ts"
import { type Db, StoreUnavailable, Tx } from "./Db.ts"

/** Commands that one commit may carry. */
const groupSize = 256
/** A group commits what it has after this time, so that nobody waits long behind a burst. */
const groupMillis = 10
/** Commands that may wait; whoever comes after them waits to be let in. */
const queueSize = 4096

/**
 * The one writer of the database. Commands that arrive together share a commit; each runs under a savepoint, so that one
 * refusal leaves the others standing, and each is answered, refusals included, only when the commit is on disk.
 *
 * A command touches nothing but its `Tx`: whatever waited inside it would hold up everybody.
 */
export class Writer extends Context.Tag("tilld/Sql/Writer")<
  Writer,
  { readonly write: <A, E>(command: Effect.Effect<A, E, Tx>) => Effect.Effect<A, E | StoreUnavailable> }
>() {}

interface Command {
  readonly run: Effect.Effect<unknown, unknown, Tx>
  readonly done: Deferred.Deferred<unknown, unknown>
}

interface Outcome {
  readonly exit: Exit.Exit<unknown, unknown>
  readonly afterCommit: ReadonlyArray<() => void>
}

const isStoreUnavailable = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && Option.exists(Cause.failureOption(exit.cause), (error) => error instanceof StoreUnavailable)

const runUnderSavepoint = (db: Db, command: Command): Effect.Effect<Outcome, StoreUnavailable> =>
  Effect.gen(function* () {
    const afterCommit: Array<() => void> = []
    yield* db.run("SAVEPOINT command")
    const tx = { ...db, afterCommit: (action: () => void) => Effect.sync(() => void afterCommit.push(action)) }
    const exit = yield* Effect.exit(Effect.provideService(command.run, Tx, tx))
    if (isStoreUnavailable(exit)) {
      // A full disk rolls back the whole transaction, savepoints and all: the group cannot go on.
      return yield* exit as Exit.Exit<never, StoreUnavailable>
    }
    if (Exit.isFailure(exit)) yield* db.run("ROLLBACK TO command")
    yield* db.run("RELEASE command")
    return { exit, afterCommit: Exit.isSuccess(exit) ? afterCommit : [] }
  })

/** Runs commands in one transaction until all are done or time is up; gives the outcome of each that ran. */
const commitGroup = (
  db: Db,
  commands: ReadonlyArray<Command>
): Effect.Effect<ReadonlyArray<Outcome>, StoreUnavailable> =>
  Effect.gen(function* () {
    const outcomes: Array<Outcome> = []
    const started = yield* Clock.currentTimeMillis
    yield* db.run("BEGIN IMMEDIATE")
    for (const command of commands) {
      outcomes.push(yield* runUnderSavepoint(db, command))
      if ((yield* Clock.currentTimeMillis) - started >= groupMillis) break
    }
    yield* db.run("COMMIT")
    return outcomes
  })

/** Starts the writer on a connection that nobody else uses. It ends with the scope; what still waits is interrupted. */
export const makeWriter = (db: Db): Effect.Effect<Context.Tag.Service<Writer>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const queue = yield* Queue.bounded<Command>(queueSize)
    let stopped: Cause.Cause<never> | undefined

    const settle = (commands: ReadonlyArray<Command>): Effect.Effect<ReadonlyArray<Command>> =>
      Effect.gen(function* () {
        const group = yield* Effect.exit(commitGroup(db, commands))
        if (Exit.isFailure(group)) {
          // The transaction may be gone already (see above), and then there is nothing to roll back.
          yield* Effect.exit(db.run("ROLLBACK"))
          for (const command of commands) Deferred.unsafeDone(command.done, group)
          return []
        }
        for (const { afterCommit } of group.value) for (const action of afterCommit) action()
        group.value.forEach((outcome, i) => {
          const command = commands[i]
          if (command !== undefined) Deferred.unsafeDone(command.done, outcome.exit)
        })
        return commands.slice(group.value.length)
      })

    const loop = Effect.gen(function* () {
      let waiting: ReadonlyArray<Command> = []
      while (true) {
        if (waiting.length === 0) waiting = [yield* Queue.take(queue)]
        // Commands gather meanwhile, and sockets and timers are not starved by a loop that never waits.
        yield* eventLoopTurn
        const more = yield* Queue.takeUpTo(queue, groupSize - waiting.length)
        waiting = yield* Effect.uninterruptible(settle([...waiting, ...Chunk.toReadonlyArray(more)]))
      }
    })

    yield* loop.pipe(
      Effect.onExit((exit) =>
        Effect.gen(function* () {
          stopped = Exit.isFailure(exit) ? exit.cause : Cause.empty
          for (const command of yield* Queue.takeAll(queue)) Deferred.unsafeDone(command.done, Exit.failCause(stopped))
        })
      ),
      Effect.forkScoped
    )

    return {
      write: <A, E>(command: Effect.Effect<A, E, Tx>) =>
        Effect.suspend(() => {
          if (stopped !== undefined) return Effect.failCause(stopped)
          const done = Deferred.unsafeMake<A, E | StoreUnavailable>(FiberId.none)
          return Effect.zipRight(
            Queue.offer(queue, { run: command, done: done as Deferred.Deferred<unknown, unknown> }),
            Deferred.await(done)
          )
        })
    }
  })
