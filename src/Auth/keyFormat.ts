import { hash, randomBytes } from "node:crypto"
import { crc32 } from "node:zlib"
import { Redacted } from "effect"
import type { Mode } from "../Domain/Chain.ts"

// svc_live_ or svc_test_, 256 random bits, and a CRC-32 of both, as in GitHub's tokens
// (https://github.blog/engineering/behind-githubs-new-authentication-token-formats/): a typo is found without a look-up,
// and scanners for leaked secrets can recognise a key. Base 62, so that a double click selects the whole key.
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

/** A new random API key. Only its hash is stored, so it can be shown only now. */
export const newKey = (mode: Mode): Redacted.Redacted<string> => {
  const secret = base62(BigInt(`0x${randomBytes(32).toString("hex")}`), secretLength)
  const unchecked = `svc_${mode}_${secret}`
  return Redacted.make(unchecked + checksum(unchecked))
}

/** Whether `text` has the form of a key. A caller that finds its hash among known keys needs no `isKey`. */
export const hasKeyForm = (text: string): boolean => form.test(text)

/**
 * Whether `text` has the form and checksum of a key. Depends only on the text, so its timing reveals nothing about keys.
 */
export const isKey = (text: string): boolean =>
  hasKeyForm(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength)

/**
 * The loggable part of a refused key: its prefix and four characters of the random part, which leave 232 bits to guess;
 * `none` for what does not begin as a key does, such as a password.
 */
export const shownPrefix = (text: string): string => {
  const [prefix] = /^svc_(?:live|test)_[0-9A-Za-z]{4}(?=[0-9A-Za-z]{20})/.exec(text) ?? []
  return prefix === undefined ? "none" : `${prefix}…`
}

/** What is kept of a secret. A plain SHA-256 is enough, since 256 random bits cannot be guessed. */
export const hashOf = (key: string): Buffer => hash("sha256", key, "buffer")
