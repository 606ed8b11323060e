import { Effect } from "effect"
import { configPathOf, Invocation, untilStopped } from "../Control/Invocation.ts"
import { runDaemon } from "../main.ts"

/** `tilld serve`: runs the daemon until SIGTERM. Needs no parser of the command line. */
export const serve = (config: string | undefined, newDatabase: boolean) =>
  untilStopped(
    Effect.flatMap(Effect.all([Invocation, configPathOf(config)]), ([{ env }, path]) =>
      runDaemon({ path, env }, newDatabase)
    )
  )
