import { constants, copyFileSync, existsSync, mkdtempSync, realpathSync, rmSync, statfsSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { codeOf } from "../Sql/Db.ts"
import { filesOf, refusedAccess } from "../Sql/fileAccess.ts"
import { nativeProblem } from "../Sql/nativeParts.ts"
import { type Finding, fail } from "./Finding.ts"

const name = "database"

/** Bytes that stay free beside a copy. */
const reserve = 500_000_000

const size = (path: string): number => (existsSync(path) ? statSync(path).size : 0)

/** One finding for a file that SQLite cannot read. */
export const unreadable = (path: string, error: unknown): Finding => {
  const code = codeOf(error)
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    return fail(name, `${path} is damaged, or no SQLite database (${error})`, restoreBackup)
  }
  const native = nativeProblem(error)
  if (native !== undefined) return fail(name, native)
  const refused = refusedAccess(filesOf(path))
  return fail(
    name,
    refused ?? `${path} cannot be read: ${error}`,
    "run this as tilld's user or root, and check the file"
  )
}

export const restoreBackup = "stop tilld, keep a copy of the files, and restore the last backup"

const using = <A>(file: string, use: (database: Database.Database) => A): A => {
  const database = new Database(file, { readonly: true, timeout: 5_000 })
  try {
    return use(database)
  } finally {
    database.close()
  }
}

/**
 * Reads a database without a change to any of its files. While a daemon has it open, a reading connection beside it
 * only takes the locks that never hold up a writer. Where `-wal` or `-shm` is missing SQLite would create it, as the
 * user who runs this, and a daemon of another user could not open it: so beside a daemon nothing is opened then, and
 * without one a copy is read, in a folder that only this user may enter.
 */
export const readDatabase = <A>(
  given: string,
  isOpen: boolean,
  use: (database: Database.Database) => A
): A | Finding => {
  // SQLite keeps its other files beside the one that a link names.
  const path = realpathSync(given)
  if (isOpen) {
    const missing = ["-wal", "-shm"].map((suffix) => path + suffix).filter((file) => !existsSync(file))
    if (missing.length > 0) {
      const finding = `${missing.join(" and ")} was removed while the daemon has it open: the database was not examined`
      return fail(name, finding, "look at its log before you restart it")
    }
    const owners = new Set(["", "-wal", "-shm"].map((suffix) => statSync(path + suffix).uid))
    // As root, SQLite gives -wal and -shm to the owner of the database.
    if (process.getuid?.() !== 0 || owners.size === 1) return using(path, use)
    const finding = `${path}, its -wal and its -shm belong to different users: the database was not examined`
    return fail(name, finding, "let all belong to the daemon's user")
  }
  const folder = mkdtempSync(join(tmpdir(), "tilld-doctor-"))
  try {
    const { bavail, bsize } = statfsSync(folder)
    if (size(path) + size(`${path}-wal`) + reserve > bavail * bsize) {
      return fail(name, `a copy of it to examine does not fit into ${tmpdir()}`, "start tilld, or name another TMPDIR")
    }
    for (const suffix of ["", "-wal"].filter((each) => existsSync(path + each))) {
      copyFileSync(path + suffix, join(folder, `copy.db${suffix}`), constants.COPYFILE_FICLONE)
    }
    return using(join(folder, "copy.db"), use)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
