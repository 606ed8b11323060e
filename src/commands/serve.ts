import { Command, Options } from "@effect/cli"
import { Effect } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { common, configPath, untilStopped } from "./commonOptions.ts"

/** The daemon is loaded only here: no other command should wait for all of its modules. */
const daemon = Effect.promise(() => import("../main.ts"))

/** `tilld serve`: runs the daemon until SIGTERM. */
export const serveCommand = Command.make(
  "serve",
  {
    config: common.config,
    newDatabase: Options.boolean("new-database").pipe(
      Options.withDescription("Begin with an empty database although the one that gave out addresses is missing")
    )
  },
  Effect.fnUntraced(function* (options) {
    const { env } = yield* Invocation
    const { runDaemon: serve } = yield* daemon
    yield* serve({ path: yield* configPath(options), env }, options.newDatabase)
  }, untilStopped)
).pipe(Command.withDescription("Run the daemon until SIGTERM"))
