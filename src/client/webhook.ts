// The client runs in other people's programs, without Effect: the platform's own clock is all it has.
// @effect-diagnostics globalDate:off

import { WebhookTimestampError, WebhookVerificationError } from "./errors.ts"
import { parseObject } from "./transport.ts"
import type { InvoiceEvent, WebhookEvent } from "./types.ts"

// What a request is signed with, as the platform's own crypto checks it.

const encoder = new TextEncoder()
const algorithm = { name: "HMAC", hash: "SHA-256" }
const prefix = "whsec_"

/** tilld sends two at most, while one secret takes the other's place. */
const mostSignatures = 8

type HmacKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

const importKey = (bytes: Uint8Array<ArrayBuffer>) =>
  crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"])

const bytesOf = (base64: string) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))

/** The bytes of a secret in the sense of Standard Webhooks, base64 of 24 to 64: tilld signs the time with no other. */
const standardBytes = (secret: string): Uint8Array<ArrayBuffer> | undefined => {
  const encoded = secret.slice(prefix.length)
  if (encoded.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined
  const bytes = bytesOf(encoded)
  const isCanonical = btoa(String.fromCharCode(...bytes)) === encoded
  return isCanonical && bytes.length >= 24 && bytes.length <= 64 ? bytes : undefined
}

/** A webhook secret made ready for checking. */
interface CheckingKey {
  /** Keyed with the whole secret, `whsec_` included. */
  readonly whole: HmacKey
  /** Undefined where the secret is none of Standard Webhooks. */
  readonly standard: HmacKey | undefined
}

const checkingKey = async (secret: string): Promise<CheckingKey> => {
  // An empty key would accept what anybody has signed.
  if (typeof secret !== "string" || !/^whsec_./.test(secret)) {
    throw new TypeError("secrets must be one or more whsec_… strings")
  }
  const bytes = standardBytes(secret)
  return {
    whole: await importKey(encoder.encode(secret)),
    standard: bytes === undefined ? undefined : await importKey(bytes)
  }
}

/** The place of the key that made `signature`, -1 for none. All are tried, so that the time does not tell which it was. */
const signerOf = async (
  keys: ReadonlyArray<HmacKey>,
  signature: Uint8Array<ArrayBuffer>,
  signed: Uint8Array<ArrayBuffer>
): Promise<number> => {
  const matches = await Promise.all(keys.map((key) => crypto.subtle.verify("HMAC", key, signature, signed)))
  return matches.indexOf(true)
}

/** The headers of Standard Webhooks 1.0.0, as they came. */
interface StandardHeaders {
  readonly id: string
  readonly timestamp: string
  readonly signature: string
}

/** When one of `keys` signed the request, in Unix milliseconds; undefined where none of them did. */
const standardTime = async (
  keys: ReadonlyArray<HmacKey>,
  { id, signature, timestamp }: StandardHeaders,
  body: Uint8Array<ArrayBuffer>
): Promise<number | undefined> => {
  const signatures = signature.split(" ")
  // Dots separate what is signed: an id with one could take its end from the time.
  const isWellFormed = /^[\w-]+$/.test(id) && /^\d{1,12}$/.test(timestamp) && signatures.length <= mostSignatures
  if (!isWellFormed) return undefined
  const head = encoder.encode(`${id}.${timestamp}.`)
  const signed = new Uint8Array(head.length + body.length)
  signed.set(head)
  signed.set(body, head.length)
  const made = signatures.flatMap((each) => {
    const base64 = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(each)?.[1]
    return base64 === undefined ? [] : [bytesOf(base64)]
  })
  const signers = await Promise.all(made.map((bytes) => signerOf(keys, bytes, signed)))
  return signers.some((signer) => signer >= 0) ? Number(timestamp) * 1000 : undefined
}

/** The body that `tilld webhooks test` sends, without a payment. Respond with a 2xx, and do nothing else. */
export interface WebhookTest {
  /** `test_…`. */
  readonly id: string
  readonly event: "test"
  /** ISO 8601, UTC. */
  readonly createdAt: string
  /** The endpoint that it was sent to, `wh_…`. */
  readonly endpoint: string
  readonly message: string
}

/** Seconds, as in the libraries of Standard Webhooks. */
const defaultTolerance = 300

/** The header's value, as frameworks give it. */
type HeaderValue = string | ReadonlyArray<string> | null | undefined

interface FetchHeaders {
  readonly get: (name: string) => string | null
}

/** The headers of a request: a `Headers`, or an object such as `request.headers` of `node:http`. */
export type WebhookHeaders = FetchHeaders | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface VerifyWebhookOptions {
  /** Maximum distance of the signed time from now, in seconds, both ways. Default 300. */
  readonly toleranceSeconds?: number
  /** The current time, Unix milliseconds. By default this machine's clock. */
  readonly now?: () => number
}

/** 64 lower-case hex digits are all that tilld writes. */
const signatureOf = (header: HeaderValue) => {
  const [value, ...others] = [header ?? []].flat()
  if (value === undefined) throw new WebhookVerificationError("There is no X-Service-Signature header.")
  if (others.length > 0 || !/^[0-9a-f]{64}$/.test(value)) {
    throw new WebhookVerificationError("The X-Service-Signature header must be 64 lower-case hex digits.")
  }
  return Uint8Array.from({ length: 32 }, (_, i) => Number.parseInt(value.slice(2 * i, 2 * i + 2), 16))
}

const isHeaderValue = (headers: WebhookHeaders | HeaderValue): headers is HeaderValue =>
  headers === null || typeof headers !== "object" || Array.isArray(headers)

const isHeaders = (headers: WebhookHeaders): headers is FetchHeaders => typeof headers.get === "function"

/** Looks headers up by their lower-case names. */
const lookUp = (headers: WebhookHeaders): ((name: string) => HeaderValue) => {
  if (isHeaders(headers)) return (name) => headers.get(name)
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return (name) => byName.get(name)
}

/** The headers of Standard Webhooks, where each is there, and once. */
const standardOf = (header: (name: string) => HeaderValue): StandardHeaders | undefined => {
  const single = (name: string): string | undefined => {
    const [value, ...others] = [header(name) ?? []].flat()
    return others.length === 0 ? value : undefined
  }
  const [id, timestamp, signature] = [single("webhook-id"), single("webhook-timestamp"), single("webhook-signature")]
  return id === undefined || timestamp === undefined || signature === undefined
    ? undefined
    : { id, timestamp, signature }
}

const checkTime = (signedAt: number, tolerance: number, now: number) => {
  const age = (now - signedAt) / 1000
  // Negated, so that a clock that returns NaN is refused.
  if (!(Math.abs(age) <= tolerance)) throw new WebhookTimestampError(signedAt, age, tolerance)
}

/**
 * Checks the signature, and the time where that is signed too. A replay must not pass as a request without a signed time:
 * with a secret that can sign the time, tilld always does.
 */
const checkHeaders = async (
  keys: ReadonlyArray<CheckingKey>,
  headers: WebhookHeaders,
  body: Uint8Array<ArrayBuffer>,
  { now = Date.now, toleranceSeconds = defaultTolerance }: VerifyWebhookOptions
) => {
  if (!Number.isFinite(toleranceSeconds) || toleranceSeconds < 0) {
    throw new TypeError("toleranceSeconds must be a number of seconds, 0 or more")
  }
  const header = lookUp(headers)
  const standard = standardOf(header)
  const standardKeys = keys.flatMap((key) => key.standard ?? [])
  const signedAt = standard && (await standardTime(standardKeys, standard, body))
  if (signedAt !== undefined) return checkTime(signedAt, toleranceSeconds, now())
  const signer = await checkSignature(keys, header("x-service-signature"), body)
  if (signer.standard !== undefined) {
    throw new WebhookVerificationError(
      "The body is signed, but its time is not: there must be a webhook-signature, of webhook-id, webhook-timestamp and " +
        "the body. Somebody sends a recording again, or what stands before your server drops these headers."
    )
  }
}

/** The key that the body is signed with. */
const checkSignature = async (
  keys: ReadonlyArray<CheckingKey>,
  header: HeaderValue,
  body: Uint8Array<ArrayBuffer>
): Promise<CheckingKey> => {
  const signature = signatureOf(header)
  const wholes = keys.map(({ whole }) => whole)
  const signer = keys[await signerOf(wholes, signature, body)]
  if (signer !== undefined) return signer
  throw new WebhookVerificationError(
    "The signature is not of this body and secret: is the body as it came, and the secret the endpoint's?"
  )
}

/** Only a few fields are checked: the body is signed, so that the rest has the shape of one of these. */
const isEvent = (
  content: Readonly<Record<string, unknown>> | undefined
): content is typeof content & (WebhookEvent | InvoiceEvent | WebhookTest) => {
  const { createdAt, data, event, id } = content ?? {}
  const hasData = typeof data === "object" && data !== null
  return [id, event, createdAt].every((field) => typeof field === "string") && (hasData || event === "test")
}

/**
 * Verifies a webhook request and gives its event, or the test of an endpoint. Compares in constant time.
 *
 * @param body the raw body of the request: parsed and serialised again it would have other bytes
 * @param headers the headers of the request. Where the time is signed too, a request signed more than five minutes before or
 *   after now is refused. With the value of `X-Service-Signature` alone a replay passes at any time: store the event ids then
 * @param secrets one of them must have signed the request; pass the old and the new one during a rotation
 * @throws WebhookTimestampError when the signature is valid, but of another time
 * @throws WebhookVerificationError when the signature is missing, malformed, or not of this body and these secrets
 * @throws TypeError when an argument is invalid: the program is wrong, not the request
 */
export const verifyWebhook = async (
  body: string | Uint8Array,
  headers: WebhookHeaders | HeaderValue,
  secrets: string | ReadonlyArray<string>,
  options: VerifyWebhookOptions = {}
): Promise<WebhookEvent | InvoiceEvent | WebhookTest> => {
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw new TypeError("body must be the raw body, as a string or bytes: turn off what parses it before")
  }
  const keys = await Promise.all([secrets].flat().map(checkingKey))
  if (keys.length === 0) throw new TypeError("secrets must be one or more whsec_… strings")
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : Uint8Array.from(body)
  await (isHeaderValue(headers) ? checkSignature(keys, headers, bytes) : checkHeaders(keys, headers, bytes, options))
  const content = parseObject(new TextDecoder().decode(bytes))
  if (!isEvent(content)) throw new WebhookVerificationError("The body is signed, but it is not an event.")
  return content
}
