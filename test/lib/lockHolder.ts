import { Effect } from "effect"
import { acquire, holderOf } from "../../src/Sql/InstanceLock.ts"

// A process that holds the lock of the database in its first argument until it is ended; or, with "find", says why it does
// not get it, and who holds it.
const [, , database = "", task] = process.argv
const print = (text: string) => Effect.sync(() => process.stdout.write(text))

// A timer keeps the process alive.
const hold = Effect.zipRight(acquire(database, "serve"), Effect.zipRight(print("held\n"), Effect.sleep("1 hour")))

const find = Effect.flatMap(Effect.flip(Effect.scoped(acquire(database, "keys list"))), ({ message }) =>
  print(JSON.stringify({ holder: holderOf(database), message }))
)

if (task === "find") Effect.runFork(find)
else Effect.runFork(Effect.scoped(hold))
