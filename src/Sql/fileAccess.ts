import {
  accessSync,
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
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
 * What root makes in the folder of another user belongs to that user: tilld has to read and write it. By its descriptor:
 * that user may have put a link to a file of root's in the place of the name.
 */
export const giveToFolder = (file: string, descriptor: number) => {
  const { gid, uid } = statSync(dirname(file))
  if (process.getuid?.() === 0 && fstatSync(descriptor).uid !== uid) fchownSync(descriptor, uid, gid)
}

/** Writes a small file anew: never into what is there, which may be a link to a file of the user who runs tilld. */
export const writeAnew = (file: string, text: string) => {
  rmSync(file, { force: true })
  const descriptor = openSync(file, "wx", 0o640)
  try {
    writeFileSync(descriptor, text)
    giveToFolder(file, descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Reads a regular file of at most so many bytes, by its descriptor. Anything else in its place is refused: a pipe would
 * wait for a writer, a device may have no end. `flags`: how else it is opened.
 */
export const readRegular = (file: string, mostBytes: number, flags = 0): string => {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | flags)
  try {
    const found = fstatSync(descriptor)
    if (!found.isFile()) throw new Error("it is not a regular file: write it into one first")
    if (found.size > mostBytes) throw new Error(`it has ${found.size} bytes, more than ${mostBytes}`)
    return readFileSync(descriptor, "utf8")
  } finally {
    closeSync(descriptor)
  }
}

/** Reads a small file that tilld writes beside a database: never through a link, which tilld does not make there. */
export const readBeside = (file: string): string => readRegular(file, 4_096, constants.O_NOFOLLOW)

/** Resolves links, also one to a file that is not there yet: two names of one database share its other files. */
export const realFile = (path: string): string =>
  Either.getOrElse(
    Either.try(() => realpathSync(path)),
    () =>
      Either.match(
        Either.try(() => readlinkSync(path)),
        { onLeft: () => path, onRight: (target) => realFile(resolve(dirname(path), target)) }
      )
  )

/**
 * Why a link on the way to a database is not followed: its maker could have other files made and removed beside any file,
 * as `/run/other.pid`. Root's are followed, this user's, and those of the owner of the folder that they lead to.
 */
export const refusedLink = (path: string): string | undefined => {
  const link = Either.try(() => ({ to: readlinkSync(path), uid: lstatSync(path).uid }))
  if (Either.isLeft(link)) return undefined
  const { to, uid } = link.right
  const target = resolve(dirname(path), to)
  const folder = Either.try(() => statSync(dirname(target)).uid)
  return uid === 0 || uid === process.getuid?.() || (Either.isRight(folder) && uid === folder.right)
    ? refusedLink(target)
    : `${path} is a link of ${userName(uid)}'s to a folder of another user, ${dirname(target)}: name the file itself, or remove the link`
}

/** All files that a database is made of, and their folder. */
export const filesOf = (database: string): ReadonlyArray<string> => [
  dirname(resolve(database)),
  ...["", "-wal", "-shm", ".lock", ".pid", ".wal-of"].map((suffix) => `${database}${suffix}`)
]
