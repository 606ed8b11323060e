import { statfsSync } from "node:fs"

/** Free bytes for tilld on the disk of a folder; undefined where the folder is inaccessible. */
export const freeBytes = (folder: string): number | undefined => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return undefined
  }
}
