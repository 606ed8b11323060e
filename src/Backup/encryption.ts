/** Encryption of backups to age recipients (https://age-encryption.org/v1), as a stream. */
import { readFileSync } from "node:fs"
import { Readable } from "node:stream"
import type { ReadableStream } from "node:stream/web"
import { Decrypter, Encrypter } from "age-encryption"
import { Data, Effect } from "effect"
import { cut } from "../lib/text.ts"

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
export const decrypterWith = (file: string) =>
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
export const decrypted = (decrypter: Decrypter, source: Readable) =>
  through(source, (stream) => decrypter.decrypt(stream))
