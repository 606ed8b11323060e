import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto"
import { Context, Data, Effect, Layer, Redacted } from "effect"
import { MasterKey } from "./Settings.ts"
import { Reader, Tx, Writer } from "./Sql.ts"

/** The database was sealed with another master key. Nothing was changed. */
export class WrongMasterKey extends Data.TaggedError("WrongMasterKey")<{ readonly message: string }> {}

interface SecretsShape {
  /** `context` names the row that will hold it; the same words open it, so that sealed values cannot be swapped. */
  readonly seal: (plain: string, context: string) => Uint8Array
  /** Throws of a value that was changed, or that another context or key sealed. */
  readonly open: (sealed: Uint8Array, context: string) => Redacted.Redacted<string>
}

// A sealed value: version, nonce, ciphertext, tag. AES-256-GCM; a random nonce is safe for 2^32 values under one key.
const version = 1
const nonceBytes = 12
const tagBytes = 16

/** A key for one purpose: what is published of one says nothing of another. */
const derive = (masterKey: Redacted.Redacted<Uint8Array>, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", Redacted.value(masterKey), "", `tilld ${purpose} v${version}`, bytes))

const additionalData = (context: string) => Buffer.concat([Buffer.of(version), Buffer.from(context)])

const makeSecrets = (masterKey: Redacted.Redacted<Uint8Array>): SecretsShape => {
  const key = derive(masterKey, "secrets", 32)
  return {
    seal: (plain, context) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(additionalData(context))
      const ciphertext = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()])
      return Buffer.concat([Buffer.of(version), nonce, ciphertext, cipher.getAuthTag()])
    },
    open: (sealed, context) => {
      const bytes = Buffer.from(sealed)
      if (bytes[0] !== version || bytes.length < 1 + nonceBytes + tagBytes) {
        throw new Error(`The sealed value of ${context} has a form that this version does not know`)
      }
      const nonce = bytes.subarray(1, 1 + nonceBytes)
      const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes })
        .setAAD(additionalData(context))
        .setAuthTag(bytes.subarray(-tagBytes))
      try {
        const plain = [decipher.update(bytes.subarray(1 + nonceBytes, -tagBytes)), decipher.final()]
        return Redacted.make(Buffer.concat(plain).toString("utf8"))
      } catch (cause) {
        throw new Error(`The sealed value of ${context} was changed, or sealed by another key`, { cause })
      }
    }
  }
}

/** What tells one master key from another, and nothing of either. */
export const fingerprintOf = (masterKey: Redacted.Redacted<Uint8Array>): string =>
  derive(masterKey, "fingerprint", 16).toString("hex")

const metaKey = "master_key_fingerprint"

/** The key that the database was first started with is the one it needs ever after. */
const checkFingerprint = Effect.fn("Secrets.checkFingerprint")(function* (masterKey: Redacted.Redacted<Uint8Array>) {
  const fingerprint = fingerprintOf(masterKey)
  const reader = yield* Reader
  const writer = yield* Writer
  const select = "SELECT value FROM meta WHERE key = ?"
  const stored = yield* reader.get<{ value: string }>(select, [metaKey])
  if (stored === undefined) {
    return yield* writer.write(
      Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO meta (key, value) VALUES (?, ?)", [metaKey, fingerprint]))
    )
  }
  if (stored.value !== fingerprint) {
    return yield* new WrongMasterKey({
      message:
        "This is not the master key that the database was sealed with. Give the former one: the credential master-key, " +
        "TILLD_MASTER_KEY or master.key beside the database, in this order"
    })
  }
})

/** Seals what must not be read from the database file: webhook secrets and accounts' extended public keys. */
export class Secrets extends Context.Tag("tilld/Secrets")<Secrets, SecretsShape>() {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const masterKey = yield* MasterKey
      yield* checkFingerprint(masterKey)
      return makeSecrets(masterKey)
    })
  )
}
