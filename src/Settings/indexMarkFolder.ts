import { createHash } from "node:crypto"
import { homedir, userInfo } from "node:os"
import { basename, dirname, join, relative } from "node:path"
import type { SettingsSource } from "./configSource.ts"

/** Whether a copy of the database's folder would contain `folder`. Both paths are absolute. */
export const isBeside = (database: string, folder: string): boolean =>
  !relative(dirname(database), folder).startsWith("..")

/** The name of a sandbox's folder. */
export const sandboxFolder = ".sandbox"

/** A sandbox deletes its database at each start, and all sandboxes have one wallet: each has a folder for its mark alone. */
const ownFolder = (database: string, folder: string): string =>
  basename(dirname(database)) === sandboxFolder
    ? join(folder, `sandbox-${createHash("sha256").update(database).digest("hex").slice(0, 16)}`)
    : folder

/**
 * The default folder for the mark of the address numbering: a cache directory, which backups omit and restores do not
 * bring back. systemd's comes first (`CacheDirectory=` of the unit). A folder that is copied with the database's proves
 * nothing; then it is /var/tmp, which survives a reboot.
 */
export const markFolderOf = (database: string, env: SettingsSource["env"]): string => {
  const [systemd] = (env.CACHE_DIRECTORY ?? "").split(":")
  const cache = env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache")
  const folders = [...(systemd ? [systemd] : []), join(cache, "tilld")]
  const shared = folders.find((folder) => !isBeside(database, folder)) ?? join("/var/tmp", `tilld-${userInfo().uid}`)
  return ownFolder(database, shared)
}
