import { Effect } from "effect"
import { acquire } from "../../src/Sql/InstanceLock.ts"

// A process that holds the lock of the database in its first argument until it is ended.
const [, , database = ""] = process.argv

Effect.runFork(
  Effect.scoped(
    Effect.gen(function* () {
      yield* acquire(database, "serve")
      yield* Effect.sync(() => process.stdout.write("held\n"))
      // A timer keeps the process alive.
      yield* Effect.sleep("1 hour")
    })
  )
)
