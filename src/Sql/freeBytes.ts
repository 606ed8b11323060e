import { statfsSync } from "node:fs"

/** What the disk of a folder has left for tilld; undefined where the folder is not to be seen. */
export const freeBytes = (folder: string): number | undefined => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return undefined
  }
}
