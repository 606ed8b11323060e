import { Command } from "@effect/cli"
import { Effect } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { common, configPath, untilStopped } from "./commonOptions.ts"

/** The daemon is loaded only here: no other command should wait for all of its modules. */
const daemon = Effect.promise(() => import("../main.ts"))

/** `tilld serve`: runs the daemon until SIGTERM. */
export const serveCommand = Command.make(
  "serve",
  { config: common.config },
  Effect.fnUntraced(function* (options) {
    const { env } = yield* Invocation
    const { runDaemon: serve } = yield* daemon
    yield* serve({ path: yield* configPath(options), env })
  }, untilStopped)
).pipe(Command.withDescription("Run the daemon until SIGTERM"))
