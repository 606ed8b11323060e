/** Where a backup may be written, and how files get their final names: whole, synced, and never over another file. */
import { randomBytes } from "node:crypto"
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync
} from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Data, Effect } from "effect"
import { codeOf } from "../Sql/Db.ts"
import { syncToDisk } from "../Sql/fileAccess.ts"
import { isRunning } from "../Sql/InstanceLock.ts"
import { isBackup } from "./manifest.ts"

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
  [/^EEXIST/, "name another file, or --force replaces it"]
]

/** The error of a failed operation, with a remedy where the code has one. */
export const failed = (what: string, code: string, message: string) => {
  const remedy = remedies.find(([codes]) => codes.test(code))?.[1]
  return new BackupFailed({ message: `${what} (${message})${remedy === undefined ? "" : `: ${remedy}`}` })
}

/** Runs a file system call; `what` names the operation that failed where it throws. */
export const onDisk = <A>(what: string, call: () => A): Effect.Effect<A, BackupFailed> =>
  Effect.try({
    try: call,
    catch: (cause) => failed(what, codeOf(cause), cause instanceof Error ? cause.message : String(cause))
  })

export const because = (what: string) => (cause: unknown) =>
  failed(what, codeOf(cause), cause instanceof Error ? cause.message : String(cause))

const found = (path: string): Stats | undefined => {
  try {
    return lstatSync(path)
  } catch {
    return undefined
  }
}

/** The folder by its real name. `refused`: what is said where nothing can be written into it. */
export const writableFolder = (folder: string, refused = "No backup can be made"): Effect.Effect<string, PathRefused> =>
  Effect.try({
    try: () => {
      const real = realpathSync(folder)
      if (!statSync(real).isDirectory()) throw Object.assign(new Error("it is not a folder"), { code: "ENOTDIR" })
      accessSync(real, constants.W_OK | constants.X_OK)
      return real
    },
    catch: (cause) => {
      const code = codeOf(cause)
      const reason =
        code === "ENOENT"
          ? "it does not exist: make it, or mount its disk"
          : code === "ENOTDIR"
            ? "it is not a folder"
            : code === "EROFS"
              ? "its file system is mounted read-only: mount it writable"
              : code === "EACCES"
                ? "this user may not write into it"
                : String(cause)
      return new PathRefused({ message: `${refused} in ${folder}: ${reason}` })
    }
  })

/** Files beside a database that belong to it. */
const belongings = /^(|-wal|-shm|-journal|\.lock|\.pid|\.wal-of|\.sock|\.restoring|\.last-backup)$/

const isOfDatabase = (path: string, database: string): boolean => {
  const real = existsSync(database) ? realpathSync(database) : resolve(database)
  if (path.startsWith(real) && belongings.test(path.slice(real.length))) return true
  const [own, other] = [found(real), found(path)]
  return own !== undefined && other !== undefined && own.ino === other.ino && own.dev === other.dev
}

const readable = <A>(given: string, read: () => A): Effect.Effect<A, PathRefused> =>
  Effect.try({ try: read, catch: (cause) => new PathRefused({ message: `${given} cannot be read (${cause})` }) })

/**
 * The real name of the file that a backup is to become, links followed. Refuses all but a new file in a folder that
 * exists, and with `force` another backup; also what belongs to the database.
 */
export const targetFile = (given: string, database: string, force: boolean): Effect.Effect<string, PathRefused> =>
  Effect.gen(function* () {
    const absolute = resolve(given)
    const isLink = found(absolute)?.isSymbolicLink() === true
    if (isLink && !existsSync(absolute)) {
      return yield* new PathRefused({
        message: `${given} is a link to a file that does not exist: remove it, or give that file`
      })
    }
    const there = existsSync(absolute) ? statSync(absolute) : undefined
    if (there?.isDirectory()) {
      return yield* new PathRefused({
        message: `${given} is a folder: name a file in it`
      })
    }
    if (there !== undefined && !there.isFile()) {
      return yield* new PathRefused({
        message: `${given} is not a regular file: for a device or a pipe write to standard output, tilld backup - > ${given}`
      })
    }
    const path = isLink ? realpathSync(absolute) : join(yield* writableFolder(dirname(absolute)), basename(absolute))
    if (isLink) yield* writableFolder(dirname(path))
    if (isOfDatabase(path, database)) {
      return yield* new PathRefused({ message: `${given} belongs to the database itself: give another name` })
    }
    if (there !== undefined && !force) {
      return yield* new PathRefused({ message: `${given} exists: give another name, or --force to replace it` })
    }
    if (there !== undefined && !(yield* readable(given, () => isBackup(path)))) {
      return yield* new PathRefused({
        message: `${given} is not a backup, and --force replaces nothing else: give another name, or remove it yourself`
      })
    }
    return path
  })

const removed = (path: string) => Effect.ignore(Effect.try(() => rmSync(path, { force: true })))

/**
 * Removes partial files of processes that have ended. What cannot be removed stays, as another user's file: nobody else can
 * stop a backup or a signature with it.
 */
export const removePartials = (folder: string, isLeft: (whole: string, pid: number) => boolean): Effect.Effect<void> =>
  Effect.try(() => readdirSync(folder, { withFileTypes: true })).pipe(
    Effect.map((entries) =>
      entries.filter((entry) => {
        const [, whole, pid] = /^(.*)\.(\d+)(?:-[0-9a-f]+)?\.partial$/.exec(entry.name) ?? []
        return whole !== undefined && entry.isFile() && isLeft(whole, Number(pid))
      })
    ),
    Effect.flatMap((left) => Effect.forEach(left, ({ name }) => removed(join(folder, name)), { concurrency: 1 })),
    Effect.ignore
  )

/**
 * A name for a file that becomes `path` when it is whole, `<path>.<pid>-<random>.partial`, which nobody can have taken; the
 * file is gone when the scope closes. Those of processes that were killed are removed.
 */
export const partialOf = (path: string) =>
  Effect.acquireRelease(
    Effect.as(
      removePartials(
        dirname(path),
        (whole, pid) => whole === basename(path) && (pid === process.pid || !isRunning(pid))
      ),
      `${path}.${process.pid}-${randomBytes(4).toString("hex")}.partial`
    ),
    removed
  )

/** FAT, exFAT, SMB and some of FUSE have no hard links, and say so in different ways. */
const noLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"])

/** Adds a second name to a file, never an existing one. Whether the file system supports that. */
export const linked = (path: string, second: string): boolean => {
  try {
    linkSync(path, second)
    return true
  } catch (cause) {
    if (noLinks.has(codeOf(cause))) return false
    throw cause
  }
}

/** Unlike rename alone, this never replaces a file that was made meanwhile: the name is taken before. */
const renameToNew = (partial: string, path: string) => {
  closeSync(openSync(path, "wx", 0o600))
  try {
    renameSync(partial, path)
  } catch (cause) {
    rmSync(path)
    throw cause
  }
}

/** Gives a whole, synced file its final name: over another one with `force` only. */
export const publish = (partial: string, path: string, force: boolean) =>
  onDisk(`${path} cannot be written`, () => {
    if (force) renameSync(partial, path)
    else if (!linked(partial, path)) renameToNew(partial, path)
    syncToDisk(dirname(path))
  })
