import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { whileLocked } from "./askDaemon.ts"
import { common, loadSettings } from "./commonOptions.ts"
import { print } from "./Output.ts"
import { renderRestored } from "./restoreReport.ts"

/** Loaded only here: it needs the store. */
const restoring = Effect.promise(() => Promise.all([import("../Backup/restore.ts"), import("../Sql/InstanceLock.ts")]))

/** `tilld restore`: with no daemon running. */
export const restoreCommand = Command.make(
  "restore",
  {
    ...common,
    identity: Options.text("identity").pipe(
      Options.withPseudoName("FILE"),
      Options.withDescription("The age identity that decrypts the backup: a file with AGE-SECRET-KEY-1…"),
      Options.optional
    ),
    force: Options.boolean("force").pipe(
      Options.withDescription(
        "Also replace newer data, which is kept beside, and take a file without manifest or with other wallets"
      )
    ),
    file: Args.text({ name: "file" }).pipe(Args.withDescription("What tilld backup has made"))
  },
  Effect.fnUntraced(function* ({ file, force, identity, json, ...rest }) {
    const { env, user: who } = yield* Invocation
    const settings = yield* loadSettings(rest)
    const [{ restore }, InstanceLock] = yield* restoring
    const restored = yield* Effect.scoped(
      Effect.zipRight(
        Effect.retry(InstanceLock.acquire(settings.database.path, "restore"), whileLocked),
        restore({ file, force, identity: Option.getOrUndefined(identity), settings, env, who })
      )
    )
    yield* print(json ? JSON.stringify(restored) : renderRestored(restored))
  })
).pipe(
  Command.withDescription(
    "Put a backup in the place of the database, and report what must be looked at. Needs no running daemon"
  )
)
