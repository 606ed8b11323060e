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

/** How much later than its log a database is written at most: by a checkpoint, which follows a commit. Milliseconds. */
const longestCheckpoint = 5 * 60_000

/**
 * Why the database must not be opened where no daemon has it open: it was written long after the log beside it, as by a copy
 * over the file, which keeps its inode, or beside a log without a note. The time is no proof: a clock may have been set back.
 */
export const hasFormerLog = (path: string): string | undefined => {
  const [own, log] = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false }))
  if (own === undefined || log === undefined || log.size === 0) return undefined
  // A move keeps the times of both, and makes both files anew.
  const [written, logged] = [own, log].map(({ birthtimeMs, mtimeMs }) => Math.max(birthtimeMs, mtimeMs))
  return (written ?? 0) - (logged ?? 0) <= longestCheckpoint
    ? undefined
    : `${path} was written long after ${path}-wal, which SQLite would play into it: nothing was changed. If it was copied there, ` +
        `move ${path}-wal and ${path}-shm away. If not, as where the clock was set back since, touch ${path}-wal`
}
