import { describe, expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Layer, Redacted, Scope, TestClock } from "effect"
import { hashOf, newKey } from "../../src/Auth/keyFormat.ts"
import { Accounts, defaultAccount, Keys, type NewKey } from "../../src/Auth.ts"
import { permissions } from "../../src/Domain/ApiKey.ts"
import { AccountId, newApiKeyId } from "../../src/Domain/Ids.ts"
import { Reader } from "../../src/Sql.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { refusingWriter, tempStore } from "../lib/store.ts"

const wanted: NewKey = { account: defaultAccount, mode: "test", name: "shop", permissions, expiresIn: undefined }

const anywhere = () => "192.0.2.1"

/** Counts the lookups in the store, and can hold a result back. */
class Watch extends Effect.Service<Watch>()("test/Watch", {
  sync: () => ({ reads: 0, gate: Effect.void as Effect.Effect<void> })
}) {}

const watchedReader = Layer.effect(
  Reader,
  Effect.gen(function* () {
    const reader = yield* Reader
    const watch = yield* Watch
    return {
      ...reader,
      get: <Row extends object>(...args: Parameters<typeof reader.get>) =>
        reader.get<Row>(...args).pipe(
          Effect.tap(() => {
            watch.reads += 1
            // Read, and not returned yet.
            return watch.gate
          })
        )
    }
  })
)

const store = watchedReader.pipe(Layer.provideMerge(tempStore), Layer.provideMerge(Watch.Default))
const auth = Keys.layer.pipe(
  Layer.provideMerge(Accounts.layer),
  Layer.provideMerge(store),
  Layer.provide(testSettingsLayer(""))
)

describe("a key", () => {
  it.effect("authenticates its account, and is not in the store", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const { key, record } = yield* keys.create(wanted)
      const text = Redacted.value(key)
      const owner = { account: "default", mode: "test" }
      expect(yield* keys.authenticate(text, anywhere)).toMatchObject({ id: record.id, ...owner, permissions })
      const reader = yield* Reader
      const [row] = yield* reader.all<Record<string, unknown>>("SELECT * FROM api_keys")
      expect(row).toMatchObject({ last_four: text.slice(-4), hash: hashOf(text) })
      expect(JSON.stringify(row)).not.toContain(text.slice(9, -4))
      expect(String(key)).not.toContain(text)
    }).pipe(Effect.provide(auth))
  )

  it.effect("is looked up once; a malformed key never, an unknown key every time", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const watch = yield* Watch
      const text = Redacted.value((yield* keys.create(wanted)).key)
      watch.reads = 0
      for (let i = 0; i < 5; i++) expect(yield* keys.authenticate(text, anywhere)).toBeDefined()
      expect(watch.reads).toBe(1)
      for (const wrong of ["", "svc_test_", `${text}x`, text.slice(0, -1), "svc_test_".padEnd(58, "A")]) {
        expect(yield* keys.authenticate(wrong, anywhere)).toBeUndefined()
      }
      expect(watch.reads).toBe(1)
      const unknown = Redacted.value(newKey("test"))
      expect(yield* keys.authenticate(unknown, anywhere)).toBeUndefined()
      expect(yield* keys.authenticate(unknown, anywhere)).toBeUndefined()
      expect(watch.reads).toBe(3)
    }).pipe(Effect.provide(auth))
  )

  it.effect("permanently stops working before its revocation returns", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const { key, record } = yield* keys.create(wanted)
      const other = yield* keys.create({ ...wanted, name: "other" })
      expect(yield* keys.authenticate(Redacted.value(key), anywhere)).toBeDefined()
      yield* TestClock.adjust("1 hour")
      expect(yield* keys.revoke(record.id)).toMatchObject({ id: record.id, revokedAt: 3_600_000 })
      expect(yield* keys.authenticate(Redacted.value(key), anywhere)).toBeUndefined()
      expect(yield* keys.authenticate(Redacted.value(other.key), anywhere)).toBeDefined()
      yield* TestClock.adjust("1 hour")
      expect(yield* keys.revoke(record.id)).toMatchObject({ revokedAt: 3_600_000 })
      expect(yield* keys.revoke("key_unknown")).toBeUndefined()
      expect((yield* keys.list({ limit: 100 })).map(({ name, revokedAt }) => [name, revokedAt])).toEqual(
        expect.arrayContaining([
          ["shop", 3_600_000],
          ["other", undefined]
        ])
      )
    }).pipe(Effect.provide(auth))
  )

  it.effect("that was revoked during its lookup does not work again", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const watch = yield* Watch
      const { key, record } = yield* keys.create(wanted)
      const reached = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      watch.gate = Effect.zipRight(Deferred.succeed(reached, undefined), Deferred.await(go))
      const slow = yield* Effect.fork(keys.authenticate(Redacted.value(key), anywhere))
      yield* Deferred.await(reached)
      yield* keys.revoke(record.id)
      watch.gate = Effect.void
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(slow)
      expect(yield* keys.authenticate(Redacted.value(key), anywhere)).toBeUndefined()
    }).pipe(Effect.provide(auth))
  )

  it.effect("expires at its time, cached or not", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const { key } = yield* keys.create({ ...wanted, expiresIn: Duration.hours(1) })
      yield* TestClock.adjust("59 minutes")
      expect(yield* keys.authenticate(Redacted.value(key), anywhere)).toBeDefined()
      yield* TestClock.adjust("1 minute")
      expect(yield* keys.authenticate(Redacted.value(key), anywhere)).toBeUndefined()
      expect(yield* keys.authenticate(Redacted.value(key), anywhere)).toBeUndefined()
    }).pipe(Effect.provide(auth))
  )

  it.effect("is one of at most a hundred valid keys and a hundred rolled ones; an expired one makes room", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const made = yield* Effect.forEach(Array.from({ length: 100 }), () => keys.create(wanted), { concurrency: 1 })
      const refused = yield* Effect.flip(keys.create(wanted))
      expect(refused).toMatchObject({
        _tag: "TooMany",
        message: expect.stringContaining("has 100 working keys in test")
      })
      // Keys of the other mode or of another account do not count.
      yield* keys.create({ ...wanted, mode: "live" })
      const roll = (id: string) => keys.roll(id, newApiKeyId(), Duration.hours(1))
      const [first, ...others] = made
      for (const { record } of others) yield* roll(record.id)
      const last = (yield* roll(first?.record.id ?? ""))?.record
      expect(yield* Effect.flip(roll(last?.id ?? ""))).toMatchObject({
        message: expect.stringContaining("100 rolled keys")
      })
      expect(yield* Effect.flip(keys.create(wanted))).toMatchObject({ _tag: "TooMany" })
      yield* keys.revoke(last?.id ?? "")
      yield* keys.create(wanted)
      // The rolled ones have expired.
      yield* TestClock.adjust("2 hours")
      expect(yield* Effect.flip(keys.create(wanted))).toMatchObject({ _tag: "TooMany" })
      expect(yield* Effect.map(keys.listOf(wanted, { limit: 500 }), (all) => all.length)).toBe(201)
    }).pipe(Effect.provide(auth))
  )

  it.effect("needs an existing account", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const refused = yield* Effect.flip(keys.create({ ...wanted, account: AccountId.make("nobody") }))
      expect(refused).toMatchObject({ _tag: "UnknownAccount", message: expect.stringContaining("nobody") })
    }).pipe(Effect.provide(auth))
  )
})

describe("the last use of a key", () => {
  it.scoped("is written at most once a minute and at the end of the layer, and is not lost by a full disk", () =>
    Effect.gen(function* () {
      const writes: Array<"written" | "refused"> = []
      let full = false
      const base = yield* Layer.build(Accounts.layer.pipe(Layer.provideMerge(store)))
      const scope = yield* Scope.make()
      const counted = Keys.layer.pipe(
        Layer.provide(
          refusingWriter(() => {
            writes.push(full ? "refused" : "written")
            return full
          })
        ),
        Layer.provide(Layer.succeedContext(base)),
        Layer.provide(testSettingsLayer(""))
      )
      const keys = yield* Effect.provide(Keys, yield* Layer.buildWithScope(counted, scope))
      const lastUse = Effect.gen(function* () {
        const reader = yield* Reader
        const row = yield* reader.get<{ at: number | null }>("SELECT last_used_at AS at FROM api_keys")
        return row?.at
      }).pipe(Effect.provide(base))

      const { key } = yield* keys.create(wanted)
      writes.length = 0
      const worker = yield* Effect.fork(keys.run)
      yield* TestClock.adjust("10 seconds")
      for (let i = 0; i < 100; i++) yield* keys.authenticate(Redacted.value(key), anywhere)
      expect(writes).toEqual([])
      expect((yield* keys.list({ limit: 100 }))[0]?.lastUsedAt).toBe(10_000)
      full = true
      yield* TestClock.adjust("50 seconds")
      expect(writes).toEqual(["refused"])
      full = false
      yield* TestClock.adjust("1 minute")
      expect(writes).toEqual(["refused", "written"])
      // No key was used since.
      yield* TestClock.adjust("10 minutes")
      expect(writes).toEqual(["refused", "written"])
      yield* Fiber.interrupt(worker)
      expect(yield* lastUse).toBe(10_000)
      yield* keys.authenticate(Redacted.value(key), anywhere)
      yield* Scope.close(scope, Exit.void)
      expect(writes).toEqual(["refused", "written", "written"])
      expect(yield* lastUse).toBe(720_000)
    })
  )
})
