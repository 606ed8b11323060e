import { Data, Effect } from "effect"
import { codeOf, StoreUnavailable } from "./Db.ts"
import { filesOf, refusedAccess } from "./fileAccess.ts"
import { nativeProblem } from "./nativeParts.ts"

/**
 * The database is damaged, was written by a newer tilld, or is not accessible to this user. Only an operator can fix it.
 */
export class StoreUnusable extends Data.TaggedError("StoreUnusable")<{ readonly message: string }> {}

/** A full disk or quota, a failing disk, too many open files or processes: a later try may succeed. */
const passing = /^(ENOSPC|EDQUOT|EIO|EMFILE|ENFILE|ENOMEM|EAGAIN|SQLITE_(FULL|IOERR|BUSY|LOCKED|NOMEM))/

// By error codes of SQLite and the system.
const reasons: ReadonlyArray<readonly [RegExp, (path: string) => string]> = [
  [
    /^SQLITE_(NOTADB|CORRUPT)/,
    (path) => `${path} is damaged, or no SQLite database: restore a backup of it, and keep the damaged files`
  ],
  [/^EISDIR$/, (path) => `${path} is a directory: give database.path the name of a file`],
  [
    /^(EACCES|EPERM|EROFS|SQLITE_READONLY|SQLITE_CANTOPEN)/,
    (path) =>
      refusedAccess(filesOf(path)) ??
      `User ${process.getuid?.()} may not write ${path} and make files beside it: check their permissions`
  ]
]

/**
 * Why files cannot be used: `StoreUnavailable` where a later try may succeed, otherwise `StoreUnusable`.
 *
 * @param files files to which this user may lack access
 * @param otherwise the message where access is not the reason
 */
export const unusableFiles = (cause: unknown, files: ReadonlyArray<string>, otherwise: string) => {
  const native = nativeProblem(cause)
  if (native !== undefined) return new StoreUnusable({ message: native })
  const code = codeOf(cause)
  return passing.test(code)
    ? new StoreUnavailable({
        code,
        message: `${otherwise} (${cause}): free space or mend the disk; a later try may succeed`
      })
    : new StoreUnusable({ message: refusedAccess(files) ?? `${otherwise} (${cause}): check its permissions` })
}

const known = (path: string, defect: unknown) => {
  const code = codeOf(defect)
  if (!(defect instanceof Error) || code === "") return undefined
  if (passing.test(code)) return unusableFiles(defect, [], `${path} cannot be opened now`)
  const reason = reasons.find(([codes]) => codes.test(code))?.[1]
  return reason === undefined ? undefined : new StoreUnusable({ message: `${reason(path)} (${defect.message})` })
}

/**
 * Turns defects that occur while the database at `path` is opened into `StoreUnusable` if only an operator can fix them, and
 * into `StoreUnavailable` if they may pass by themselves.
 */
export const orUnusable =
  (path: string) =>
  <A, E, R>(open: Effect.Effect<A, E, R>): Effect.Effect<A, E | StoreUnusable | StoreUnavailable, R> =>
    Effect.catchAllDefect(open, (defect): Effect.Effect<never, StoreUnusable | StoreUnavailable> => {
      const reason = known(path, defect)
      return reason === undefined ? Effect.die(defect) : Effect.fail(reason)
    })
