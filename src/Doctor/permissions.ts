import { statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Either } from "effect"
import { markFile } from "../Payments/addresses/IndexMark.ts"
import type { SettingsShape, SettingsSource } from "../Settings.ts"
import { filesOf, isReadOnly, type User, userNamed, userNumbered } from "../Sql/fileAccess.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"

/** A file and its required permissions. */
interface Rule {
  readonly path: string
  /** The daemon makes it, and must own it. */
  readonly isOwn: boolean
  /** Permissions that the daemon needs; of a folder, also to enter it. None of what systemd reads for it. */
  readonly need: number
  /** Permissions that only its owner, or its group, may have. */
  readonly never: number
}

const others = 0o007
const groupAndOthers = 0o077
const read = 0o4
const readAndWrite = 0o6
const enter = 0o1

const name = "permissions"

/** Whether the mode of a file gives a user these permissions. */
const mayUse = (user: User, path: string, need: number): boolean => {
  const { gid, mode, uid } = statSync(path)
  if (user.uid === 0) return true
  const ownBits = uid === user.uid ? 6 : undefined
  // No finding for a user whose groups are unknown here, as in some containers: it might be wrong.
  const groupBits = user.groups === undefined || user.groups.includes(gid) ? 3 : undefined
  return ((mode >> (ownBits ?? groupBits ?? 0)) & need) === need
}

/** The first folder above a file that a user may not enter. */
const closedFolder = (user: User, path: string): string | undefined => {
  const folder = dirname(path)
  if (folder === path) return undefined
  return closedFolder(user, folder) ?? (mayUse(user, folder, enter) ? undefined : folder)
}

const accessFinding = ({ isOwn, need, path }: Rule, user: User): Finding | undefined => {
  if (need === 0) return undefined
  const closed = closedFolder(user, resolve(path))
  if (closed !== undefined) {
    return fail(name, `${user.name} may not enter ${closed}`, `chgrp ${user.name} ${closed}; chmod g+x ${closed}`)
  }
  const found = statSync(path)
  if (mayUse(user, path, need | (found.isDirectory() ? enter : 0))) return undefined
  const what = need === read ? "read" : "read and write"
  return fail(
    name,
    `${user.name} may not ${what} ${path} (mode ${shown(found.mode)})`,
    isOwn ? `chmod u+rwX ${path}` : `chgrp ${user.name} ${path}; chmod g+r ${path}`
  )
}

const shown = (mode: number): string => (mode & 0o777).toString(8)

const examineOne = (rule: Rule, user: User): Finding | "fine" | "missing" => {
  const { isOwn, never, path } = rule
  const found = Either.try(() => statSync(path))
  if (Either.isLeft(found)) return "missing"
  const { mode, uid } = found.right
  if (isOwn && uid !== user.uid) {
    const finding = `${path} belongs to ${userNumbered(uid).name}, and tilld runs as ${user.name}`
    return fail(name, finding, `chown ${user.name}: ${path}`)
  }
  const refused = accessFinding(rule, user)
  if (refused !== undefined) return refused
  if ((mode & never) === 0) return "fine"
  const who = never === others ? "others on this machine" : "others than its owner"
  const remedy = `chmod ${never === others ? "o-rwx" : "go-rwx"} ${path}`
  return warn(name, `${path} is open to ${who} (mode ${shown(mode)})`, remedy)
}

/** The user of a start: for root, the unit's user or else the folder's owner; otherwise the current user. */
const expectedUser = (folder: string): User => {
  const own = userNumbered(process.getuid?.() ?? 0)
  if (own.uid !== 0) return own
  const { uid = 0 } = statSync(folder, { throwIfNoEntry: false }) ?? {}
  return userNamed("tilld") ?? userNumbered(uid)
}

/** Where the master key may be in a file that systemd does not protect: for a unit, beside the configuration. */
const credentialFiles = ({ env, path }: SettingsSource): ReadonlyArray<string> =>
  Array.from(new Set([dirname(path), env.CREDENTIALS_DIRECTORY ?? dirname(path)]))
    .filter((folder) => !folder.startsWith("/run/"))
    .map((folder) => join(folder, "master-key"))

/**
 * Checks who owns and who may use each file. The daemon's user is that of its process, `daemonUser`; undefined where none
 * runs.
 */
export const examinePermissions = (
  source: SettingsSource,
  { control, database }: SettingsShape,
  daemonUser: number | undefined
): ReadonlyArray<Finding> => {
  const folder = dirname(resolve(database.path))
  const user = daemonUser === undefined ? expectedUser(folder) : userNumbered(daemonUser)
  const own = (path: string): Rule => ({ path, isOwn: true, need: readAndWrite, never: others })
  const rules: ReadonlyArray<Rule> = [
    { path: source.path, isOwn: false, need: read, never: others },
    ...[...filesOf(database.path), `${database.path}.sock`].map(own),
    ...(control.readSocket === "" ? [] : [own(control.readSocket)]),
    { path: `${folder}/master.key`, isOwn: true, need: read, never: groupAndOthers },
    ...credentialFiles(source).map((path): Rule => ({ path, isOwn: false, need: 0, never: groupAndOthers })),
    own(database.markFolder),
    own(markFile(database))
  ]
  // Only root sees the real state: in the doctor's unit all file systems are read-only.
  const sealed = process.getuid?.() === 0 ? [folder, database.markFolder].filter(isReadOnly) : []
  const found = rules.map((rule) => examineOne(rule, user)).filter((each) => each !== "missing")
  const judged = found.filter((each) => each !== "fine")
  const wrong = [
    ...sealed.map((path) =>
      fail(
        name,
        `${path} is on a file system that is mounted read-only`,
        "mount it writable; a disk error may be why (dmesg)"
      )
    ),
    // A folder that is closed closes all files in it.
    ...judged.filter(({ finding }, index) => judged.findIndex((each) => each.finding === finding) === index)
  ]
  return wrong.length > 0 ? wrong : [ok(name, `${found.length} files and folders belong to whom they should`)]
}
