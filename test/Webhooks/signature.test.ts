import { createHmac } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Redacted } from "effect"
import * as fc from "fast-check"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { overlapping, signatureHeaders, signingKey } from "../../src/Webhooks/signature.ts"

const sign = (secret: string, id: string, body: string, at: number) =>
  signatureHeaders(signingKey(Redacted.make(secret)), id, Buffer.from(body, "utf8"), at)

it("X-Service-Signature is the hex HMAC-SHA256 of the body under the whole secret", () => {
  // printf '%s' '{"id":"evt_1","note":"ünïcödé 💶"}' | openssl dgst -sha256 -hmac whsec_correct-horse-battery-staple
  const headers = sign("whsec_correct-horse-battery-staple", "evt_1", '{"id":"evt_1","note":"ünïcödé 💶"}', 0)
  expect(headers["X-Service-Signature"]).toBe("8d3fb458738f8ad0497e6c160cfd197aed21b9d7aa181bfcc2cee279101b75fd")
})

it("webhook-signature is that of the libraries of Standard Webhooks", () => {
  // The vector of their own suites.
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
  const headers = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", '{"test": 2432232314}', 1_614_265_330_999)
  expect(headers["webhook-id"]).toBe("msg_p5jXN8AQM9LWM0D4loKWxJek")
  expect(headers["webhook-timestamp"]).toBe("1614265330")
  expect(headers["webhook-signature"]).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
})

it.each([
  ["24 bytes", Buffer.alloc(24, 1).toString("base64"), true],
  ["64 bytes", Buffer.alloc(64, 1).toString("base64"), true],
  ["23 bytes", Buffer.alloc(23, 1).toString("base64"), false],
  ["65 bytes", Buffer.alloc(65, 1).toString("base64"), false],
  ["no padding", Buffer.alloc(25, 1).toString("base64").replace(/=+$/, ""), false],
  ["the URL alphabet", Buffer.alloc(24, 0xff).toString("base64url"), false],
  ["other characters", "correct-horse-battery-staple-and-more", false]
])("a secret of %s", (_, encoded, isStandard) => {
  const secret = `whsec_${encoded}`
  const headers = sign(secret, "evt_1", "{}", 0)
  expect("webhook-signature" in headers).toBe(isStandard)
  expect(headers["X-Service-Signature"]).toBe(createHmac("sha256", secret).update("{}").digest("hex"))
})

const libraries = [
  ["standardwebhooks", StandardWebhook],
  ["svix", SvixWebhook]
] as const

const secrets = fc
  .uint8Array({ minLength: 24, maxLength: 64 })
  .map((bytes) => `whsec_${Buffer.from(bytes).toString("base64")}`)
const events = fc
  .record({ id: fc.string({ unit: "binary" }), data: fc.jsonValue() })
  .map((event) => JSON.stringify(event))

/** What a receiver makes of a request: the event, or nothing. */
const read = (
  Library: (typeof libraries)[number][1],
  secret: string,
  headers: Record<string, string>,
  body: string
) => {
  try {
    return new Library(secret).verify(Buffer.from(body), headers)
  } catch {
    return undefined
  }
}

// They compare the time of the signature with the system's.
it.live.each(libraries)(
  "%s accepts what is signed in an overlap, with either secret, and nothing else",
  ([, Library]) =>
    Effect.map(Clock.currentTimeMillis, (now) =>
      fc.assert(
        fc.property(
          fc.uniqueArray(secrets, { minLength: 3, maxLength: 3 }),
          events,
          ([before = "", after = "", other = ""], body) => {
            const key = overlapping(signingKey(Redacted.make(before)), signingKey(Redacted.make(after)))
            const headers = signatureHeaders(key, "evt_1", Buffer.from(body), now)
            for (const secret of [before, after]) expect(read(Library, secret, headers, body)).toEqual(JSON.parse(body))
            expect(read(Library, other, headers, body)).toBeUndefined()
            expect(read(Library, after, headers, `${body} `)).toBeUndefined()
            expect(read(Library, after, { ...headers, "webhook-id": "evt_2" }, body)).toBeUndefined()
            const later = String(Number(headers["webhook-timestamp"]) + 1)
            expect(read(Library, after, { ...headers, "webhook-timestamp": later }, body)).toBeUndefined()
            expect(headers["X-Service-Signature"]).toBe(createHmac("sha256", before).update(body).digest("hex"))
          }
        ),
        { numRuns: 50 }
      )
    )
)
