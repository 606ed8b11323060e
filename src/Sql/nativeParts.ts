import { statfsSync } from "node:fs"
import { codeOf } from "./Db.ts"

/** Free bytes for tilld on the disk of a folder; undefined where the folder is inaccessible. */
export const freeBytes = (folder: string): number | undefined => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return undefined
  }
}

// How better-sqlite3 and secp256k1 say that npm ran no install script, or ran it under another Node. A release has no
// elliptic.js, which secp256k1 would use instead.
const missing = /bindings file|NODE_MODULE_VERSION|ERR_DLOPEN_FAILED|Cannot find module '\.\/elliptic'/

/** What to do where a native part cannot be loaded; undefined for any other error. */
export const nativeProblem = (cause: unknown): string | undefined =>
  missing.test(`${codeOf(cause)} ${cause}`)
    ? `a native part, of better-sqlite3 or secp256k1, is missing or not for Node ${process.version}: run tilld with a Node that its release is for, or npm rebuild better-sqlite3 secp256k1 in a checkout`
    : undefined
