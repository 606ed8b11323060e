import { existsSync } from "node:fs"
import { userInfo } from "node:os"
import { Context, Effect, Either } from "effect"

/** Makes a signal a success, exit 0: for commands that run until they are stopped. Any other command was cut short. */
export const untilStopped = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onInterrupt(effect, () =>
    Effect.sync(() => {
      process.exitCode = 0
    })
  )

/** In the working folder, and a service's: the first that is there. */
const usualPaths = ["config/tilld.toml", "/etc/tilld/tilld.toml"]

/** Path of the configuration: the one that is given, else `TILLD_CONFIG`, else the usual one. */
export const configPathOf = (given: string | undefined): Effect.Effect<string, never, Invocation> =>
  Effect.map(
    Invocation,
    ({ env }) => given ?? (env.TILLD_CONFIG || (usualPaths.find((path) => existsSync(path)) ?? "config/tilld.toml"))
  )

/** The environment that the process was started with. Tests and the sandbox provide their own. */
export class Invocation extends Context.Tag("tilld/Control/Invocation")<
  Invocation,
  {
    readonly env: Readonly<Record<string, string | undefined>>
    /** The user who started it, not verified: see `claimedUser`. */
    readonly user: string
  }
>() {}

/**
 * The user who runs the process: the one that sudo names, and the process's own. A daemon cannot verify it, since Node
 * cannot ask the kernel for the peer of a Unix socket (SO_PEERCRED).
 */
export const claimedUser = (env: Invocation["Type"]["env"]): string => {
  // In a container the user may have no entry in /etc/passwd.
  const own = Either.getOrElse(
    Either.try(() => userInfo().username),
    () => `uid ${process.getuid?.() ?? "unknown"}`
  )
  return env.SUDO_USER ? `${env.SUDO_USER} as ${own}` : own
}
