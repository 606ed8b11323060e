import { chmodSync, closeSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { dirname } from "node:path"
import Database from "better-sqlite3"
import { Data, Effect, type Scope } from "effect"
import type { StoreUnavailable } from "./Db.ts"
import { filesOf, openOwn, refusedAccess, writeAnew } from "./fileAccess.ts"
import { hasFormerLog, mustNotOpen } from "./logOwner.ts"
import { StoreUnusable, unusableFiles } from "./StoreUnusable.ts"

/** Another process has this database open. Nothing was changed. */
export class InstanceLocked extends Data.TaggedError("InstanceLocked")<{
  readonly message: string
  /** Undefined while the holder has not written its pid file yet, or when its process is not visible (containers). */
  readonly pid: number | undefined
}> {}

interface Holder {
  readonly pid: number
  readonly command: string
}

/** Whether a process of this machine has this number. */
export const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** The holder as its pid file names it; undefined where that is none of tilld's, or its process no longer runs. */
const readHolder = (file: string): Holder | undefined => {
  try {
    const [pid = "", ...command] = readFileSync(file, "utf8").trim().split(" ")
    const holder = { pid: Number(pid), command: command.join(" ") }
    return Number.isSafeInteger(holder.pid) && holder.pid > 0 && isRunning(holder.pid) ? holder : undefined
  } catch {
    return undefined
  }
}

/** A user who can open the file can lock it and keep tilld from starting: no access for other users of this machine. */
const lockMode = 0o640

const isBusy = (error: unknown): boolean =>
  error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY")

// Node has no flock. SQLite uses locks of the operating system, which are released when a process dies in any way.
// Nothing is ever written to this file. Once it is there no other code may open it: POSIX releases all locks that a process
// has on a file as soon as the process closes any descriptor of it.
const lock = (file: string): (() => void) | undefined => {
  if (!existsSync(file)) closeSync(openOwn(file))
  if (statSync(file).uid === process.getuid?.()) chmodSync(file, lockMode)
  const connection = new Database(file, { timeout: 0, fileMustExist: true })
  try {
    // Otherwise SQLite creates a journal file for this transaction, which never writes.
    connection.pragma("journal_mode = MEMORY")
    connection.exec("BEGIN EXCLUSIVE")
    return () => connection.close()
  } catch (error) {
    connection.close()
    if (isBusy(error)) return undefined
    throw error
  }
}

export const lockedBy = (database: string, holder: Partial<Holder> | undefined) =>
  new InstanceLocked({
    pid: holder?.pid,
    message:
      `Another process works on ${database}: ` +
      (holder?.pid === undefined
        ? "it has not given its name; look for another tilld, also in other containers, and end it"
        : `tilld ${holder.command}, process ${holder.pid}; wait for it, or end it`)
  })

/** Whether a process holds the lock; undefined where this user may not see it. Takes a reader's lock for an instant. */
const isHeld = (file: string): boolean | undefined => {
  try {
    if (statSync(file, { throwIfNoEntry: false }) === undefined) return false
    const connection = new Database(file, { readonly: true, timeout: 0 })
    try {
      connection.pragma("schema_version")
      return false
    } finally {
      connection.close()
    }
  } catch (error) {
    return isBusy(error) ? true : undefined
  }
}

/**
 * The process that works on a database, as it has named itself; undefined where none does. After a kill the pid file
 * stays, and its number may be another process's: the lock decides.
 */
export const holderOf = (database: string): Partial<Holder> | undefined => {
  const held = isHeld(`${database}.lock`)
  if (held === false) return undefined
  return readHolder(`${database}.pid`) ?? (held === true ? {} : undefined)
}

/**
 * Locks the database for this process, until the scope closes or the process dies: an exclusive lock on
 * `<database>.lock`, with the holder's pid and `command` in `<database>.pid` for the error message of others. Fails with
 * `StoreUnusable` where SQLite must not open the database, see `logOwner.ts`.
 */
export const acquire = (
  database: string,
  command: string
): Effect.Effect<void, InstanceLocked | StoreUnusable | StoreUnavailable, Scope.Scope> => {
  const pidFile = `${database}.pid`
  const take = Effect.try({
    try: () => {
      // First, since a later step would fail half-way: the files of one user may be inaccessible to another.
      const message = refusedAccess(filesOf(database)) ?? mustNotOpen(database) ?? hasFormerLog(database)
      if (message !== undefined) throw new StoreUnusable({ message })
      mkdirSync(dirname(database), { recursive: true, mode: 0o750 })
      const unlock = lock(`${database}.lock`)
      try {
        if (unlock !== undefined) writeAnew(pidFile, `${process.pid} ${command}\n`)
      } catch (cause) {
        unlock?.()
        throw cause
      }
      return unlock
    },
    catch: (cause) =>
      cause instanceof StoreUnusable
        ? cause
        : unusableFiles(cause, filesOf(database), `Cannot work in ${dirname(database)}`)
  })
  return Effect.acquireRelease(
    Effect.flatMap(take, (unlock) =>
      unlock === undefined ? Effect.fail(lockedBy(database, readHolder(pidFile))) : Effect.succeed(unlock)
    ),
    (unlock) =>
      Effect.sync(() => {
        rmSync(pidFile, { force: true })
        unlock()
      })
  ).pipe(Effect.asVoid, Effect.withSpan("InstanceLock.acquire"))
}
