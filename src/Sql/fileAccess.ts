import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { dirname, resolve } from "node:path"
import { Either } from "effect"

/** A file or folder that this process may not use, as the system says. */
interface Refused {
  readonly path: string
  readonly code: string
  /** User id; undefined where not even that may be read. */
  readonly owner: number | undefined
}

const refusedAt = (path: string): Refused | undefined => {
  const found = Either.try(() => statSync(path))
  // A folder must be entered, too.
  const need =
    constants.R_OK | constants.W_OK | (Either.isRight(found) && found.right.isDirectory() ? constants.X_OK : 0)
  const access = Either.try({
    try: () => accessSync(path, need),
    catch: (error) => String((error as NodeJS.ErrnoException).code)
  })
  if (Either.isRight(access) || ["ENOENT", "ENOTDIR"].includes(access.left)) return undefined
  return { path, code: access.left, owner: Either.isRight(found) ? found.right.uid : undefined }
}

/** A user of this machine. */
export interface User {
  readonly uid: number
  /** The number where it has none, as in some containers. */
  readonly name: string
  /** Numbers of its groups; undefined where they are not known. */
  readonly groups: ReadonlyArray<number> | undefined
}

/** The lines of /etc/passwd or /etc/group by field. */
const entriesOf = (file: string): ReadonlyArray<ReadonlyArray<string>> =>
  Either.getOrElse(
    Either.try(() => readFileSync(file, "utf8")),
    () => ""
  )
    .split("\n")
    .map((line) => line.split(":"))

const userOf = ([name = "", , uid, gid]: ReadonlyArray<string>): User => {
  const groups = entriesOf("/etc/group").filter(([, , , members = ""]) => members.split(",").includes(name))
  return { uid: Number(uid), name, groups: [Number(gid), ...groups.map(([, , number]) => Number(number))] }
}

export const userNamed = (name: string): User | undefined => {
  const entry = entriesOf("/etc/passwd").find(([own]) => own === name)
  return entry && userOf(entry)
}

export const userNumbered = (uid: number): User => {
  const entry = entriesOf("/etc/passwd").find(([, , number]) => number === String(uid))
  const user = entry === undefined ? { uid, name: String(uid), groups: undefined } : userOf(entry)
  // A process may have more: systemd's SupplementaryGroups=.
  return uid === process.getuid?.()
    ? { ...user, groups: [...(user.groups ?? []), ...(process.getgroups?.() ?? [])] }
    : user
}

const userName = (uid: number): string => userNumbered(uid).name

const self = () => userName(process.getuid?.() ?? 0)

/**
 * Which of these files and folders this process may not read and write, and what to do about it; undefined where it may use
 * all that exist.
 */
export const refusedAccess = (paths: ReadonlyArray<string>): string | undefined => {
  const refused = paths.flatMap((path) => refusedAt(path) ?? [])
  const [first] = refused
  if (first === undefined) return undefined
  if (refused.some(({ code }) => code === "EROFS")) {
    return `${first.path} is on a file system that is mounted read-only: mount it writable; a disk error may be why (dmesg)`
  }
  const what = refused
    .map(({ owner, path }) => `${path} (of ${owner === undefined ? "another user" : userName(owner)})`)
    .join(", ")
  const names = refused.map(({ path }) => path).join(" ")
  const own = refused.every(({ owner }) => owner === process.getuid?.())
  const [owner = 0, ...others] = new Set(refused.flatMap(({ owner }) => owner ?? []))
  // First what changes nothing: the folder may be another user's on purpose.
  const who = userName(others.length === 0 ? owner : 0)
  const remedy = own ? `chmod u+rwX ${names}` : `run this as ${who}, or chown ${self()}: ${names}`
  return `User ${self()} may not read and write ${what}: ${remedy}`
}

/** Whether a file or folder is on a file system that is mounted read-only. */
export const isReadOnly = (path: string): boolean => refusedAt(path)?.code === "EROFS"

/**
 * Opens a file of the data folder to read and to add to it; makes it for its owner and group if it is not there. Never
 * through a link. What root makes belongs to the owner of the folder: tilld has to read and write it.
 */
export const openOwn = (file: string): number => {
  const isNew = !existsSync(file)
  const descriptor = openSync(
    file,
    constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW,
    0o640
  )
  const { gid, uid } = statSync(dirname(file))
  if (isNew && process.getuid?.() === 0) fchownSync(descriptor, uid, gid)
  return descriptor
}

/** Replaces a small file. */
export const writeAnew = (file: string, text: string) => {
  rmSync(file, { force: true })
  const descriptor = openOwn(file)
  try {
    writeFileSync(descriptor, text)
  } finally {
    closeSync(descriptor)
  }
}

/** Syncs a file or a folder to disk. */
export const syncToDisk = (path: string) => {
  const file = openSync(path, "r")
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** All files that a database is made of, and their folder. */
export const filesOf = (database: string): ReadonlyArray<string> => [
  dirname(resolve(database)),
  ...["", "-wal", "-shm", ".lock", ".pid", ".wal-of"].map((suffix) => `${database}${suffix}`)
]
