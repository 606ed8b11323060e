import { createHmac } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Clock, DateTime, Deferred, Duration, Effect, Either, Fiber, Layer, Logger, Redacted, TestClock } from "effect"
import * as fc from "fast-check"
import { Webhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { RotationUnderWay } from "../../src/Domain/SecretErrors.ts"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { Reader } from "../../src/Sql.ts"
import { defaultSecrets, SigningKeys } from "../../src/Webhooks/SigningKeys.ts"
import { overlapping, type SigningKey, signatureHeaders, signingKey } from "../../src/Webhooks/signature.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, rows, temporaryDatabase } from "../lib/store.ts"
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

/** Signing keys whose reads of the store go on when the test says. */
const heldKeys = Effect.gen(function* () {
  const reader = yield* Reader
  const [isRead, goesOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const held: typeof reader = {
    ...reader,
    get: (...args) =>
      reader
        .get(...args)
        .pipe(Effect.tap(() => Effect.zipRight(Deferred.succeed(isRead, undefined), Deferred.await(goesOn)))) as never
  }
  const keys = yield* SigningKeys.pipe(
    Effect.provide(Layer.fresh(SigningKeys.layer)),
    Effect.provideService(Reader, held)
  )
  return { keys, isRead: Deferred.await(isRead), goOn: Deferred.succeed(goesOn, undefined) }
})

storeTest("a secret that is read while it rotates signs nothing any more", function* () {
  const before = yield* current
  const { goOn, isRead, keys } = yield* heldKeys
  const reading = yield* Effect.fork(keys.ofOwner(merchant))
  yield* isRead
  const { current: after } = yield* keys.rotate(merchant, { overlap: Duration.zero })
  yield* goOn
  yield* Fiber.join(reading)
  const named = { before, after: Redacted.value(after) }
  expect(yield* Effect.provideService(signers(named), SigningKeys, keys)).toEqual({
    exact: "after",
    standard: ["after"]
  })
})

storeTest("nor does an endpoint's", function* () {
  const { id } = yield* register(a)
  const { goOn, isRead, keys } = yield* heldKeys
  const reading = yield* Effect.fork(keys.ofEndpoint(id))
  yield* isRead
  const after = Redacted.make(`whsec_${Buffer.alloc(24, 1).toString("base64")}`)
  yield* inTransaction(keys.rotateEndpoint(id, after, { overlap: Duration.zero }, 0))
  yield* goOn
  yield* Fiber.join(reading)
  const by = (key: SigningKey) => signatureHeaders(key, "evt_1", Buffer.from(body), 0)
  expect(by(yield* keys.ofEndpoint(id))).toEqual(by(signingKey(after)))
})

storeTest("of first secrets that are made at once all are the one that is stored", function* () {
  const [one, ...others] = yield* Effect.all([current, current, current], { concurrency: "unbounded" })
  expect(others).toEqual([one, one])
  expect(yield* current).toBe(one)
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
    yield* execute("UPDATE endpoints SET secret = randomblob(60) WHERE rowid = 1")
    yield* execute("UPDATE default_secrets SET secret = randomblob(60)")
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
  ["standardwebhooks", Webhook],
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
