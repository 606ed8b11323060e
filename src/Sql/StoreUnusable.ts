import { Data, Effect, Predicate } from "effect"

/**
 * The database is damaged, was written by a newer tilld, or is not accessible to this user. Only an operator can fix it.
 */
export class StoreUnusable extends Data.TaggedError("StoreUnusable")<{ readonly message: string }> {}

// By error codes of SQLite and the system. Errors that may pass by themselves, such as a full disk, are not listed.
const reasons: ReadonlyArray<readonly [RegExp, (path: string) => string]> = [
  [/^SQLITE_(NOTADB|CORRUPT)/, (path) => `${path} is damaged, or no SQLite database: restore a backup of it`],
  [/^EISDIR$/, (path) => `${path} is a directory: give database.path the name of a file`],
  [
    /^(EACCES|EPERM|EROFS|SQLITE_READONLY|SQLITE_CANTOPEN)/,
    (path) =>
      `User ${process.getuid?.()} may not write ${path} and make files beside it: give the file and its folder to the ` +
      "user that tilld runs as (chown), as after a restore by root"
  ]
]

const unusable = (path: string, defect: unknown): StoreUnusable | undefined => {
  if (!Predicate.hasProperty(defect, "code") || !(defect instanceof Error)) return undefined
  const code = String(defect.code)
  const reason = reasons.find(([codes]) => codes.test(code))?.[1]
  return reason === undefined ? undefined : new StoreUnusable({ message: `${reason(path)} (${defect.message})` })
}

/**
 * Turns defects that occur while the database at `path` is opened into `StoreUnusable` if only an operator can fix them.
 */
export const orUnusable =
  (path: string) =>
  <A, E, R>(open: Effect.Effect<A, E, R>): Effect.Effect<A, E | StoreUnusable, R> =>
    Effect.catchAllDefect(open, (defect) => {
      const known = unusable(path, defect)
      return known === undefined ? Effect.die(defect) : Effect.fail(known)
    })
