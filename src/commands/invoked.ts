import { Effect } from "effect"
import { Invocation } from "../Control/Invocation.ts"

/** Makes a signal a success, exit 0: for commands that run until they are stopped. Any other command was cut short. */
export const untilStopped = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onInterrupt(effect, () =>
    Effect.sync(() => {
      process.exitCode = 0
    })
  )

/** Path of the configuration: the one that is given, else `TILLD_CONFIG`, else config/tilld.toml in the working folder. */
export const configPathOf = (given: string | undefined): Effect.Effect<string, never, Invocation> =>
  Effect.map(Invocation, ({ env }) => given ?? (env.TILLD_CONFIG || "config/tilld.toml"))
