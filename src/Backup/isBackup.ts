/** Detects a file's type by its bytes. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { databaseBytes, headerBytes, longestManifest, parseTrailer } from "./manifest.ts"

const beginning = "age-encryption.org/"
const armor = "-----BEGIN AGE"

/** Whether a file that begins like this is encrypted by age: in the binary form, or in the one for texts. */
export const encryptionOf = (start: string): "binary" | "armored" | undefined =>
  start.startsWith(beginning) ? "binary" : start.startsWith(armor) ? "armored" : undefined

/** Whether a file is a backup of tilld: encrypted by age, or a database with a manifest behind it. */
export const isBackup = (path: string): boolean => {
  const file = openSync(path, "r")
  const read = (length: number, position: number) => {
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, readSync(file, bytes, 0, length, position))
  }
  try {
    const header = read(headerBytes, 0)
    if (encryptionOf(header.toString("latin1")) === "binary") return true
    const bytes = databaseBytes(header)
    const after = bytes === undefined ? 0 : fstatSync(file).size - bytes
    return after > 0 && after <= longestManifest && parseTrailer(read(after, bytes ?? 0).toString("utf8")) !== undefined
  } finally {
    closeSync(file)
  }
}
