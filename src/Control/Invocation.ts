import { userInfo } from "node:os"
import { Context, Either } from "effect"

/** What the process was started with. Tests and the sandbox give their own. */
export class Invocation extends Context.Tag("tilld/Control/Invocation")<
  Invocation,
  {
    readonly env: Readonly<Record<string, string | undefined>>
    /** Who says to have started it, see `claimedUser`. */
    readonly user: string
  }
>() {}

/**
 * Who runs the process, by its own account: the user that sudo names, and the process's own. Node cannot ask the kernel
 * who is at the other end of a Unix socket (SO_PEERCRED), so that nobody can check it.
 */
export const claimedUser = (env: Invocation["Type"]["env"]): string => {
  // A user of a container may have no entry in /etc/passwd.
  const own = Either.getOrElse(
    Either.try(() => userInfo().username),
    () => `uid ${process.getuid?.() ?? "unknown"}`
  )
  return env.SUDO_USER ? `${env.SUDO_USER} as ${own}` : own
}
