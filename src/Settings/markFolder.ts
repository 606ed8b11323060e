import { homedir, userInfo } from "node:os"
import { dirname, join, relative } from "node:path"
import type { SettingsSource } from "./source.ts"

/** Whether a copy of the database's folder has `folder` in it too. Both absolute. */
export const isBeside = (database: string, folder: string): boolean =>
  !relative(dirname(database), folder).startsWith("..")

/**
 * Where the mark of the numbering is kept unless the configuration says so: a cache directory, which backups leave out and
 * restores do not bring back. systemd's comes first (`CacheDirectory=` of the unit). One that a copy of the database's
 * folder would hold proves nothing, so that /var/tmp, which outlives a reboot, takes its place.
 */
export const markFolderOf = (database: string, env: SettingsSource["env"]): string => {
  const [systemd] = (env.CACHE_DIRECTORY ?? "").split(":")
  const cache = env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache")
  const folders = [...(systemd ? [systemd] : []), join(cache, "tilld")]
  return folders.find((folder) => !isBeside(database, folder)) ?? join("/var/tmp", `tilld-${userInfo().uid}`)
}
