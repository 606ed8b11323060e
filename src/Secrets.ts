import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto"
import { Context, Data, Effect, Layer, Redacted } from "effect"
import { iso } from "./lib/moment.ts"
import { MasterKey } from "./Settings.ts"
import { type Db, Reader, Tx, Writer } from "./Sql.ts"

/** The secrets in the database are sealed with another master key. Nothing was changed. */
export class WrongMasterKey extends Data.TaggedError("WrongMasterKey")<{ readonly message: string }> {}

/** Sealing, opening and hashing with one master key. */
export interface SecretsShape {
  /** Encrypts. `context` names the row and column; `open` needs the same one, so that sealed values cannot be swapped. */
  readonly seal: (plain: string, context: string) => Uint8Array
  /** Throws when the value was changed, or sealed with another context or key. */
  readonly open: (sealed: Uint8Array, context: string) => Redacted.Redacted<string>
  /** A keyed hash: without the master key even a guess of the text cannot be confirmed. */
  readonly digest: (text: string) => Uint8Array
  /** A signing secret for one purpose, `whsec_…`. It follows from the master key, and changes with it. */
  readonly signing: (purpose: string) => Redacted.Redacted<string>
  /** Seals with this key a value that `before` has sealed. Throws as `open` does. */
  readonly reseal: (before: SecretsShape, sealed: Uint8Array, context: string) => Uint8Array
}

// A sealed value: version, nonce, ciphertext, tag. AES-256-GCM; a random nonce is safe for 2^32 values under one key.
const version = 1
const nonceBytes = 12
const tagBytes = 16

/** Derives a key for one purpose. A published key of one purpose reveals nothing about the others. */
const derive = (masterKey: Redacted.Redacted<Uint8Array>, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", Redacted.value(masterKey), "", `tilld ${purpose} v${version}`, bytes))

const additionalData = (context: string) => Buffer.concat([Buffer.of(version), Buffer.from(context)])

export const makeSecrets = (masterKey: Redacted.Redacted<Uint8Array>): SecretsShape => {
  const key = derive(masterKey, "secrets", 32)
  const digestKey = derive(masterKey, "digests", 32)
  const seal: SecretsShape["seal"] = (plain, context) => {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(additionalData(context))
    const ciphertext = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()])
    return Buffer.concat([Buffer.of(version), nonce, ciphertext, cipher.getAuthTag()])
  }
  return {
    seal,
    digest: (text) => createHmac("sha256", digestKey).update(text).digest(),
    signing: (purpose) => Redacted.make(`whsec_${derive(masterKey, `signing ${purpose}`, 32).toString("base64")}`),
    reseal: (before, sealed, context) => seal(Redacted.value(before.open(sealed, context)), context),
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

/** Identifies a master key without revealing anything about it. */
export const fingerprintOf = (masterKey: Redacted.Redacted<Uint8Array>): string =>
  derive(masterKey, "fingerprint", 16).toString("hex")

const metaKey = "master_key_fingerprint"
/** The fingerprint of the key before the last rotation, and the time of that rotation. */
const formerKey = "former_master_key_fingerprint"
const rotatedKey = "master_key_rotated_at"

const readMeta = (db: Db, key: string) =>
  Effect.map(db.get<{ value: string }>("SELECT value FROM meta WHERE key = ?", [key]), (row) => row?.value)

/** The fingerprint of the master key that the database is sealed with; undefined before the first start. */
export const storedFingerprint = (db: Db) => readMeta(db, metaKey)

const writeMeta = (entries: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const [key, value] of Object.entries(entries)) {
      yield* tx.run(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [key, value]
      )
    }
  })

/** Records a rotation of the master key, in the transaction that seals everything with the new key. */
export const rotated = (former: string, fingerprint: string, at: number) =>
  writeMeta({ [metaKey]: fingerprint, [formerKey]: former, [rotatedKey]: iso(at) })

/** The error for a wrong master key. It says whether it is the former key, and where the right one is expected. */
export const wrongMasterKey = Effect.fn("Secrets.wrongMasterKey")(function* (db: Db, stored: string, given: string) {
  const former = yield* readMeta(db, formerKey)
  const at = yield* readMeta(db, rotatedKey)
  const places = "the credential master-key, TILLD_MASTER_KEY or master.key beside the database, in this order"
  return yield* new WrongMasterKey({
    message:
      former === given
        ? `This is the former master key: tilld secrets rotate changed it at ${at}. Give the new one, fingerprint ${stored}: ${places}`
        : `This is not the master key that the database was sealed with: it has the fingerprint ${given}, and the database's ${stored}. Give that one: ${places}`
  })
})

/** Checks the master key against the database's fingerprint. The first start stores the fingerprint. */
const checkFingerprint = Effect.fn("Secrets.checkFingerprint")(function* (masterKey: Redacted.Redacted<Uint8Array>) {
  const fingerprint = fingerprintOf(masterKey)
  const reader = yield* Reader
  const writer = yield* Writer
  const stored = yield* storedFingerprint(reader)
  if (stored === undefined) return yield* writer.write(writeMeta({ [metaKey]: fingerprint }))
  if (stored !== fingerprint) return yield* wrongMasterKey(reader, stored, fingerprint)
})

/** Seals secrets in the database file: webhook secrets and accounts' extended public keys. */
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
