import { homedir, userInfo } from "node:os"
import { dirname, join, relative } from "node:path"
import type { SettingsSource } from "./configSource.ts"

/** Whether a copy of the database's folder would contain `folder`. Both paths are absolute. */
export const isBeside = (database: string, folder: string): boolean =>
  !relative(dirname(database), folder).startsWith("..")

/**
 * The default folder for the mark of the address numbering: a cache directory, which backups omit and restores do not
 * bring back. systemd's comes first (`CacheDirectory=` of the unit). A folder that is copied with the database's proves
 * nothing; then it is /var/tmp, which survives a reboot.
 */
export const markFolderOf = (database: string, env: SettingsSource["env"]): string => {
  const [systemd] = (env.CACHE_DIRECTORY ?? "").split(":")
  const cache = env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache")
  const folders = [...(systemd ? [systemd] : []), join(cache, "tilld")]
  return folders.find((folder) => !isBeside(database, folder)) ?? join("/var/tmp", `tilld-${userInfo().uid}`)
}
