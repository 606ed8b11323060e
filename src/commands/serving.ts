import { Effect } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { runDaemon } from "../main.ts"
import { configPathOf, untilStopped } from "./invoked.ts"

/** `tilld serve`: runs the daemon until SIGTERM. Needs no parser of the command line. */
export const serve = (config: string | undefined, newDatabase: boolean) =>
  untilStopped(
    Effect.gen(function* () {
      const { env } = yield* Invocation
      yield* runDaemon({ path: yield* configPathOf(config), env }, newDatabase)
    })
  )
