/**
 * Which database a write-ahead log belongs to. SQLite takes the `-wal` beside a database for its own, whichever file that is:
 * where the database was replaced while tilld had it open, it would play the log of the former file into the new one, and
 * delete it. So tilld notes both files while it has them open, in `<database>.wal-of`. After a kill the note stays.
 *
 * A file is known by its inode number and time of birth. A copy of both files has others, and is taken as it is.
 */
import { existsSync, lstatSync, readFileSync, rmSync, statSync } from "node:fs"
import { writeAnew } from "./fileAccess.ts"

const idOf = (path: string): string => {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? "" : `${found.ino}/${found.birthtimeNs}`
}

/** For a process that has the database open, with its log. */
export const noteLog = (path: string) => writeAnew(`${path}.wal-of`, `${idOf(`${path}-wal`)} ${idOf(path)}\n`)

/** For a process that has closed the database. SQLite leaves the log of a replaced one. */
export const forgetLog = (path: string) => {
  if (!existsSync(`${path}-wal`)) rmSync(`${path}.wal-of`, { force: true })
}

/**
 * Why the database must not be opened: it is a link, or the log beside it was written for another file. Undefined where it
 * may be, also where that is not known.
 */
export const mustNotOpen = (path: string): string | undefined => {
  // SQLite would keep its other files beside the one that it leads to, where no lock is.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
    return `${path} is a link, which is not followed: give the name of the file itself`
  }
  const [log, note] = [`${path}-wal`, `${path}.wal-of`]
  if (![path, log, note].every((file) => existsSync(file))) return undefined
  const [ownLog, own] = readFileSync(note, "utf8").trim().split(" ")
  if (idOf(log) !== ownLog || idOf(path) === own) return undefined
  return (
    `${path} was replaced while tilld had another file open there, which ${log} belongs to and which lacks what is in it: ` +
    "SQLite would damage the new file and lose the former one's changes. Nothing was changed. Put the former file back and " +
    "start tilld; if the new one is what you want, then stop it and tilld restore the new one. If the former file is gone, " +
    `move ${log} and ${path}-shm away; if both files are of one copy, remove ${note}`
  )
}
