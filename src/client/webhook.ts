import { parseObject } from "./answers.ts"
import { WebhookVerificationError } from "./errors.ts"
import type { WebhookEvent, WebhookTest } from "./types.ts"

const encoder = new TextEncoder()
const algorithm = { name: "HMAC", hash: "SHA-256" }

/** An empty key would accept what anybody has signed. */
const keyOf = (secret: string) => {
  if (typeof secret !== "string" || !/^whsec_./.test(secret)) {
    throw new TypeError("secrets must be one or more whsec_… strings")
  }
  return crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["verify"])
}

/** 64 lower-case hex digits are all that tilld writes. */
const signatureOf = (header: string | ReadonlyArray<string> | null | undefined): Uint8Array => {
  const [value, ...others] = [header ?? []].flat()
  if (value === undefined) throw new WebhookVerificationError("There is no X-Service-Signature header.")
  if (others.length > 0 || !/^[0-9a-f]{64}$/.test(value)) {
    throw new WebhookVerificationError("The X-Service-Signature header must be 64 lower-case hex digits.")
  }
  return Uint8Array.from({ length: 32 }, (_, i) => Number.parseInt(value.slice(2 * i, 2 * i + 2), 16))
}

/** Its maker knows the secret: the rest of it is what `WebhookEvent` or `WebhookTest` says. */
const isEvent = (
  content: Readonly<Record<string, unknown>> | undefined
): content is typeof content & (WebhookEvent | WebhookTest) => {
  const { createdAt, data, event, id } = content ?? {}
  const hasPayment = typeof data === "object" && data !== null
  return [id, event, createdAt].every((field) => typeof field === "string") && (hasPayment || event === "test")
}

/**
 * The event that a webhook request carries, or the test of an endpoint, when one of the `secrets` signed it. `body` is the
 * request's body as it came: parsed and written again it would be other bytes. `header` is its `X-Service-Signature`.
 * Give the old and the new secret while you change it. Compares in constant time.
 *
 * @throws WebhookVerificationError when the signature is missing, malformed or not of this body and these secrets
 * @throws TypeError when `body` is no text or bytes, or a secret is none: the program is wrong, not the request
 */
export const verifyWebhook = async (
  body: string | Uint8Array,
  header: string | ReadonlyArray<string> | null | undefined,
  secrets: string | ReadonlyArray<string>
): Promise<WebhookEvent | WebhookTest> => {
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw new TypeError("body must be the raw body, as a string or bytes: turn off what parses it before")
  }
  const keys = await Promise.all([secrets].flat().map(keyOf))
  if (keys.length === 0) throw new TypeError("secrets must be one or more whsec_… strings")
  const signature = signatureOf(header)
  const bytes = typeof body === "string" ? encoder.encode(body) : body
  // All of them, so that the time does not tell which one it was.
  const matches = await Promise.all(keys.map((key) => crypto.subtle.verify("HMAC", key, signature, bytes)))
  if (!matches.includes(true)) {
    throw new WebhookVerificationError(
      "The signature is not of this body and secret: is the body as it came, and the secret the endpoint's?"
    )
  }
  const content = parseObject(new TextDecoder().decode(bytes))
  if (!isEvent(content)) throw new WebhookVerificationError("The body is signed, but it is not an event.")
  return content
}
