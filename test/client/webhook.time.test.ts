// Signed by a library that takes a Date, and verified by the machine's own clock where no other is given.
// @effect-diagnostics globalDate:off

import { createHmac } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Webhook } from "standardwebhooks"
import { verifyWebhook, WebhookTimestampError, WebhookVerificationError } from "../../src/client/index.ts"

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const nextSecret = `whsec_${Buffer.alloc(32, 9).toString("base64")}`
/** Of no use to Standard Webhooks: it is not base64. */
const plainSecret = "whsec_the secret of a small shop"
const body = '{"id":"evt_1","event":"payment.created","createdAt":"2026-01-31T12:00:00.000Z","data":{}}'
const event = JSON.parse(body)
const sentAt = Date.UTC(2026, 0, 31, 12)
const second = 1000

const own = (key: string, text = body) => createHmac("sha256", key).update(text).digest("hex")

/** The headers of a request as tilld sends it: `signers` are the secrets whose signatures Standard Webhooks' header has. */
const headersOf = (key: string, signers: ReadonlyArray<string> = [key], id = "evt_1", at = sentAt) => ({
  "x-service-signature": own(key),
  "webhook-id": id,
  "webhook-timestamp": String(at / second),
  ...(signers.length === 0
    ? {}
    : { "webhook-signature": signers.map((each) => new Webhook(each).sign(id, new Date(at), body)).join(" ") })
})

/** Verifies at a time that lies `seconds` behind the sending. */
const verifiedAfter = (
  seconds: number,
  headers: Readonly<Record<string, string>>,
  secrets: string | ReadonlyArray<string>
) => verifyWebhook(body, headers, secrets, { now: () => sentAt + seconds * second })

const without = (headers: Readonly<Record<string, string>>, name: string) =>
  Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name))

describe("verifyWebhook with all headers of a request", () => {
  it.each([0, 299, 300, -300])("takes what was signed %d seconds ago", async (seconds) => {
    expect(await verifiedAfter(seconds, headersOf(secret), secret)).toEqual(event)
  })

  it.each([
    [301, "too_old", "301 seconds ago"],
    [86_400, "too_old", "86400 seconds ago"],
    [-301, "too_new", "301 seconds from now"]
  ] as const)("refuses a recording of %d seconds ago: %s", async (seconds, reason, message) => {
    const refused = await verifiedAfter(seconds, headersOf(secret), secret).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(WebhookTimestampError)
    // Who answers a 400 to the one does so to the other.
    expect(refused).toBeInstanceOf(WebhookVerificationError)
    expect(refused).toMatchObject({ name: "WebhookTimestampError", reason, signedAt: sentAt })
    expect(String(refused)).toContain(message)
    expect(String(refused)).toContain("clock")
  })

  it("takes another tolerance, which must be a number of seconds", async () => {
    const at = (seconds: number, toleranceSeconds: number) =>
      verifyWebhook(body, headersOf(secret), secret, { toleranceSeconds, now: () => sentAt + seconds * second })
    expect(await at(3600, 3600)).toEqual(event)
    await expect(at(11, 10)).rejects.toThrow(WebhookTimestampError)
    expect(await at(0, 0)).toEqual(event)
    for (const none of [Number.NaN, -1, Number.POSITIVE_INFINITY]) await expect(at(0, none)).rejects.toThrow(TypeError)
    // A clock that tells no time lets nothing through.
    const broken = { now: () => Number.NaN }
    await expect(verifyWebhook(body, headersOf(secret), secret, broken)).rejects.toThrow(WebhookTimestampError)
  })

  it("looks at this machine's clock unless it is given another", async () => {
    await expect(verifyWebhook(body, headersOf(secret), secret)).rejects.toThrow(WebhookTimestampError)
    const fresh = headersOf(secret, [secret], "evt_1", Math.floor(Date.now() / second) * second)
    expect(await verifyWebhook(body, fresh, secret)).toEqual(event)
  })

  it("takes the headers of a Request, of node:http and in any case", async () => {
    const now = { now: () => sentAt }
    const plain = headersOf(secret)
    const capital = Object.fromEntries(Object.entries(plain).map(([name, value]) => [name.toUpperCase(), [value]]))
    for (const headers of [new Headers(plain), plain, capital]) {
      expect(await verifyWebhook(body, headers, secret, now)).toEqual(event)
    }
  })

  it.each(["webhook-id", "webhook-timestamp", "webhook-signature"])(
    "refuses a request without %s where the secret signs the time: a recording would lack it",
    async (name) => {
      await expect(verifiedAfter(0, without(headersOf(secret), name), secret)).rejects.toThrow(/webhook-signature/)
    }
  )

  it.each([
    ["a later time", { "webhook-timestamp": String(sentAt / second + 3600) }],
    ["another id", { "webhook-id": "evt_2" }],
    ["an id that goes on into the time", { "webhook-id": `evt_1.${sentAt / second}` }],
    ["no time", { "webhook-timestamp": "now" }],
    ["two times", { "webhook-timestamp": `${sentAt / second}, ${sentAt / second}` }],
    ["another signature", { "webhook-signature": `v1,${Buffer.alloc(32).toString("base64")}` }],
    [
      "another version",
      { "webhook-signature": `v2,${new Webhook(secret).sign("evt_1", new Date(sentAt), body).slice(3)}` }
    ],
    ["signatures without end", { "webhook-signature": "v1,AAAA ".repeat(1_000) }]
  ])("refuses what was signed with %s", async (_, changed) => {
    const refused = verifiedAfter(3600, { ...headersOf(secret), ...changed }, secret)
    await expect(refused).rejects.toThrow(WebhookVerificationError)
    await expect(refused).rejects.not.toThrow(WebhookTimestampError)
  })

  it("needs no X-Service-Signature where the time is signed", async () => {
    expect(await verifiedAfter(0, without(headersOf(secret), "x-service-signature"), secret)).toEqual(event)
  })

  it("takes both secrets of a rotation, whichever of them the shop knows", async () => {
    const overlap = headersOf(secret, [nextSecret, secret])
    for (const known of [secret, nextSecret, [secret, nextSecret]])
      expect(await verifiedAfter(0, overlap, known)).toEqual(event)
    await expect(verifiedAfter(301, overlap, [secret, nextSecret])).rejects.toThrow(WebhookTimestampError)
    // The shop knows the next secret already, and tilld signs with the one before.
    expect(await verifiedAfter(0, headersOf(plainSecret, []), [plainSecret, nextSecret])).toEqual(event)
  })

  it("has no time to check where the secret cannot sign it", async () => {
    expect(await verifiedAfter(86_400, headersOf(plainSecret, []), plainSecret)).toEqual(event)
    await expect(verifiedAfter(0, headersOf(plainSecret, []), "whsec_another secret of the shop")).rejects.toThrow(
      WebhookVerificationError
    )
    // Nor where it is given the one header alone.
    expect(await verifyWebhook(body, own(secret), secret)).toEqual(event)
  })
})
