import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Layer, TestClock } from "effect"
import fc from "fast-check"
import { defaultAccount } from "../../src/Auth/Accounts.ts"
import {
  hourMillis,
  isForgotten,
  minuteMillis,
  type RateLimit,
  spend as spendAll,
  type Usage,
  unused
} from "../../src/Auth/rateLimitWindows.ts"
import { Accounts, Keys, RateLimits } from "../../src/Auth.ts"
import type { ApiKey, KeyTerms } from "../../src/Domain/ApiKey.ts"
import { newApiKeyId } from "../../src/Domain/Ids.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import * as Sql from "../../src/Sql.ts"
import { clockTest, scopedTest } from "../lib/scopedTest.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { refusingWriter, rows, storeAccount, temporaryDatabase } from "../lib/store.ts"

const limits = { perMinute: 3, perHour: 5 }

const lifeAt = (path: string, refuses = () => false) =>
  RateLimits.layer.pipe(
    Layer.provide(refusingWriter(refuses)),
    Layer.provideMerge(Layer.merge(Keys.layer, Accounts.layer)),
    Layer.provide(testSettingsLayer(path, { limits })),
    Layer.provideMerge(Sql.layer(path))
  )

const life = (path: string, refuses?: () => boolean) => Effect.provide(lifeAt(path, refuses))
const oneLife = Layer.unwrapScoped(Effect.map(temporaryDatabase, (path) => lifeAt(path)))
const lifeTest = scopedTest(oneLife)

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

/** Of so many requests one after the other, how many each leaves; "no" for one that is refused. */
const left = (key: ApiKey, count: number) =>
  Effect.map(Effect.replicateEffect(spendNow(key), count), (verdicts) =>
    verdicts.map(([allowed, remaining]) => (allowed ? remaining : "no"))
  )

const stored = rows("SELECT of_id FROM rate_windows ORDER BY of_id")

clockTest("the used requests of a key survive a restart, and are deleted after its hour", function* () {
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

clockTest("used requests are stored within a second, or as soon as a full disk has room again", function* () {
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

lifeTest("a key has its own limits if any were set, otherwise the configured ones", function* () {
  const above = yield* makeKey({ perMinute: 4 })
  expect(yield* left(above, 5)).toEqual([3, 2, 1, 0, "no"])
  // The configured limit of its hour.
  yield* TestClock.adjust("1 minute")
  expect(yield* left(above, 2)).toEqual([0, "no"])
  const below = yield* makeKey({ perMinute: 2, perHour: 1 })
  expect(yield* left(below, 2)).toEqual([0, "no"])
  // What a merchant sets is no more than what the operator gave.
  const given = yield* makeKey({ perMinute: 2 })
  expect(yield* left({ ...given, perMinute: 9 }, 3)).toEqual([1, 0, "no"])
  const keys = yield* Keys
  const changed = yield* keys.change(below.id, { perHour: 3 })
  expect(yield* left({ ...below, ...changed }, 2)).toEqual([0, "no"])
})

clockTest(
  "several keys have the account's limit together, across a restart, and the operator sets it at once",
  function* () {
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
  }
)

lifeTest("test requests do not count towards the live limit, whichever keys make them", function* () {
  const ofTest = yield* Effect.replicateEffect(makeKey(), 12)
  for (const key of [...ofTest, ...ofTest, ...ofTest]) yield* spendNow(key)
  expect(yield* spendNow(yield* makeKey())).toEqual([false, 0])
  const live = yield* Effect.replicateEffect(makeKey({ mode: "live" }), 11)
  const verdicts = yield* Effect.forEach([...live, ...live, ...live], spendNow)
  expect(verdicts.filter(([allowed]) => allowed)).toHaveLength(30)
})

lifeTest("a key with a higher limit than its account may use it, beside the account's other keys", function* () {
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
})

it.scoped.each([{ perMinute: 2 }, { perHour: 2 }])("an account's limit holds for all its keys together: %j", (said) =>
  Effect.gen(function* () {
    const given = yield* makeKey({ perMinute: 40, perHour: 60 })
    const keys = [given, yield* makeKey(), yield* makeKey({ perMinute: 4 })]
    yield* Effect.flatMap(Accounts, (accounts) => accounts.change(defaultAccount, said))
    const verdicts = yield* Effect.forEach(keys, spendNow, { concurrency: 1 })
    expect(verdicts.map(([allowed]) => allowed)).toEqual([true, true, false])
  }).pipe(Effect.provide(oneLife))
)

const start = 1_700_000_000_000

const spend = (usage: Usage, limits: RateLimit, now: number) => spendAll([{ of: "key", usage, limits }], now)

describe("two fixed windows", () => {
  it("begin with the first request, and show the one with fewer requests left", () => {
    const usage = unused()
    const remaining = [0, 1, 2].map((i) => spend(usage, limits, start + i))
    expect(remaining.map((one) => [one.window, one.remaining, one.allowed])).toEqual([
      ["minute", 2, true],
      ["minute", 1, true],
      ["minute", 0, true]
    ])
    expect(spend(usage, limits, start + minuteMillis - 1)).toEqual({
      allowed: false,
      of: "key",
      window: "minute",
      limit: 3,
      remaining: 0,
      resetAt: start + minuteMillis
    })
    // Refusals are not counted, and the next minute begins with its first request.
    const next = start + minuteMillis + 30_000
    expect(spend(usage, limits, next)).toMatchObject({ allowed: true, window: "hour", remaining: 1, limit: 5 })
    expect(spend(usage, limits, next + 1)).toMatchObject({ allowed: true, window: "hour", remaining: 0 })
    expect(spend(usage, limits, next + minuteMillis)).toEqual({
      allowed: false,
      of: "key",
      window: "hour",
      limit: 5,
      remaining: 0,
      resetAt: start + hourMillis
    })
    expect(spend(usage, limits, start + hourMillis)).toMatchObject({ allowed: true, remaining: 2 })
  })

  it("report the one that stays full for longer when both are full", () => {
    const usage = unused()
    for (let i = 0; i < 2; i++) spend(usage, { perMinute: 2, perHour: 2 }, start)
    expect(spend(usage, { perMinute: 2, perHour: 2 }, start)).toMatchObject({ allowed: false, window: "hour" })
  })

  it("restart when the clock is set back, and are deleted once both are over", () => {
    const usage = unused()
    for (let i = 0; i < 3; i++) spend(usage, limits, start)
    expect(spend(usage, limits, start - 1)).toMatchObject({ allowed: true, remaining: 2 })
    expect(isForgotten(usage, start - 1 + hourMillis - 1)).toBe(false)
    expect(isForgotten(usage, start - 1 + hourMillis)).toBe(true)
  })

  it("never accept more requests than their limits", () =>
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 70_000 }), { maxLength: 300, size: "max" }), (gaps) => {
        const usage = unused()
        const passed: Array<number> = []
        let now = start
        for (const gap of gaps) {
          now += gap
          if (spend(usage, { perMinute: 4, perHour: 30 }, now).allowed) passed.push(now)
        }
        // Fixed windows can touch: an interval of one window's length overlaps at most two of them.
        for (const at of passed) {
          expect(passed.filter((other) => other >= at && other < at + minuteMillis).length).toBeLessThanOrEqual(8)
          expect(passed.filter((other) => other >= at && other < at + hourMillis).length).toBeLessThanOrEqual(60)
        }
      })
    ))

  it("of a key and its account count together: a request that one refuses counts in neither", () => {
    const account = { of: "account", usage: unused(), limits: { perMinute: 3, perHour: 100 } } as const
    const keyOf = (perMinute: number) => ({ of: "key", usage: unused(), limits: { perMinute, perHour: 100 } }) as const
    const [one, next] = [keyOf(2), keyOf(2)]
    const ask = (key: typeof one) => {
      const { allowed, of, remaining } = spendAll([key, account], start)
      return [allowed, of, remaining]
    }
    expect([ask(one), ask(one), ask(one)]).toEqual([
      [true, "key", 1],
      [true, "key", 0],
      [false, "key", 0]
    ])
    expect(account.usage.minute.count).toBe(2)
    expect([ask(next), ask(next)]).toEqual([
      [true, "account", 0],
      [false, "account", 0]
    ])
    expect(next.usage.minute.count).toBe(1)
  })
})
