import { userInfo } from "node:os"
import { Context, Either } from "effect"

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
