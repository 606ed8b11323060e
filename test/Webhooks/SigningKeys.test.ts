import { createHmac } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Clock, DateTime, Deferred, Duration, Effect, Fiber, Layer, Redacted, TestClock } from "effect"
import { Webhook } from "standardwebhooks"
import { RotationUnderWay } from "../../src/Domain/SecretErrors.ts"
import { Reader } from "../../src/Sql.ts"
import { defaultSecrets } from "../../src/Webhooks/DefaultSecrets.ts"
import { SigningKeys } from "../../src/Webhooks/SigningKeys.ts"
import { signatureHeaders } from "../../src/Webhooks/signature.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { merchant, stubClient, webhooksOn } from "../lib/webhooks.ts"

const nothingSent = stubClient(() => Effect.never)

const onStore = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.flatMap(temporaryDatabase, (path) => Effect.provide(test, webhooksOn(path, nothingSent)))

const body = '{"note":"ünïcödé 💶"}'

/** Who signs now: by the spec's header, and by each of the signatures of Standard Webhooks. */
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
    const rotated = yield* keys.rotate(merchant, Duration.decode(overlap))
    return { secret: Redacted.value(rotated.current), until: rotated.previous?.until }
  })

it.scoped("while a rotation overlaps, X-Service-Signature stays and webhook-signature has both", () =>
  onStore(
    Effect.gen(function* () {
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
)

it.scoped("an overlap continues after a restart, to its end", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const [before, after] = yield* Effect.all([current, Effect.map(rotate("1 hour"), ({ secret }) => secret)], {
      concurrency: 1
    }).pipe(Effect.provide(webhooksOn(path, nothingSent)))
    yield* Effect.gen(function* () {
      yield* TestClock.adjust("59 minutes")
      expect(yield* signers({ before, after })).toEqual({ exact: "before", standard: ["after", "before"] })
      yield* TestClock.adjust("1 minute")
      expect(yield* signers({ before, after })).toEqual({ exact: "after", standard: ["after"] })
    }).pipe(Effect.provide(webhooksOn(path, nothingSent)))
  })
)

it.scoped("there are never three secrets: another rotation is refused, or ends the overlap at once", () =>
  onStore(
    Effect.gen(function* () {
      const first = yield* current
      const { secret: second } = yield* rotate("1 hour")
      const refused = yield* Effect.flip(rotate("1 hour"))
      expect(refused).toBeInstanceOf(RotationUnderWay)
      expect(refused.message).toContain("until 1970-01-01T01:00:00.000Z")
      expect(yield* signers({ first, second })).toEqual({ exact: "first", standard: ["second", "first"] })
      const { secret: third, until } = yield* rotate("0 seconds")
      expect(until).toBeUndefined()
      expect(yield* signers({ first, second, third })).toEqual({ exact: "third", standard: ["third"] })
      // The overlap that was ended holds up nobody.
      const { secret: fourth } = yield* rotate("1 hour")
      expect(yield* signers({ third, fourth })).toEqual({ exact: "third", standard: ["fourth", "third"] })
      yield* TestClock.adjust("1 hour")
      const { secret: fifth } = yield* rotate("1 hour")
      expect(yield* signers({ third, fourth, fifth })).toEqual({ exact: "fourth", standard: ["fifth", "fourth"] })
    })
  )
)

it.scoped("a secret that is read while it rotates signs nothing any more", () =>
  onStore(
    Effect.gen(function* () {
      const reader = yield* Reader
      const [isRead, goesOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const held: typeof reader = {
        ...reader,
        get: (...args) =>
          reader
            .get(...args)
            .pipe(
              Effect.tap(() => Effect.zipRight(Deferred.succeed(isRead, undefined), Deferred.await(goesOn)))
            ) as never
      }
      const before = yield* current
      const keys = yield* SigningKeys.pipe(
        Effect.provide(Layer.fresh(SigningKeys.layer)),
        Effect.provideService(Reader, held)
      )
      const reading = yield* Effect.fork(keys.ofOwner(merchant))
      yield* Deferred.await(isRead)
      const { current: after } = yield* keys.rotate(merchant, Duration.zero)
      yield* Deferred.succeed(goesOn, undefined)
      yield* Fiber.join(reading)
      const named = { before, after: Redacted.value(after) }
      expect(yield* Effect.provideService(signers(named), SigningKeys, keys)).toEqual({
        exact: "after",
        standard: ["after"]
      })
    })
  )
)

it.scoped("of concurrent rotations one is done", () =>
  onStore(
    Effect.gen(function* () {
      const before = yield* current
      const rotations = yield* Effect.all(
        [1, 2, 3].map(() => Effect.either(rotate("1 hour"))),
        {
          concurrency: "unbounded"
        }
      )
      const [done, ...others] = rotations.flatMap((rotated) => (rotated._tag === "Right" ? [rotated.right.secret] : []))
      expect(others).toEqual([])
      expect(yield* signers({ before, done: done ?? "" })).toEqual({ exact: "before", standard: ["done", "before"] })
    })
  )
)

it.scoped("a first secret that a rotation makes has none before it; the other mode keeps its own", () =>
  onStore(
    Effect.gen(function* () {
      const live = yield* defaultSecrets({ ...merchant, mode: "live" })
      const { secret, until } = yield* rotate("1 hour")
      expect(until).toBeUndefined()
      expect(yield* signers({ secret })).toEqual({ exact: "secret", standard: ["secret"] })
      yield* rotate("0 seconds")
      expect(yield* defaultSecrets({ ...merchant, mode: "live" })).toEqual(live)
    })
  )
)

it.scoped("both secrets of a rotation are stored sealed", () =>
  onStore(
    Effect.gen(function* () {
      const before = yield* current
      const { secret: after } = yield* rotate("1 hour")
      const reader = yield* Reader
      const rows = yield* reader.all<Record<string, unknown>>("SELECT * FROM default_secrets")
      const stored = rows.flatMap((row) => Object.values(row).filter((value) => value instanceof Uint8Array))
      expect(stored).toHaveLength(2)
      for (const value of stored) {
        for (const secret of [before, after]) {
          expect(Buffer.from(value).includes(secret.slice(6))).toBe(false)
          expect(Buffer.from(value).includes(Buffer.from(secret.slice(6), "base64"))).toBe(false)
        }
      }
    })
  )
)
