import { createHmac, createSecretKey, type KeyObject, randomBytes } from "node:crypto"
import { Redacted } from "effect"

/** A new random secret in the form of Standard Webhooks. */
export const freshSecret = () => Redacted.make(`whsec_${randomBytes(32).toString("base64")}`)

const prefix = "whsec_"

/** A webhook secret prepared for signing, or two of them during a rotation. */
export interface SigningKey {
  /** The UTF-8 bytes of the whole secret, `whsec_` included. */
  readonly whole: KeyObject
  /** The decoded bytes of each secret that has the form of Standard Webhooks. */
  readonly standard: ReadonlyArray<KeyObject>
}

/** Standard Webhooks secrets are base64 of 24 to 64 bytes, with padding: its libraries refuse any other form. */
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
 * The key that signs during a rotation. `X-Service-Signature` holds one signature, made with the previous secret, which
 * receivers still have; `webhook-signature` holds both, and a Standard Webhooks receiver accepts if any one matches.
 */
export const overlapping = (previous: SigningKey, next: SigningKey): SigningKey => ({
  whole: previous.whole,
  standard: [...next.standard, ...previous.standard]
})

/**
 * The header that authenticates an attempt to a shop plugin's endpoint, as BTCPay Server signs:
 * https://docs.btcpayserver.org/API/Greenfield/v1/#tag/Webhooks
 */
export const pluginHeaders = ({ whole }: SigningKey, body: Uint8Array) => ({
  "BTCPay-Sig": `sha256=${createHmac("sha256", whole).update(body).digest("hex")}`
})

/**
 * The headers that authenticate one attempt. `body`: the exact bytes to send. `at`: the time of the attempt in Unix
 * milliseconds.
 *
 * `X-Service-Signature` is the lower-case hex HMAC-SHA256 of the body. The `webhook-` headers follow Standard Webhooks
 * 1.0.0, which signs id and time too:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
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
