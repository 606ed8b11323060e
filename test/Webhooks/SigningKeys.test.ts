import { createHmac } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Clock, DateTime, Deferred, Duration, Effect, Either, Fiber, Layer, Redacted, TestClock } from "effect"
import { Webhook } from "standardwebhooks"
import { RotationUnderWay } from "../../src/Domain/SecretErrors.ts"
import { Reader } from "../../src/Sql.ts"
import { defaultSecrets } from "../../src/Webhooks/DefaultSecrets.ts"
import { SigningKeys } from "../../src/Webhooks/SigningKeys.ts"
import { signatureHeaders } from "../../src/Webhooks/signature.ts"
import { rows, temporaryDatabase } from "../lib/store.ts"
import { merchant } from "../lib/webhooks.ts"
import { onStore, sendingNothing } from "./endpoints.ts"

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

it.scoped("while a rotation overlaps, X-Service-Signature stays and webhook-signature has both", () =>
  onStore(function* () {
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
)

it.scoped("an overlap continues after a restart, to its end", () =>
  Effect.gen(function* () {
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
)

it.scoped(
  "there are never three secrets: of concurrent rotations one is done, and a later one ends the overlap at once",
  () =>
    onStore(function* () {
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
    })
)

it.scoped("a secret that is read while it rotates signs nothing any more", () =>
  onStore(function* () {
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
)

it.scoped("a first secret that a rotation makes has none before it; the other mode keeps its own", () =>
  onStore(function* () {
    const live = yield* defaultSecrets({ ...merchant, mode: "live" })
    const { secret, until } = yield* rotate("1 hour")
    expect(until).toBeUndefined()
    expect(yield* signers({ secret })).toEqual({ exact: "secret", standard: ["secret"] })
    yield* rotate("0 seconds")
    expect(yield* defaultSecrets({ ...merchant, mode: "live" })).toEqual(live)
  })
)

it.scoped("both secrets of a rotation are stored sealed", () =>
  onStore(function* () {
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
)
