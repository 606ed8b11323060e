import { hash, randomBytes } from "node:crypto"
import { crc32 } from "node:zlib"
import { Redacted } from "effect"
import type { Mode } from "../Domain/Chain.ts"

// svc_live_ or svc_test_, 256 random bits, and a CRC-32 of all that in the end, as GitHub does it
// (https://github.blog/engineering/behind-githubs-new-authentication-token-formats/): a typo is told apart without a
// look-up, and scanners for leaked secrets can tell a key from chance. Base 62, so that a double click selects all of it.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const secretLength = 43
const checksumLength = 6
const form = /^svc_(?:live|test)_[0-9A-Za-z]{49}$/

const base62 = (value: bigint, length: number): string => {
  let rest = value
  let digits = ""
  while (digits.length < length) {
    digits = (alphabet[Number(rest % 62n)] ?? "") + digits
    rest /= 62n
  }
  return digits
}

const checksum = (text: string) => base62(BigInt(crc32(text)), checksumLength)

/** A new API key. Nobody can show it again. */
export const newKey = (mode: Mode): Redacted.Redacted<string> => {
  const secret = base62(BigInt(`0x${randomBytes(32).toString("hex")}`), secretLength)
  const unchecked = `svc_${mode}_${secret}`
  return Redacted.make(unchecked + checksum(unchecked))
}

/** Whether `text` can be a key at all. What it says depends on the text alone, so its timing gives no key away. */
export const isKey = (text: string): boolean =>
  form.test(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength)

/** What is stored in a key's place: SHA-256 is enough, since nobody can go through 2^256 keys. */
export const hashOf = (key: string): Buffer => hash("sha256", key, "buffer")
