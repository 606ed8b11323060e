import { Data, Effect, Predicate } from "effect"

/** The database cannot be used as it is: it is damaged, of a newer tilld, or not this user's. Only an operator can help. */
export class StoreUnusable extends Data.TaggedError("StoreUnusable")<{ readonly message: string }> {}

// By the codes of SQLite and of the system. What may pass by itself, such as a full disk, is not among them.
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

/** Opening the database at `path`: of its defects those that only an operator can end are `StoreUnusable`. */
export const orUnusable =
  (path: string) =>
  <A, E, R>(open: Effect.Effect<A, E, R>): Effect.Effect<A, E | StoreUnusable, R> =>
    Effect.catchAllDefect(open, (defect) => {
      const known = unusable(path, defect)
      return known === undefined ? Effect.die(defect) : Effect.fail(known)
    })
