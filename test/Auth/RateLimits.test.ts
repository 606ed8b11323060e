import { expect, it } from "@effect/vitest"
import { Duration, Effect, Layer, TestClock } from "effect"
import { defaultAccount } from "../../src/Auth/Accounts.ts"
import { Accounts, Keys, RateLimits } from "../../src/Auth.ts"
import type { ApiKey, KeyTerms } from "../../src/Domain/ApiKey.ts"
import { newApiKeyId } from "../../src/Domain/Ids.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import * as Sql from "../../src/Sql.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { refusingWriter, rows, storeAccount, temporaryDatabase } from "../lib/store.ts"

const limits = { perMinute: 3, perHour: 5 }

const life = (path: string, refuses = () => false) =>
  Effect.provide(
    RateLimits.layer.pipe(
      Layer.provide(refusingWriter(refuses)),
      Layer.provideMerge(Layer.merge(Keys.layer, Accounts.layer)),
      Layer.provide(testSettingsLayer(path, { limits })),
      Layer.provideMerge(Sql.layer(path))
    )
  )

const inOneLife = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.flatMap(temporaryDatabase, (path) => life(path)(test))

const makeKey = (own: Partial<KeyTerms & Pick<ApiKey, "mode">> = {}) =>
  Effect.gen(function* () {
    yield* storeAccount
    const keys = yield* Keys
    const request = { account: defaultAccount, mode: "test" as const, name: "shop", permissions: [], ...own }
    return (yield* keys.create({ ...request, expiresIn: undefined })).record
  })

const spendNow = (key: ApiKey) =>
  Effect.gen(function* () {
    const rateLimits = yield* RateLimits
    const { allowed, remaining } = rateLimits.spend(key, (yield* Effect.clock).unsafeCurrentTimeMillis())
    return [allowed, remaining]
  })

const stored = rows("SELECT of_id FROM rate_windows ORDER BY of_id")

it.scoped("the used requests of a key survive a restart, and are deleted after its hour", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const key = yield* Effect.gen(function* () {
      const made = yield* makeKey()
      expect(yield* spendNow(made)).toEqual([true, 2])
      expect(yield* spendNow(made)).toEqual([true, 1])
      return made
    }).pipe(life(path))
    yield* Effect.gen(function* () {
      expect(yield* spendNow(key)).toEqual([true, 0])
      expect(yield* spendNow(key)).toEqual([false, 0])
    }).pipe(life(path))
    yield* TestClock.adjust("1 hour")
    expect(yield* stored.pipe(life(path))).toEqual([{ of_id: "default/test//" }, { of_id: key.id }])
    yield* Effect.gen(function* () {
      expect(yield* stored).toEqual([])
      expect(yield* spendNow(key)).toEqual([true, 2])
    }).pipe(life(path))
  })
)

it.scoped("used requests are stored within a second, or as soon as a full disk has room again", () =>
  Effect.gen(function* () {
    let refused = 0
    let isFull = true
    const refuses = () => {
      if (isFull) refused++
      return isFull
    }
    yield* Effect.gen(function* () {
      const key = yield* makeKey()
      yield* Effect.forkScoped((yield* RateLimits).run)
      yield* TestClock.adjust("100 millis")
      yield* spendNow(key)
      yield* TestClock.adjust("1 second")
      expect(refused).toBe(1)
      isFull = false
      yield* TestClock.adjust("1 second")
      yield* Effect.repeat(Effect.zipRight(eventLoopTurn, stored), { until: (found) => found.length === 2 })
    }).pipe(life(yield* temporaryDatabase, refuses), Effect.scoped)
  })
)

it.scoped("a key has its own limits if any were set, otherwise the configured ones", () =>
  Effect.gen(function* () {
    yield* Effect.gen(function* () {
      const above = yield* makeKey({ perMinute: 4 })
      expect(yield* Effect.replicateEffect(spendNow(above), 5)).toEqual([
        [true, 3],
        [true, 2],
        [true, 1],
        [true, 0],
        [false, 0]
      ])
      // The configured limit of its hour.
      yield* TestClock.adjust("1 minute")
      expect(yield* Effect.replicateEffect(spendNow(above), 2)).toEqual([
        [true, 0],
        [false, 0]
      ])
      const below = yield* makeKey({ perMinute: 2, perHour: 1 })
      expect(yield* Effect.replicateEffect(spendNow(below), 2)).toEqual([
        [true, 0],
        [false, 0]
      ])
      const keys = yield* Keys
      const changed = yield* keys.change(below.id, { perHour: 3 })
      expect(yield* Effect.replicateEffect(spendNow({ ...below, ...changed }), 2)).toEqual([
        [true, 0],
        [false, 0]
      ])
    }).pipe(life(yield* temporaryDatabase))
  })
)

it.scoped("several keys have the account's limit together, across a restart, and the operator sets it at once", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const spent = (keys: ReadonlyArray<ApiKey>) =>
      Effect.forEach(keys, (key) => Effect.map(spendNow(key), ([allowed]) => allowed), { concurrency: 1 })
    const keys = yield* Effect.gen(function* () {
      const made = yield* Effect.replicateEffect(makeKey(), 12)
      // Ten times a key's three requests a minute, by keys none of which has used up its own.
      expect(yield* spent([...made, ...made])).toEqual(Array.from({ length: 24 }, () => true))
      return made
    }).pipe(life(path))
    yield* Effect.gen(function* () {
      expect(yield* spent(keys)).toEqual([
        ...Array.from({ length: 6 }, () => true),
        ...Array.from({ length: 6 }, () => false)
      ])
      const [last] = keys.slice(-1)
      if (last === undefined) throw new Error("there is no key")
      const rateLimits = yield* RateLimits
      const now = (yield* Effect.clock).unsafeCurrentTimeMillis()
      expect(rateLimits.spend(last, now)).toMatchObject({ of: "account", window: "minute", limit: 30, remaining: 0 })
      const accounts = yield* Accounts
      yield* accounts.change(defaultAccount, { perMinute: 31 })
      expect(yield* spent([last, last])).toEqual([true, false])
      yield* accounts.change(defaultAccount, { perMinute: 1_000, perHour: 32 })
      expect(rateLimits.spend({ ...last, id: (yield* makeKey()).id }, now)).toMatchObject({ allowed: true })
      expect(rateLimits.spend(last, now)).toMatchObject({ allowed: false, of: "account", window: "hour", limit: 32 })
    }).pipe(life(path))
    // What the operator set holds after a restart too.
    yield* Effect.gen(function* () {
      expect((yield* Accounts).termsOf(defaultAccount)).toMatchObject({ perMinute: 1_000, perHour: 32 })
    }).pipe(life(path))
  })
)

it.scoped("test requests do not count towards the live limit, whichever keys make them", () =>
  Effect.gen(function* () {
    const ofTest = yield* Effect.replicateEffect(makeKey(), 12)
    for (const key of [...ofTest, ...ofTest, ...ofTest]) yield* spendNow(key)
    expect(yield* spendNow(yield* makeKey())).toEqual([false, 0])
    const live = yield* Effect.replicateEffect(makeKey({ mode: "live" }), 11)
    const verdicts = yield* Effect.forEach([...live, ...live, ...live], spendNow)
    expect(verdicts.filter(([allowed]) => allowed)).toHaveLength(30)
  }).pipe(inOneLife)
)

it.scoped("a key with a higher limit than its account may use it, beside the account's other keys", () =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const keys = yield* Keys
    const key = yield* makeKey({ perMinute: 40, perHour: 60 })
    const allowedOf = (key: ApiKey, count: number) =>
      Effect.map(
        Effect.replicateEffect(spendNow(key), count),
        (verdicts) => verdicts.filter(([allowed]) => allowed).length
      )
    expect(yield* allowedOf(key, 41)).toBe(40)
    // Its requests and the others' are counted separately: each has its three, up to thirty together.
    const others = yield* Effect.replicateEffect(makeKey(), 11)
    expect(yield* Effect.forEach(others, (other) => allowedOf(other, 4))).toEqual([...Array(10).fill(3), 0])
    const another = yield* makeKey({ perMinute: 4 })
    expect(yield* allowedOf(another, 5)).toBe(4)
    // A rolled key counts once, not twice.
    const rolled = yield* keys.roll(key.id, newApiKeyId(), Duration.hours(1))
    if (rolled === undefined) throw new Error("there is no key")
    expect(yield* spendNow(rolled.record)).toEqual([false, 0])
    // Set for the account itself, it holds for all of its keys.
    yield* accounts.change(defaultAccount, { perMinute: 2 })
    yield* TestClock.adjust("1 minute")
    expect((yield* Effect.replicateEffect(spendNow(key), 3)).map(([allowed]) => allowed)).toEqual([true, true, false])
  }).pipe(inOneLife)
)

it.scoped.each([{ perMinute: 2 }, { perHour: 2 }])("an account's limit holds for all its keys together: %j", (said) =>
  Effect.gen(function* () {
    const given = yield* makeKey({ perMinute: 40, perHour: 60 })
    const keys = [given, yield* makeKey(), yield* makeKey({ perMinute: 4 })]
    yield* Effect.flatMap(Accounts, (accounts) => accounts.change(defaultAccount, said))
    const verdicts = yield* Effect.forEach(keys, spendNow, { concurrency: 1 })
    expect(verdicts.map(([allowed]) => allowed)).toEqual([true, true, false])
  }).pipe(inOneLife)
)
