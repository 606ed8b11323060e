import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, HashMap, Layer, Logger, Redacted, TestClock } from "effect"
import { makeAuthenticate } from "../../src/Auth/authenticate.ts"
import { Accounts, defaultAccount, Keys, type NewKey } from "../../src/Auth.ts"
import { type ApiKeyId, newApiKeyId } from "../../src/Domain/Ids.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { rows, tempStore } from "../lib/store.ts"

const auth = Keys.layer.pipe(
  Layer.provideMerge(Accounts.layer),
  Layer.provideMerge(tempStore),
  Layer.provide(testSettingsLayer(""))
)

const wanted: NewKey = {
  account: defaultAccount,
  mode: "live",
  name: "shop",
  permissions: ["payments:read", "quotes:read"],
  expiresIn: undefined,
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
  it.effect("works until the overlap is over, beside a new one with the same terms", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const former = yield* keys.create(wanted)
      yield* TestClock.adjust("1 hour")
      const { key, record } = yield* roll(former.record.id)
      expect(Redacted.value(key)).toMatch(/^svc_live_/)
      const { expiresIn: _, ...same } = wanted
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
    }).pipe(Effect.provide(auth))
  )

  it.effect("is invalid before the roll returns if there is no overlap, also when the clock is set back", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const former = yield* keys.create(wanted)
      yield* TestClock.adjust("1 hour")
      // In memory from now on.
      expect(yield* works(former.key)).toBe(true)
      const { key } = yield* roll(former.record.id, 0)
      expect([yield* works(former.key), yield* works(key)]).toEqual([false, true])
      yield* TestClock.setTime(0)
      expect(yield* works(former.key)).toBe(false)
    }).pipe(Effect.provide(auth))
  )

  it.effect("expires no later than before, and the new one lasts for its full term", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const former = yield* keys.create({ ...wanted, expiresIn: Duration.days(90) })
      yield* TestClock.adjust("89 days")
      const { record } = yield* roll(former.record.id, "7 days")
      expect(record.expiresAt).toBe((89 + 90) * day)
      const listed = yield* keys.list({ limit: 100 })
      expect(listed.find(({ id }) => id === former.record.id)?.expiresAt).toBe(90 * day)
    }).pipe(Effect.provide(auth))
  )

  it.effect("is not rolled again: its replacement is", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const first = (yield* keys.create(wanted)).record.id
      const second = (yield* roll(first)).record.id
      expect(yield* refusal(first)).toBe(
        `Key ${first} was rolled to ${second}: roll that one, or end ${first} with tilld keys revoke ${first}`
      )
      const third = yield* roll(second)
      expect(yield* works(third.key)).toBe(true)
      expect(yield* rows("SELECT id FROM api_keys")).toHaveLength(3)
    }).pipe(Effect.provide(auth))
  )

  it.effect("by two concurrent commands is rolled by one of them", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const { id } = (yield* keys.create(wanted)).record
      const tried = yield* Effect.all([roll(id), roll(id)], { mode: "either", concurrency: 2 })
      expect(tried.map(({ _tag }) => _tag).toSorted()).toEqual(["Left", "Right"])
      expect(yield* rows("SELECT id FROM api_keys")).toHaveLength(2)
    }).pipe(Effect.provide(auth))
  )
})

it.effect("an expired key is neither rolled nor changed, and an unknown key is not found", () =>
  Effect.gen(function* () {
    const keys = yield* Keys
    const revoked = (yield* keys.create(wanted)).record.id
    const expired = (yield* keys.create({ ...wanted, expiresIn: Duration.hours(1) })).record.id
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
  }).pipe(Effect.provide(auth))
)

describe("a key with a list of addresses", () => {
  const use = (key: Redacted.Redacted<string>, address: string) =>
    Effect.flatMap(Keys, (keys) => keys.authenticate(Redacted.value(key), () => address))

  it.effect(
    "works from these only, read from the store and from memory, and other attempts do not count as a use",
    () =>
      Effect.gen(function* () {
        const keys = yield* Keys
        const { key, record } = yield* keys.create(wanted)
        yield* TestClock.adjust("1 hour")
        for (const address of ["192.0.3.1", "192.0.3.1", "2001:db9::1", "", "unknown"]) {
          expect(yield* Effect.flip(use(key, address))).toMatchObject({ _tag: "WrongAddress", key: record.id, address })
        }
        expect((yield* keys.list({ limit: 100 }))[0]?.lastUsedAt).toBeUndefined()
        for (const address of ["192.0.2.1", "192.0.2.255", "::ffff:192.0.2.7", "2001:db8:5::1"]) {
          expect(yield* use(key, address)).toMatchObject({ id: record.id })
        }
        expect((yield* keys.list({ limit: 100 }))[0]?.lastUsedAt).toBe(3_600_000)
      }).pipe(Effect.provide(auth))
  )

  it.effect("gets another list, or none, at once; its limits too, each separately", () =>
    Effect.gen(function* () {
      const keys = yield* Keys
      const { key, record } = yield* keys.create(wanted)
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
    }).pipe(Effect.provide(auth))
  )

  it.effect("is logged when it is used from another one, by its id, and at most once a minute", () =>
    Effect.gen(function* () {
      const logged: Array<object> = []
      const logger = Logger.make(
        ({ annotations }) => void logged.push(Object.fromEntries(HashMap.toEntries(annotations)))
      )
      yield* Effect.gen(function* () {
        const keys = yield* Keys
        const { key, record } = yield* keys.create(wanted)
        const other = yield* keys.create(wanted)
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
          { key: other.record.id, address: "203.0.113.3" },
          { key: record.id, address: "203.0.113.4" }
        ])
      }).pipe(Effect.provide(Layer.merge(auth, Logger.replace(Logger.defaultLogger, logger))))
    })
  )
})
