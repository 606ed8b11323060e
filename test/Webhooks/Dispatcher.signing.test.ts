import { expect, it } from "@effect/vitest"
import { Duration, Effect, Logger, Redacted, TestClock } from "effect"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { defaultSecrets } from "../../src/Webhooks/DefaultSecrets.ts"
import { SigningKeys } from "../../src/Webhooks/SigningKeys.ts"
import { execute } from "../lib/store.ts"
import { attempts, deliveries, dispatching, merchant, untilRecorded } from "../lib/webhooks.ts"
import { a, b, c, minute, publishMany, refused, register, scripted, secret } from "./endpoints.ts"

it.scoped("signs with the endpoint's secret, and a payment's own URL with the account's default", () => {
  const client = scripted({})
  return dispatching(client, function* () {
    yield* register(a)
    yield* publishMany(1, b)
    yield* untilRecorded(2)
    const own = Redacted.value((yield* defaultSecrets(merchant)).current)
    const [row] = yield* deliveries
    for (const { url, headers, body } of client.sent) {
      const signed = { "x-service-signature": headers["X-Service-Signature"] }
      expect(verifySignature({ headers: signed, body: Buffer.from(body) }, url === a ? secret : own)).toBe(true)
      expect(headers["webhook-id"]).toBe(row?.event_id)
      expect(headers["webhook-timestamp"]).toBe("0")
      expect(JSON.parse(body.toString()).data.metadata).toEqual({ note: "ünïcödé 💶" })
    }
  })
})

it.scoped("half an emoji in a stored event is sent as U+FFFD, and signed so", () => {
  const client = scripted({ [b]: refused })
  return dispatching(client, function* () {
    yield* publishMany(1, b)
    yield* untilRecorded(1)
    yield* execute(String.raw`UPDATE events SET body = replace(body, 'ünïcödé 💶', 'card \ud83c')`)
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(2)
    const own = Redacted.value((yield* defaultSecrets(merchant)).current)
    const { body, headers } = client.sent[1] ?? expect.fail("there were two attempts")
    expect(body.toString()).toContain('"note":"card \ufffd"')
    const time = headers["webhook-timestamp"]
    const signed = {
      time,
      id: headers["webhook-id"],
      headers: { "x-service-signature": headers["X-Service-Signature"] }
    }
    expect(verifySignature({ ...signed, body: Buffer.from(body) }, own)).toBe(true)
  })
})

it.scoped("a retry is signed with the secret of its own time", () => {
  const client = scripted({ [b]: refused })
  return dispatching(client, function* () {
    yield* publishMany(1, b)
    yield* untilRecorded(1)
    const keys = yield* SigningKeys
    const before = (yield* defaultSecrets(merchant)).current
    const after = (yield* keys.rotate(merchant, { overlap: Duration.zero })).current
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(2)
    const [first, second] = client.sent.map(({ body, headers }) => ({
      headers: { "x-service-signature": headers["X-Service-Signature"] },
      time: headers["webhook-timestamp"],
      id: headers["webhook-id"],
      body: Buffer.from(body)
    }))
    if (first === undefined || second === undefined) return expect.fail("there were two attempts")
    expect([first.id, first.body]).toEqual([second.id, second.body])
    expect([first.time, second.time]).toEqual(["0", "60"])
    expect(verifySignature(first, Redacted.value(before))).toBe(true)
    expect(verifySignature(second, Redacted.value(after))).toBe(true)
  })
})

it.scoped("a secret that cannot be decrypted fails only its own attempts, with a remedy in the log", () => {
  const client = scripted({})
  const logged: Array<string> = []
  const log = Logger.make(({ logLevel, message }) => {
    if (logLevel._tag === "Error") logged.push(String(message))
  })
  return dispatching(client, function* () {
    const damaged = yield* register(a)
    yield* register(c)
    yield* defaultSecrets(merchant)
    yield* execute("UPDATE endpoints SET secret = zeroblob(60) WHERE rowid = 1")
    yield* execute("UPDATE default_secrets SET secret = zeroblob(60)")
    yield* publishMany(1, b)
    yield* untilRecorded(3)
    expect(client.sent.map(({ url }) => url)).toEqual([c])
    const error = "secret unreadable"
    expect(yield* attempts).toMatchObject([{ error }, { status: 204, error: null }, { error }])
    expect((yield* deliveries).map((row) => row.next_attempt_at)).toEqual([minute, null, minute])
    expect(logged.toSorted()).toEqual([
      expect.stringContaining("default webhook secret of account default, mode test"),
      expect.stringContaining(`webhook endpoint ${damaged.id}`)
    ])
    expect(logged.every((line) => /PATCH \/v1\/webhooks|--rotate --overlap 0s/.test(line))).toBe(true)
    // The remedy, with nothing restarted.
    const keys = yield* SigningKeys
    yield* keys.rotate(merchant, { overlap: Duration.zero })
    yield* TestClock.adjust("1 minute")
    yield* untilRecorded(5)
    expect(client.to(b)).toBe(1)
  }).pipe(Effect.provide(Logger.add(log)))
})
