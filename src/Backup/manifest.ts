/**
 * The manifest of a backup: one line of JSON behind the database in the same file. SQLite reads as many pages as the
 * database's header counts and ignores the rest, so that a backup is a database for `sqlite3` too, and `tail -n 1` shows
 * the manifest.
 */
import { Option, Schema } from "effect"

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
