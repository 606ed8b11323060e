/**
 * Which database a write-ahead log belongs to. SQLite takes the `-wal` beside a database for its own, whichever file that is:
 * where the database was replaced while tilld had it open, it would play the log of the former file into the new one, and
 * delete it. So tilld notes both files while it has them open, in `<database>.wal-of`. After a kill the note stays.
 *
 * A file is known by its inode number and time of birth. A copy of both files has others, and is taken as it is.
 */
import { existsSync, lstatSync, rmSync, statSync } from "node:fs"
import { Either } from "effect"
import { readBeside, realFile, writeAnew } from "./fileAccess.ts"

const idOf = (path: string): string => {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? "" : `${found.ino}/${found.birthtimeNs}`
}

const filesAt = (given: string) => {
  const path = realFile(given)
  return { path, log: `${path}-wal`, note: `${path}.wal-of` }
}

/** For a process that has the database open, with its log. */
export const noteLog = (database: string) => {
  const { log, note, path } = filesAt(database)
  writeAnew(note, `${idOf(log)} ${idOf(path)}\n`)
}

/** For a process that has closed the database. SQLite leaves the log of a replaced one. */
export const forgetLog = (database: string) => {
  const { log, note } = filesAt(database)
  if (!existsSync(log)) rmSync(note, { force: true })
}

/**
 * Why the database must not be opened: the log beside it was written for another file. Undefined where it may be, also where
 * that is not known.
 */
export const foreignLog = (database: string): string | undefined => {
  const { log, note, path } = filesAt(database)
  const found = Either.getOrUndefined(Either.try(() => lstatSync(note)))
  if (found === undefined) return undefined
  // Without a log anything that is there is replaced, but for a folder.
  if (!found.isDirectory() && !(existsSync(log) && existsSync(path))) return undefined
  const text = Either.try(() => readBeside(note))
  if (Either.isLeft(text)) {
    return (
      `${note} is not as tilld makes it, a small file that says which file ${log} belongs to. Nothing was changed. ` +
      `Move it away and start tilld again; first put the former file back if ${path} was replaced while tilld had it open`
    )
  }
  const [ownLog = "", own = ""] = text.right.trim().split(" ")
  if (idOf(log) !== ownLog || idOf(path) === own) return undefined
  return (
    `${path} was replaced while tilld had another file open there, which ${log} belongs to and which lacks what is in it: ` +
    "SQLite would damage the new file and lose the former one's changes. Nothing was changed. Put the former file back and " +
    "start tilld; if the new one is what you want, then stop it and tilld restore the new one. If the former file is gone, " +
    `move ${log} and ${path}-shm away; if both files are of one copy, remove ${note}`
  )
}
