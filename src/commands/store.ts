import { resolve } from "node:path"
import { Command } from "@effect/cli"
import { Effect, Option } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import * as InstanceLock from "../Sql/InstanceLock.ts"
import { whileLocked } from "./askDaemon.ts"
import { complain, print } from "./Output.ts"
import { common, fileOption, loadSettings, UsageError } from "./options.ts"

const options = {
  ...common,
  from: fileOption("from", "The database file that is copied, into PostgreSQL with nothing in its schema"),
  to: fileOption("to", "A new database file, which PostgreSQL's data is copied into")
}

const copy = Command.make(
  "copy",
  options,
  Effect.fnUntraced(function* ({ from, json, to, ...rest }) {
    const [given, ...more] = [...Option.toArray(from), ...Option.toArray(to)]
    if (!given || more.length > 0) {
      return yield* new UsageError({
        message:
          "Name one file: with --from it is copied into the PostgreSQL of the configuration, with --to out of that"
      })
    }
    const { env, user: who } = yield* Invocation
    const settings = yield* loadSettings(rest)
    const { postgres } = settings
    if (postgres === undefined) {
      return yield* new UsageError({
        message:
          'The configuration must name the PostgreSQL: database.engine = "postgres", and database.url (docs/two-machines.md)'
      })
    }
    const file = resolve(given)
    const server = `${postgres.url} (schema ${postgres.schema})`
    const ends = Option.isSome(from) ? { from: file, to: server } : { from: server, to: file }
    const { copyStore, refuseTarget } = yield* Effect.promise(() => import("../Backup/copyStore.ts"))
    if (ends.to === file) yield* refuseTarget(file)
    const copied = yield* Effect.scoped(
      Effect.zipRight(
        Effect.retry(InstanceLock.acquire(file, "store copy"), whileLocked),
        copyStore({ ...ends, file, settings, postgres, env, who, tell: complain })
      )
    )
    if (json) return yield* print(JSON.stringify(copied))
    yield* print(
      [
        `${copied.rows} rows of ${copied.from} are in ${copied.to}, and each was compared: ${copied.seconds} seconds.`,
        copied.jump === null
          ? "The address numbering goes on where it was."
          : `The first start makes every wallet jump over indexes, so that no address is given twice: ${copied.jump}.`,
        `${copied.from} is kept, and tilld does not start on it any more.`,
        ends.to === server
          ? "Start tilld now."
          : "Name the file in database.path, without what is of PostgreSQL, and start tilld."
      ].join("\n")
    )
  })
).pipe(
  Command.withDescription(
    "Copy the data from a file into the PostgreSQL of the configuration, or back, and compare every row. Needs no running daemon"
  )
)

/** `tilld store`: where the data is. */
export const storeCommand = Command.make("store").pipe(
  Command.withDescription("The store: a database file, or PostgreSQL"),
  Command.withSubcommands([copy])
)
