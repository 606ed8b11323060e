import { createHmac, createSecretKey, type KeyObject } from "node:crypto"
import { Redacted } from "effect"

const prefix = "whsec_"

/** A webhook secret made ready for signing. */
export interface SigningKey {
  /** The UTF-8 bytes of the whole secret, `whsec_` included. */
  readonly whole: KeyObject
  /** The bytes that the secret encodes, where it is a secret in the sense of Standard Webhooks. */
  readonly standard: KeyObject | undefined
}

/** Standard Webhooks secrets are base64 of 24 to 64 bytes. Padded, since its libraries refuse anything else. */
const standardKey = (secret: string): KeyObject | undefined => {
  const encoded = secret.slice(prefix.length)
  const bytes = Buffer.from(encoded, "base64")
  const isBase64 = bytes.toString("base64") === encoded
  return isBase64 && bytes.length >= 24 && bytes.length <= 64 ? createSecretKey(bytes) : undefined
}

export const signingKey = (secret: Redacted.Redacted<string>): SigningKey => {
  const value = Redacted.value(secret)
  return {
    whole: createSecretKey(Buffer.from(value, "utf8")),
    standard: value.startsWith(prefix) ? standardKey(value) : undefined
  }
}

/**
 * The headers that authenticate one attempt. `body` is the exact bytes to be sent, `at` the time of the attempt in Unix
 * milliseconds.
 *
 * `x-service-signature` is the lower-case hex HMAC-SHA256 of the body. The `webhook-` headers follow Standard Webhooks
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
    "x-service-signature": createHmac("sha256", key.whole).update(body).digest("hex"),
    "webhook-id": eventId,
    "webhook-timestamp": timestamp
  }
  if (key.standard === undefined) return headers
  const signed = createHmac("sha256", key.standard).update(`${eventId}.${timestamp}.`).update(body).digest("base64")
  return { ...headers, "webhook-signature": `v1,${signed}` }
}
