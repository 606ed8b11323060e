import { createHmac } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Clock, DateTime, Deferred, Duration, Effect, Either, Fiber, Layer, Logger, Redacted, TestClock } from "effect"
import { Webhook } from "standardwebhooks"
import { RotationUnderWay } from "../../src/Domain/SecretErrors.ts"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { Reader } from "../../src/Sql.ts"
import { defaultSecrets } from "../../src/Webhooks/DefaultSecrets.ts"
import { SigningKeys } from "../../src/Webhooks/SigningKeys.ts"
import { signatureHeaders } from "../../src/Webhooks/signature.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { execute, rows, temporaryDatabase } from "../lib/store.ts"
import { attempts, deliveries, dispatching, merchant, untilRecorded } from "../lib/webhooks.ts"
import {
  a,
  b,
  c,
  minute,
  publishMany,
  refused,
  register,
  scripted,
  secret,
  sendingNothing,
  sendingTest,
  storeTest
} from "./endpoints.ts"

const body = '{"note":"ünïcödé 💶"}'

/** The secrets that sign now: by the spec's header, and by each of the signatures of Standard Webhooks. */
const signers = (named: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const keys = yield* SigningKeys
    const now = yield* Clock.currentTimeMillis
    const headers = signatureHeaders(yield* keys.ofOwner(merchant), "evt_1", Buffer.from(body), now)
    const at = DateTime.toDate(DateTime.unsafeMake(now))
    const exact = (secret: string) => createHmac("sha256", secret).update(body).digest("hex")
    const standard = (secret: string) => new Webhook(secret).sign("evt_1", at, body)
    const names = Object.entries(named)
    return {
      exact: names.find(([, secret]) => exact(secret) === headers["X-Service-Signature"])?.[0],
      standard: headers["webhook-signature"]
        ?.split(" ")
        .map((signature) => names.find(([, secret]) => standard(secret) === signature)?.[0])
    }
  })

const current = Effect.map(defaultSecrets(merchant), (secrets) => Redacted.value(secrets.current))

const rotate = (overlap: Duration.DurationInput) =>
  Effect.gen(function* () {
    const keys = yield* SigningKeys
    const rotated = yield* keys.rotate(merchant, { overlap: Duration.decode(overlap) })
    return { secret: Redacted.value(rotated.current), until: rotated.previous?.until }
  })

storeTest("while a rotation overlaps, X-Service-Signature stays and webhook-signature has both", function* () {
  yield* TestClock.setTime(1_000_000)
  const before = yield* current
  expect(yield* signers({ before })).toEqual({ exact: "before", standard: ["before"] })
  const { secret: after, until } = yield* rotate("24 hours")
  expect(until).toBe(1_000_000 + 86_400_000)
  expect(after).not.toBe(before)
  const both = { exact: "before", standard: ["after", "before"] }
  expect(yield* signers({ before, after })).toEqual(both)
  yield* TestClock.adjust(86_400_000 - 1)
  expect(yield* signers({ before, after })).toEqual(both)
  yield* TestClock.adjust(1)
  expect(yield* signers({ before, after })).toEqual({ exact: "after", standard: ["after"] })
  expect(yield* defaultSecrets(merchant)).toEqual({ current: Redacted.make(after), previous: undefined })
})

clockTest("an overlap continues after a restart, to its end", function* () {
  const path = yield* temporaryDatabase
  const [before, after] = yield* Effect.all([current, Effect.map(rotate("1 hour"), ({ secret }) => secret)], {
    concurrency: 1
  }).pipe(Effect.provide(sendingNothing(path)))
  yield* Effect.gen(function* () {
    yield* TestClock.adjust("59 minutes")
    expect(yield* signers({ before, after })).toEqual({ exact: "before", standard: ["after", "before"] })
    yield* TestClock.adjust("1 minute")
    expect(yield* signers({ before, after })).toEqual({ exact: "after", standard: ["after"] })
  }).pipe(Effect.provide(sendingNothing(path)))
})

storeTest(
  "there are never three secrets: of concurrent rotations one is done, and a later one ends the overlap at once",
  function* () {
    const first = yield* current
    const once = Effect.either(rotate("1 hour"))
    const rotations = yield* Effect.all([once, once, once], { concurrency: "unbounded" })
    const [second = "", ...others] = rotations.flatMap((each) => (Either.isRight(each) ? [each.right.secret] : []))
    expect(others).toEqual([])
    const [refused] = rotations.flatMap((each) => (Either.isLeft(each) ? [each.left] : []))
    expect(refused).toBeInstanceOf(RotationUnderWay)
    expect(refused?.message).toContain("until 1970-01-01T01:00:00.000Z")
    expect(yield* signers({ first, second })).toEqual({ exact: "first", standard: ["second", "first"] })
    const { secret: third, until } = yield* rotate("0 seconds")
    expect(until).toBeUndefined()
    expect(yield* signers({ first, second, third })).toEqual({ exact: "third", standard: ["third"] })
    // The overlap that was ended blocks no further one.
    const { secret: fourth } = yield* rotate("1 hour")
    expect(yield* signers({ third, fourth })).toEqual({ exact: "third", standard: ["fourth", "third"] })
    yield* TestClock.adjust("1 hour")
    const { secret: fifth } = yield* rotate("1 hour")
    expect(yield* signers({ third, fourth, fifth })).toEqual({ exact: "fourth", standard: ["fifth", "fourth"] })
  }
)

storeTest("a secret that is read while it rotates signs nothing any more", function* () {
  const reader = yield* Reader
  const [isRead, goesOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const held: typeof reader = {
    ...reader,
    get: (...args) =>
      reader
        .get(...args)
        .pipe(Effect.tap(() => Effect.zipRight(Deferred.succeed(isRead, undefined), Deferred.await(goesOn)))) as never
  }
  const before = yield* current
  const keys = yield* SigningKeys.pipe(
    Effect.provide(Layer.fresh(SigningKeys.layer)),
    Effect.provideService(Reader, held)
  )
  const reading = yield* Effect.fork(keys.ofOwner(merchant))
  yield* Deferred.await(isRead)
  const { current: after } = yield* keys.rotate(merchant, { overlap: Duration.zero })
  yield* Deferred.succeed(goesOn, undefined)
  yield* Fiber.join(reading)
  const named = { before, after: Redacted.value(after) }
  expect(yield* Effect.provideService(signers(named), SigningKeys, keys)).toEqual({
    exact: "after",
    standard: ["after"]
  })
})

storeTest("a first secret that a rotation makes has none before it; the other mode keeps its own", function* () {
  const live = yield* defaultSecrets({ ...merchant, mode: "live" })
  const { secret, until } = yield* rotate("1 hour")
  expect(until).toBeUndefined()
  expect(yield* signers({ secret })).toEqual({ exact: "secret", standard: ["secret"] })
  yield* rotate("0 seconds")
  expect(yield* defaultSecrets({ ...merchant, mode: "live" })).toEqual(live)
})

storeTest("both secrets of a rotation are stored sealed", function* () {
  const before = yield* current
  const { secret: after } = yield* rotate("1 hour")
  const sealed = yield* rows<Record<string, unknown>>("SELECT * FROM default_secrets")
  const stored = sealed.flatMap((row) => Object.values(row).filter((value) => value instanceof Uint8Array))
  expect(stored).toHaveLength(2)
  for (const value of stored) {
    for (const secret of [before, after]) {
      expect(Buffer.from(value).includes(secret.slice(6))).toBe(false)
      expect(Buffer.from(value).includes(Buffer.from(secret.slice(6), "base64"))).toBe(false)
    }
  }
})

sendingTest(
  "signs with the endpoint's secret, and a payment's own URL with the account's default",
  {},
  function* (client) {
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
  }
)

sendingTest("half an emoji in a stored event is sent as U+FFFD, and signed so", { [b]: refused }, function* (client) {
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

sendingTest("a retry is signed with the secret of its own time", { [b]: refused }, function* (client) {
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
