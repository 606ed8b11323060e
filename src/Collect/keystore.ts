/**
 * Keystores of version 3 that hold the entropy of a seed's words,
 * https://ethereum.org/en/developers/docs/data-structures-and-encoding/web3-secret-storage/
 */
import { createCipheriv, createDecipheriv, pbkdf2Sync, randomBytes, scryptSync, timingSafeEqual } from "node:crypto"
import { Either, Schema } from "effect"
import { keccak256 } from "viem"
import { type CollectRefused, collectRefusal } from "./CollectRefused.ts"

const Hex = Schema.String.pipe(Schema.pattern(/^(0x)?([0-9a-fA-F]{2})*$/))

const Keystore = Schema.Struct({
  version: Schema.Literal(3),
  crypto: Schema.Struct({
    cipher: Schema.Literal("aes-128-ctr"),
    ciphertext: Hex,
    cipherparams: Schema.Struct({ iv: Hex.pipe(Schema.filter((hex) => hex.replace(/^0x/, "").length === 32)) }),
    mac: Hex,
    kdf: Schema.Literal("scrypt", "pbkdf2"),
    kdfparams: Schema.Struct({
      dklen: Schema.Literal(32),
      salt: Hex,
      n: Schema.optional(Schema.Int.pipe(Schema.between(2, 1_048_576))),
      r: Schema.optional(Schema.Int.pipe(Schema.between(1, 64))),
      p: Schema.optional(Schema.Int.pipe(Schema.between(1, 16))),
      c: Schema.optional(Schema.Int.pipe(Schema.between(1, 10_000_000))),
      prf: Schema.optional(Schema.Literal("hmac-sha256"))
    })
  })
})
type Keystore = typeof Keystore.Type

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replace(/^0x/, ""), "hex")

/** What others write too: a quarter of a gigabyte and a second for each password that is tried. */
const usual = { n: 262_144, r: 8, p: 1 }

const derive = ({ kdf, kdfparams }: Pick<Keystore["crypto"], "kdf" | "kdfparams">, password: string): Buffer => {
  const { c = 262_144, n = usual.n, p = usual.p, r = usual.r, salt } = kdfparams
  return kdf === "scrypt"
    ? // A gigabyte, and what surrounds it: another file could take all memory for minutes, and nothing could end that.
      scryptSync(password, bytesOf(salt), 32, { N: n, r, p, maxmem: 2 ** 30 + 2 ** 20 })
    : pbkdf2Sync(password, bytesOf(salt), c, 32, "sha256")
}

const macOf = (key: Buffer, ciphertext: Buffer): Buffer =>
  bytesOf(keccak256(Buffer.concat([key.subarray(16, 32), ciphertext])))

/** The bytes that a keystore holds. */
export const openKeystore = (text: string, password: string): Either.Either<Buffer, CollectRefused> =>
  Either.gen(function* () {
    const { crypto } = yield* Either.mapLeft(Schema.decodeUnknownEither(Schema.parseJson(Keystore))(text), () =>
      collectRefusal("The file is not a keystore of version 3 with aes-128-ctr, and pbkdf2 or scrypt (p: 16 at most).")
    )
    const key = yield* Either.try({
      try: () => derive(crypto, password),
      catch: () =>
        collectRefusal("The keystore's scrypt takes more than 1 GiB, or is none: write it with n 262144, r 8 and p 1.")
    })
    const ciphertext = bytesOf(crypto.ciphertext)
    const [mac, expected] = [macOf(key, ciphertext), bytesOf(crypto.mac)]
    if (mac.length !== expected.length || !timingSafeEqual(mac, expected)) {
      return yield* Either.left(
        collectRefusal("The keystore does not open: the password is wrong, or the file is damaged.")
      )
    }
    const decipher = createDecipheriv("aes-128-ctr", key.subarray(0, 16), bytesOf(crypto.cipherparams.iv))
    const content = Buffer.concat([decipher.update(ciphertext), decipher.final()])
    key.fill(0)
    return content
  })

/** A keystore that holds `bytes`. */
export const makeKeystore = (bytes: Uint8Array, password: string): string => {
  const [salt, iv] = [randomBytes(32), randomBytes(16)]
  const kdfparams = { dklen: 32, salt: salt.toString("hex"), ...usual } as const
  const key = derive({ kdf: "scrypt", kdfparams }, password)
  const cipher = createCipheriv("aes-128-ctr", key.subarray(0, 16), iv)
  const ciphertext = Buffer.concat([cipher.update(bytes), cipher.final()])
  const mac = macOf(key, ciphertext).toString("hex")
  key.fill(0)
  const content = { ciphertext: ciphertext.toString("hex"), cipherparams: { iv: iv.toString("hex") }, mac }
  const crypto = { cipher: "aes-128-ctr", ...content, kdf: "scrypt", kdfparams }
  return `${JSON.stringify({ version: 3, id: globalThis.crypto.randomUUID(), crypto }, undefined, 2)}\n`
}
