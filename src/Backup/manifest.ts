/**
 * The manifest of a backup: one line of JSON behind the database in the same file. SQLite reads as many pages as the
 * database's header counts and ignores the rest, so that a backup is a database for `sqlite3` too, and `tail -n 1` shows
 * the manifest.
 */

import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { Option, Schema } from "effect"

// Detects a file's type by its bytes.

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

export const Manifest = Schema.Struct({
  /** The version of tilld that made it. */
  tilld: Schema.String,
  /** The number of the newest migration. */
  schema: Schema.NonNegativeInt,
  /** When the copy was begun, ISO 8601: later changes may not be in it. */
  madeAt: Schema.String,
  /** The newest time of a payment, event, transition or administrative act in it, ISO 8601; null where there is none. */
  newest: Schema.NullOr(Schema.String),
  /** The same in all backups of a database. */
  installation: Schema.String,
  /** The fingerprint of the master key; null where nothing is sealed. */
  masterKey: Schema.NullOr(Schema.String),
  /** `highestIndex`: the last address index that was handed out or skipped; null before the first. */
  wallets: Schema.Array(Schema.Struct({ wallet: Schema.String, highestIndex: Schema.NullOr(Schema.NonNegativeInt) })),
  /** Rows of each table. */
  rows: Schema.Record({ key: Schema.String, value: Schema.NonNegativeInt }),
  /** Bytes of the database, from the beginning of the file, and their SHA-256 in hex. */
  bytes: Schema.NonNegativeInt,
  sha256: Schema.String
})
export type Manifest = typeof Manifest.Type

/** Manifests have about a kilobyte, and 60 bytes more for each account's wallet. */
export const longestManifest = 16 * 1024 * 1024

/** The bytes after the database in the file. */
export const trailerOf = (manifest: Manifest): string => `\n${JSON.stringify(manifest)}\n`

const decode = Schema.decodeUnknownOption(Schema.parseJson(Manifest))

/** The manifest in the bytes after the database; undefined where they are anything else. */
export const parseTrailer = (text: string): Manifest | undefined =>
  text.startsWith("\n") && text.endsWith("}\n") ? Option.getOrUndefined(decode(text)) : undefined

export const headerBytes = 100

/**
 * The size of the database that begins with this header, in bytes; undefined where it is not a SQLite database. SQLite
 * trusts the count of pages only where both change counters agree: otherwise the whole file is the database. Source:
 * https://www.sqlite.org/fileformat2.html#in_header_database_size
 */
export const databaseBytes = (header: Buffer): number | undefined => {
  if (header.length < headerBytes || header.toString("latin1", 0, 16) !== "SQLite format 3\0") return undefined
  const pageSize = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  return header.readUInt32BE(24) === header.readUInt32BE(92)
    ? pageSize * header.readUInt32BE(28)
    : Number.POSITIVE_INFINITY
}
