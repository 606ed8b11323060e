/** Where commands write files, and how those get their names: whole, synced, and never over another file. */
import { accessSync, constants, existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Data, Effect } from "effect"
import { codeOf } from "../Sql/Db.ts"
import { syncToDisk } from "../Sql/fileAccess.ts"
import { isRunning } from "../Sql/InstanceLock.ts"

/** The file or folder cannot be used as it was given. Nothing was written. */
export class PathRefused extends Data.TaggedError("PathRefused")<{ readonly message: string }> {}

/** A backup could not be made or restored. The message says why, and what to do. */
export class BackupFailed extends Data.TaggedError("BackupFailed")<{ readonly message: string }> {}

const remedies: ReadonlyArray<readonly [code: RegExp, remedy: string]> = [
  [/^(ENOSPC|EDQUOT|SQLITE_FULL)/, "the disk or its quota is full: free some space"],
  [/^EROFS/, "its file system is mounted read-only: mount it writable"],
  [
    /^(EACCES|EPERM|SQLITE_(READONLY|CANTOPEN|PERM|AUTH))/,
    "check who owns the file and its folder, and run this as tilld's user"
  ],
  [/^SQLITE_(CORRUPT|NOTADB)/, "it is damaged, or no SQLite database"],
  [/^SQLITE_(BUSY|LOCKED)/, "another process locks it: end that, and try again"],
  [/^(EIO|SQLITE_IOERR)/, "the disk answered with an error: check it, and its free space"],
  [/^EPIPE/, "the program that read it has ended"],
  [/^EEXIST/, "name another file, or --force replaces it"],
  [/^ENOENT/, "it does not exist: check its name, make the folder, or mount its disk"],
  [/^ENOTDIR/, "it is not a folder"]
]

/** The error of a failed operation, with a remedy where the code has one. */
export const failed = (what: string, code: string, message: string) => {
  const remedy = remedies.find(([codes]) => codes.test(code))?.[1]
  return new BackupFailed({ message: `${what} (${message})${remedy === undefined ? "" : `: ${remedy}`}` })
}

export const because = (what: string) => (cause: unknown) =>
  failed(what, codeOf(cause), cause instanceof Error ? cause.message : String(cause))

/** Runs a file system call; `what` names the operation that failed where it throws. */
export const onDisk = <A>(what: string, call: () => A): Effect.Effect<A, BackupFailed> =>
  Effect.try({ try: call, catch: because(what) })

/** Looks at a path as it was given. */
export const onGiven = <A>(what: string, call: () => A): Effect.Effect<A, PathRefused> =>
  Effect.mapError(onDisk(what, call), ({ message }) => new PathRefused({ message }))

/** Refuses a file that exists or cannot be made, before the work for it is done. */
export const checkOutput = Effect.fn("Backup.checkOutput")(function* (path: string, force: boolean) {
  if (path === "") return yield* new PathRefused({ message: "The output file has no name: was a variable not set?" })
  const there = existsSync(path) ? statSync(path) : undefined
  if (there?.isDirectory()) return yield* new PathRefused({ message: `${path} is a folder: name a file in it` })
  if (there !== undefined && !there.isFile()) {
    return yield* new PathRefused({ message: `${path} is not a regular file: name a new one` })
  }
  if (there !== undefined && !force) {
    return yield* new PathRefused({ message: `${path} exists already: name another file, or --force replaces it` })
  }
  const folder = dirname(resolve(path))
  yield* onGiven(`Nothing can be written in ${folder}`, () =>
    accessSync(`${folder}/.`, constants.W_OK | constants.X_OK)
  )
})

/** Removes partial files of processes that have ended. What cannot be removed stays, as another user's. */
const removeLeftovers = (path: string) =>
  Effect.ignore(
    Effect.try(() => {
      for (const name of readdirSync(dirname(path))) {
        const [, whole, pid] = /^(.*)\.(\d+)\.partial$/.exec(name) ?? []
        if (whole === basename(path) && (Number(pid) === process.pid || !isRunning(Number(pid)))) {
          rmSync(join(dirname(path), name))
        }
      }
    })
  )

/**
 * A name for a file that becomes `path` when it is whole; the file is gone when the scope closes. Those of processes that
 * were killed are removed.
 */
export const partialOf = (path: string) =>
  Effect.acquireRelease(Effect.as(removeLeftovers(path), `${path}.${process.pid}.partial`), (partial) =>
    Effect.ignore(Effect.try(() => rmSync(partial, { force: true })))
  )

/** Gives a whole, synced file its final name: over another one with `force` only. */
export const publish = (partial: string, path: string, force: boolean) =>
  onDisk(`${path} cannot be written`, () => {
    // It may have been made meanwhile. A hard link would refuse that by itself, and FAT and SMB have none.
    if (!force && existsSync(path)) throw Object.assign(new Error("EEXIST: it exists"), { code: "EEXIST" })
    renameSync(partial, path)
    syncToDisk(dirname(path))
  })

/** Writes a file whole or not at all, readable by its owner only. */
export const writeOutput = Effect.fn("Backup.writeOutput")(function* (path: string, text: string, force: boolean) {
  const partial = yield* partialOf(path)
  yield* onDisk(`${path} cannot be written`, () =>
    writeFileSync(partial, text, { mode: 0o600, flag: "wx", flush: true })
  )
  yield* publish(partial, path, force)
}, Effect.scoped)
