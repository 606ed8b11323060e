import { createHmac, createSecretKey, type KeyObject } from "node:crypto"
import { Redacted } from "effect"

const prefix = "whsec_"

/** A webhook secret made ready for signing, or two of them while one takes the other's place. */
export interface SigningKey {
  /** The UTF-8 bytes of the whole secret, `whsec_` included. */
  readonly whole: KeyObject
  /** The bytes that a secret encodes, for each that is a secret in the sense of Standard Webhooks. */
  readonly standard: ReadonlyArray<KeyObject>
}

/** Standard Webhooks secrets are base64 of 24 to 64 bytes. Padded, since its libraries refuse anything else. */
const standardKeys = (secret: string): ReadonlyArray<KeyObject> => {
  if (!secret.startsWith(prefix)) return []
  const encoded = secret.slice(prefix.length)
  const bytes = Buffer.from(encoded, "base64")
  const isBase64 = bytes.toString("base64") === encoded
  return isBase64 && bytes.length >= 24 && bytes.length <= 64 ? [createSecretKey(bytes)] : []
}

export const signingKey = (secret: Redacted.Redacted<string>): SigningKey => {
  const value = Redacted.value(secret)
  return {
    whole: createSecretKey(Buffer.from(value, "utf8")),
    standard: standardKeys(value)
  }
}

/**
 * What signs while receivers change over. `X-Service-Signature` has room for one signature, so it stays with the secret
 * that receivers have; a receiver of Standard Webhooks is content when one of several signatures is right.
 */
export const overlapping = (previous: SigningKey, next: SigningKey): SigningKey => ({
  whole: previous.whole,
  standard: [...next.standard, ...previous.standard]
})

/**
 * The headers that authenticate one attempt. `body` is the exact bytes to be sent, `at` the time of the attempt in Unix
 * milliseconds.
 *
 * `X-Service-Signature` is the lower-case hex HMAC-SHA256 of the body. The `webhook-` headers follow Standard Webhooks
 * 1.0.0, which signs id and time too: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export const signatureHeaders = (
  key: SigningKey,
  eventId: string,
  body: Uint8Array,
  at: number
): Readonly<Record<string, string>> => {
  const timestamp = String(Math.floor(at / 1000))
  const headers = {
    "X-Service-Signature": createHmac("sha256", key.whole).update(body).digest("hex"),
    "webhook-id": eventId,
    "webhook-timestamp": timestamp
  }
  if (key.standard.length === 0) return headers
  const signatures = key.standard.map((standard) => {
    const signed = createHmac("sha256", standard).update(`${eventId}.${timestamp}.`).update(body).digest("base64")
    return `v1,${signed}`
  })
  return { ...headers, "webhook-signature": signatures.join(" ") }
}
