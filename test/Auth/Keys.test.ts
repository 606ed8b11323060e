import { describe, expect } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, HashMap, Layer, Logger, Redacted, Scope, TestClock } from "effect"
import { makeAuthenticate } from "../../src/Auth/authenticate.ts"
import { hashOf, newKey } from "../../src/Auth/keyFormat.ts"
import { Accounts, defaultAccount, Keys, type NewKey } from "../../src/Auth.ts"
import { permissions } from "../../src/Domain/ApiKey.ts"
import { AccountId, type ApiKeyId, newApiKeyId } from "../../src/Domain/Ids.ts"
import { Reader } from "../../src/Sql.ts"
import { clockTest, scopedTest } from "../lib/scopedTest.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { refusingWriter, rows, tempStore } from "../lib/store.ts"

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
const test = scopedTest(auth)

describe("a key", () => {
  test("authenticates its account, and is not in the store", function* () {
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
  })

  test("is looked up once; a malformed key never, an unknown key every time", function* () {
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
  })

  test("permanently stops working before its revocation returns", function* () {
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
  })

  test("that was revoked during its lookup does not work again", function* () {
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
  })

  test("expires at its time, cached or not", function* () {
    const keys = yield* Keys
    const { key } = yield* keys.create({ ...wanted, expiresIn: Duration.hours(1) })
    yield* TestClock.adjust("59 minutes")
    expect(yield* keys.authenticate(Redacted.value(key), anywhere)).toBeDefined()
    yield* TestClock.adjust("1 minute")
    expect(yield* keys.authenticate(Redacted.value(key), anywhere)).toBeUndefined()
    expect(yield* keys.authenticate(Redacted.value(key), anywhere)).toBeUndefined()
  })

  test("is one of at most a hundred valid keys and a hundred rolled ones; an expired one makes room", function* () {
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
  })

  test("needs an existing account", function* () {
    const keys = yield* Keys
    const refused = yield* Effect.flip(keys.create({ ...wanted, account: AccountId.make("nobody") }))
    expect(refused).toMatchObject({ _tag: "UnknownAccount", message: expect.stringContaining("nobody") })
  })
})

const terms: NewKey = {
  ...wanted,
  mode: "live",
  permissions: ["payments:read", "quotes:read"],
  ips: ["192.0.2.0/24", "2001:db8::/32"],
  perMinute: 600,
  perHour: 20_000
}

const day = Duration.toMillis("1 day")

/** Whether a key works from an address on its list. */
const works = (key: Redacted.Redacted<string>) =>
  Effect.flatMap(Keys, (keys) =>
    Effect.map(
      keys.authenticate(Redacted.value(key), () => "192.0.2.1"),
      (found) => found !== undefined
    )
  )

const roll = (id: ApiKeyId, overlap: Duration.DurationInput = "24 hours", to = newApiKeyId()) =>
  Effect.gen(function* () {
    const keys = yield* Keys
    return (yield* keys.roll(id, to, Duration.decode(overlap))) ?? expect.fail("no such key")
  })

const refusal = (id: ApiKeyId) => Effect.map(Effect.flip(roll(id)), (error) => error.message)

describe("a key that is rolled", () => {
  test("works until the overlap is over, beside a new one with the same terms", function* () {
    const keys = yield* Keys
    const former = yield* keys.create(terms)
    yield* TestClock.adjust("1 hour")
    const { key, record } = yield* roll(former.record.id)
    expect(Redacted.value(key)).toMatch(/^svc_live_/)
    const { expiresIn: _, ...same } = terms
    expect(record).toMatchObject({ ...same, expiresAt: undefined, createdAt: 3_600_000 })
    const listed = yield* keys.list({ limit: 100 })
    expect(listed.find(({ id }) => id === record.id)).toEqual(record)
    expect(listed.find(({ id }) => id === former.record.id)).toMatchObject({
      rolledTo: record.id,
      expiresAt: 3_600_000 + day,
      revokedAt: undefined
    })
    expect([yield* works(former.key), yield* works(key)]).toEqual([true, true])
    yield* TestClock.adjust(day - 1)
    expect(yield* works(former.key)).toBe(true)
    yield* TestClock.adjust(1)
    expect([yield* works(former.key), yield* works(key)]).toEqual([false, true])
  })

  test("is invalid before the roll returns if there is no overlap, also when the clock is set back", function* () {
    const keys = yield* Keys
    const former = yield* keys.create(terms)
    yield* TestClock.adjust("1 hour")
    // In memory from now on.
    expect(yield* works(former.key)).toBe(true)
    const { key } = yield* roll(former.record.id, 0)
    expect([yield* works(former.key), yield* works(key)]).toEqual([false, true])
    yield* TestClock.setTime(0)
    expect(yield* works(former.key)).toBe(false)
  })

  test("expires no later than before, and the new one lasts for its full term", function* () {
    const keys = yield* Keys
    const former = yield* keys.create({ ...terms, expiresIn: Duration.days(90) })
    yield* TestClock.adjust("89 days")
    const { record } = yield* roll(former.record.id, "7 days")
    expect(record.expiresAt).toBe((89 + 90) * day)
    const listed = yield* keys.list({ limit: 100 })
    expect(listed.find(({ id }) => id === former.record.id)?.expiresAt).toBe(90 * day)
  })

  test("is not rolled again: its replacement is", function* () {
    const keys = yield* Keys
    const first = (yield* keys.create(terms)).record.id
    const second = (yield* roll(first)).record.id
    expect(yield* refusal(first)).toBe(
      `Key ${first} was rolled to ${second}: roll that one, or end ${first} with tilld keys revoke ${first}`
    )
    const third = yield* roll(second)
    expect(yield* works(third.key)).toBe(true)
    expect(yield* rows("SELECT id FROM api_keys")).toHaveLength(3)
  })

  test("by two concurrent commands is rolled by one of them", function* () {
    const keys = yield* Keys
    const { id } = (yield* keys.create(terms)).record
    const tried = yield* Effect.all([roll(id), roll(id)], { mode: "either", concurrency: 2 })
    expect(tried.map(({ _tag }) => _tag).toSorted()).toEqual(["Left", "Right"])
    expect(yield* rows("SELECT id FROM api_keys")).toHaveLength(2)
  })
})

test("an expired key is neither rolled nor changed, and an unknown key is not found", function* () {
  const keys = yield* Keys
  const revoked = (yield* keys.create(terms)).record.id
  const expired = (yield* keys.create({ ...terms, expiresIn: Duration.hours(1) })).record.id
  yield* keys.revoke(revoked)
  yield* TestClock.adjust("1 hour")
  for (const [id, message] of [
    [revoked, `Key ${revoked} was revoked at 1970-01-01T00:00:00.000Z: make another one with tilld keys create`],
    [expired, `Key ${expired} expired at 1970-01-01T01:00:00.000Z: make another one with tilld keys create`]
  ] as const) {
    expect(yield* refusal(id)).toBe(message)
    expect(yield* Effect.flip(keys.change(id, { ips: [] }))).toMatchObject({ _tag: "KeyEnded", message })
  }
  expect(yield* keys.roll("key_none", newApiKeyId(), Duration.zero)).toBeUndefined()
  expect(yield* keys.change("key_none", { ips: [] })).toBeUndefined()
  expect(yield* rows("SELECT id FROM api_keys")).toHaveLength(2)
})

describe("a key with a list of addresses", () => {
  const use = (key: Redacted.Redacted<string>, address: string) =>
    Effect.flatMap(Keys, (keys) => keys.authenticate(Redacted.value(key), () => address))

  test("works from these only, read from the store and from memory, and other attempts do not count as a use", function* () {
    const keys = yield* Keys
    const { key, record } = yield* keys.create(terms)
    yield* TestClock.adjust("1 hour")
    for (const address of ["192.0.3.1", "192.0.3.1", "2001:db9::1", "", "unknown"]) {
      expect(yield* Effect.flip(use(key, address))).toMatchObject({ _tag: "WrongAddress", key: record.id, address })
    }
    expect((yield* keys.list({ limit: 100 }))[0]?.lastUsedAt).toBeUndefined()
    for (const address of ["192.0.2.1", "192.0.2.255", "::ffff:192.0.2.7", "2001:db8:5::1"]) {
      expect(yield* use(key, address)).toMatchObject({ id: record.id })
    }
    expect((yield* keys.list({ limit: 100 }))[0]?.lastUsedAt).toBe(3_600_000)
  })

  test("gets another list, or none, at once; its limits too, each separately", function* () {
    const keys = yield* Keys
    const { key, record } = yield* keys.create(terms)
    expect(yield* use(key, "192.0.2.1")).toBeDefined()
    expect(yield* keys.change(record.id, { ips: ["198.51.100.1/32"] })).toEqual({
      ...record,
      ips: ["198.51.100.1/32"]
    })
    expect(yield* Effect.flip(use(key, "192.0.2.1"))).toMatchObject({ _tag: "WrongAddress" })
    expect(yield* use(key, "198.51.100.1")).toMatchObject({ perMinute: 600, perHour: 20_000 })
    yield* keys.change(record.id, { perMinute: undefined })
    expect(yield* use(key, "198.51.100.1")).toMatchObject({ perMinute: undefined, perHour: 20_000 })
    yield* keys.change(record.id, { ips: [], perHour: 5 })
    expect(yield* use(key, "203.0.113.1")).toMatchObject({ ips: [], perMinute: undefined, perHour: 5 })
  })

  clockTest("is logged when it is used from another one, by its id, and at most once a minute", function* () {
    const logged: Array<object> = []
    const logger = Logger.make(
      ({ annotations }) => void logged.push(Object.fromEntries(HashMap.toEntries(annotations)))
    )
    yield* Effect.gen(function* () {
      const keys = yield* Keys
      const { key, record } = yield* keys.create(terms)
      const other = yield* keys.create(terms)
      const authenticate = yield* makeAuthenticate
      const from = (address: string, used = key) =>
        Effect.flip(authenticate(Redacted.value(used), () => address, Effect.fail))
      yield* from("203.0.113.1")
      yield* TestClock.adjust("59 seconds")
      yield* from("203.0.113.2")
      yield* from("203.0.113.3", other.key)
      yield* TestClock.adjust("1 second")
      yield* from("203.0.113.4")
      expect(logged).toEqual([
        { key: record.id, address: "203.0.113.1" },
        { key: other.record.id, address: "203.0.113.3", omitted: 1 },
        { key: record.id, address: "203.0.113.4" }
      ])
    }).pipe(Effect.provide(Layer.merge(auth, Logger.replace(Logger.defaultLogger, logger))))
  })
})

describe("the last use of a key", () => {
  clockTest(
    "is written at most once a minute and at the end of the layer, and is not lost by a full disk",
    function* () {
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
    }
  )
})
