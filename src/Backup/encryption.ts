/** Encryption of backups to age recipients (https://age-encryption.org/v1), as a stream. */
import { closeSync, createReadStream, openSync, readFileSync, readSync, statSync } from "node:fs"
import { Readable } from "node:stream"
import type { ReadableStream } from "node:stream/web"
import { Decrypter, Encrypter } from "age-encryption"
import { Data, Effect } from "effect"
import { cut } from "../lib/text.ts"
import { onGiven } from "./files.ts"

/** A recipient or an identity that age cannot use. */
export class AgeUnusable extends Data.TaggedError("AgeUnusable")<{ readonly message: string }> {}

const why = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** The encrypter for these recipients, `age1…` each. */
export const encrypterFor = (recipients: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const encrypter = new Encrypter()
    for (const recipient of recipients) {
      yield* Effect.try({
        try: () => encrypter.addRecipient(recipient),
        catch: (cause) =>
          new AgeUnusable({
            message: `--recipient ${recipient.startsWith("AGE-SECRET") ? "must not be the secret key" : `${JSON.stringify(cut(recipient, 80))} is none (${why(cause)})`}: give what age-keygen prints as the public key, age1…`
          })
      })
    }
    return encrypter
  })

/** The decrypter with the identities of a file: lines of `AGE-SECRET-KEY-1…`, and comments. */
const decrypterWith = (file: string) =>
  Effect.try({
    try: () => {
      const decrypter = new Decrypter()
      const lines = readFileSync(file, "utf8").split("\n")
      const identities = lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"))
      if (identities.length === 0) throw new Error("it has no AGE-SECRET-KEY-1…")
      for (const identity of identities) decrypter.addIdentity(identity)
      return decrypter
    },
    // The library's errors may contain the text that it could not parse.
    catch: (cause) =>
      new AgeUnusable({
        message: `--identity ${file} cannot be used: ${why(cause).replace(/AGE-SECRET-KEY-\S*/gi, "AGE-SECRET-KEY…")}`
      })
  })

/** Node's stream through age's, which is one of the web. */
const through = (
  source: Readable,
  age: (stream: globalThis.ReadableStream<Uint8Array>) => Promise<globalThis.ReadableStream>
) =>
  Effect.tryPromise({
    // Both are the same class, under two declarations.
    try: () => age(Readable.toWeb(source) as globalThis.ReadableStream<Uint8Array>),
    catch: (cause) => new AgeUnusable({ message: why(cause) })
  }).pipe(Effect.map((stream) => Readable.fromWeb(stream as ReadableStream)))

export const encrypted = (encrypter: Encrypter, source: Readable) =>
  through(source, (stream) => encrypter.encrypt(stream))

const beginning = "age-encryption.org/"

/** Whether a file is encrypted by age, in the binary form. Throws where it is not a regular file. */
export const isEncrypted = (path: string): boolean => {
  if (!statSync(path).isFile()) throw new Error("it is not a regular file")
  const file = openSync(path, "r")
  try {
    const start = Buffer.alloc(beginning.length)
    readSync(file, start)
    return start.toString("latin1") === beginning
  } finally {
    closeSync(file)
  }
}

/** The file's content, decrypted where it is encrypted. `identity`: a file with the secret key. */
export const contentOf = Effect.fn("Backup.contentOf")(function* (file: string, identity: string | undefined) {
  const isSecret = yield* onGiven(`${file} cannot be read`, () => isEncrypted(file))
  if (identity === undefined) {
    if (!isSecret) return createReadStream(file)
    return yield* new AgeUnusable({
      message: `${file} is encrypted: give --identity FILE, with the secret key of one of its recipients`
    })
  }
  if (!isSecret) {
    return yield* new AgeUnusable({
      message: `${file} is not encrypted: leave out --identity if that is as it should be`
    })
  }
  const decrypter = yield* decrypterWith(identity)
  return yield* Effect.mapError(
    through(createReadStream(file), (stream) => decrypter.decrypt(stream)),
    ({ message }) =>
      new AgeUnusable({ message: `${file} cannot be decrypted with --identity ${identity} (${message})` })
  )
})
