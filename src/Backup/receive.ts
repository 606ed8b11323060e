/** Reads a backup, or another copy of a database, into a file beside the database in place. */
import { createHash } from "node:crypto"
import { closeSync, createReadStream, createWriteStream, openSync, readSync, statSync } from "node:fs"
import { type Readable, Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { Effect } from "effect"
import { AgeUnusable, decrypted, decrypterWith } from "./encryption.ts"
import { BackupFailed, because, PathRefused } from "./files.ts"
import { databaseBytes, encryptionOf, headerBytes, longestManifest, type Manifest, parseTrailer } from "./manifest.ts"

/** Passes on the database at the beginning of a stream, with its digest, and keeps what follows it. */
class Splitting extends Transform {
  private header = Buffer.alloc(0)
  private readonly hash = createHash("sha256")
  private readonly after: Array<Buffer> = []
  private afterBytes = 0
  /** By the header; undefined without a database header. */
  expected: number | undefined
  bytes = 0

  get sha256(): string {
    return this.hash.copy().digest("hex")
  }

  get trailer(): string {
    return Buffer.concat(this.after).toString("utf8")
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void) {
    let rest = chunk
    if (this.expected === undefined) {
      this.header = Buffer.concat([this.header, chunk])
      if (this.header.length < headerBytes) return done()
      this.expected = databaseBytes(this.header)
      if (this.expected === undefined) return done(new Error("it is not a database"))
      rest = this.header
    }
    const own = rest.subarray(0, Math.max(0, this.expected - this.bytes))
    const other = rest.subarray(own.length)
    this.afterBytes += other.length
    if (this.afterBytes > longestManifest) return done(new Error("no manifest follows the database"))
    if (other.length > 0) this.after.push(Buffer.from(other))
    this.bytes += own.length
    this.hash.update(own)
    if (own.length > 0) this.push(own)
    done()
  }
}

/** How a regular file begins. */
const startOf = (file: string) =>
  Effect.try({
    try: () => {
      if (!statSync(file).isFile()) throw new Error("it is not a regular file")
      const descriptor = openSync(file, "r")
      try {
        const start = Buffer.alloc(64)
        readSync(descriptor, start, 0, start.length, 0)
        return start.toString("latin1")
      } finally {
        closeSync(descriptor)
      }
    },
    catch: (cause) => new PathRefused({ message: `${file} cannot be read (${cause})` })
  })

/** The file's content, decrypted where it is encrypted. */
const contentOf = Effect.fnUntraced(function* (file: string, identity: string | undefined) {
  const encryption = encryptionOf(yield* startOf(file))
  // Opened only where it is read: a stream without a listener ends the process when the file cannot be opened.
  const open = (): Readable => createReadStream(file)
  if (encryption === undefined && identity === undefined) return open()
  if (encryption === undefined) {
    return yield* new AgeUnusable({
      message: `${file} is not encrypted: leave out --identity if that is as it should be`
    })
  }
  if (encryption === "armored") {
    return yield* new AgeUnusable({
      message: `${file} is encrypted in age's form for texts: decrypt it with age --decrypt first`
    })
  }
  if (identity === undefined) {
    return yield* new AgeUnusable({
      message: `${file} is encrypted: give --identity FILE, with the secret key of one of its recipients`
    })
  }
  const decrypter = yield* decrypterWith(identity)
  return yield* Effect.mapError(
    decrypted(decrypter, open()),
    ({ message }) =>
      new AgeUnusable({ message: `${file} cannot be decrypted with --identity ${identity} (${message})` })
  )
})

export interface ReceivedBackup {
  /** Undefined where the file is a whole database and nothing more: tilld backup did not make it, or its end is missing. */
  readonly manifest: Manifest | undefined
}

/**
 * Writes the database in `file` into the new file `target`, synced to disk. Fails where the file is cut short, or is not
 * what its manifest says.
 */
export const receiveBackup = Effect.fn("Backup.receive")(function* (
  file: string,
  target: string,
  identity: string | undefined
) {
  const content = yield* contentOf(file, identity)
  const split = new Splitting()
  const sink = createWriteStream(target, { flags: "wx", mode: 0o600, flush: true })
  yield* Effect.tryPromise({
    try: (signal) => pipeline(content, split, sink, { signal }),
    catch: because(`${file} could not be read into ${target}`)
  })
  const { bytes, expected, sha256, trailer } = split
  const refuse = (why: string) =>
    new BackupFailed({ message: `${file} ${why}: nothing was changed, take another backup` })
  if (expected === undefined) return yield* refuse("is not a database")
  if (expected !== Number.POSITIVE_INFINITY && bytes < expected) {
    return yield* refuse(`is cut short: its database has ${expected} bytes, and ${bytes} are there`)
  }
  if (trailer === "") return { manifest: undefined } satisfies ReceivedBackup
  const manifest = parseTrailer(trailer)
  if (manifest === undefined) return yield* refuse("is cut short or damaged: no manifest follows the database")
  if (manifest.bytes !== bytes || manifest.sha256 !== sha256) {
    return yield* refuse(
      `was changed after it was made: its SHA-256 is ${sha256}, and its manifest says ${manifest.sha256}`
    )
  }
  return { manifest } satisfies ReceivedBackup
})
