import { Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { common } from "./commonOptions.ts"

/** The daemon is loaded only here: no other command should wait for all of its modules. */
const daemon = Effect.promise(() => import("./serving.ts"))

/** `tilld serve`, where the entry has not begun it already. */
export const serveCommand = Command.make(
  "serve",
  {
    config: common.config,
    newDatabase: Options.boolean("new-database").pipe(
      Options.withDescription("Begin with an empty database although the one that gave out addresses is missing")
    )
  },
  ({ config, newDatabase }) => Effect.flatMap(daemon, ({ serve }) => serve(Option.getOrUndefined(config), newDatabase))
).pipe(Command.withDescription("Run the daemon until SIGTERM"))
