/**
 * The last line of a backup: when it was made, and the SHA-256 of all that is before the digest. SQLite reads as many pages
 * as the database's header counts and ignores the rest, so that a backup is a database for `sqlite3` too, and `tail -n 1`
 * shows the line.
 */
import { createHash } from "node:crypto"
import { fstatSync, fsyncSync, readSync, writeFileSync } from "node:fs"

export interface Seal {
  /** When the copy was begun, ISO 8601: later changes may not be in it. */
  readonly madeAt: string
  readonly sha256: string
}

const form = /^\n(\S{24}) sha256 ([0-9a-f]{64})\n$/
const sealBytes = 98
const digestBytes = 65

const blockBytes = 1024 * 1024

/** The SHA-256 of the first bytes of an open file. */
const digest = (file: number, bytes: number): string => {
  const hash = createHash("sha256")
  const block = Buffer.allocUnsafe(blockBytes)
  for (let at = 0; at < bytes; ) {
    const read = readSync(file, block, 0, Math.min(blockBytes, bytes - at), at)
    if (read === 0) break
    hash.update(block.subarray(0, read))
    at += read
  }
  return hash.digest("hex")
}

/** Seals a file that is open to read and append, and syncs it to disk. */
export const writeSeal = (file: number, madeAt: string): Seal => {
  // All of it: a full disk accepts part of a single write without an error.
  writeFileSync(file, `\n${madeAt} sha256 `)
  const sha256 = digest(file, fstatSync(file).size)
  writeFileSync(file, `${sha256}\n`)
  fsyncSync(file)
  return { madeAt, sha256 }
}

/** The seal at the end of an open file, which may not be that of its content; undefined where there is none. */
export const readSeal = (file: number): Seal | undefined => {
  const bytes = Buffer.alloc(sealBytes)
  readSync(file, bytes, 0, sealBytes, Math.max(0, fstatSync(file).size - sealBytes))
  const [, madeAt, sha256] = form.exec(bytes.toString("latin1")) ?? []
  return madeAt === undefined || sha256 === undefined ? undefined : { madeAt, sha256 }
}

/** What is wrong with a sealed file; undefined where it is as it was made. */
export const brokenSeal = (file: number, seal: Seal): string | undefined => {
  const sha256 = digest(file, fstatSync(file).size - digestBytes)
  return sha256 === seal.sha256
    ? undefined
    : `changed after it was made: its SHA-256 is ${sha256}, and its last line says ${seal.sha256}`
}
