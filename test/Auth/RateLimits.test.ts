import { expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { defaultAccount } from "../../src/Auth/Accounts.ts"
import { Keys, RateLimits } from "../../src/Auth.ts"
import type { ApiKey, KeyTerms } from "../../src/Domain/ApiKey.ts"
import { eventLoopTurn } from "../../src/Sql/eventLoopTurn.ts"
import * as Sql from "../../src/Sql.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { refusingWriter, rows, storeAccount, temporaryDatabase } from "../lib/store.ts"

const limits = { perMinute: 3, perHour: 5 }

const life = (path: string, refuses = () => false) =>
  Effect.provide(
    RateLimits.layer.pipe(
      Layer.provide(refusingWriter(refuses)),
      Layer.provideMerge(Keys.layer),
      Layer.provide(testSettingsLayer(path, { limits })),
      Layer.provideMerge(Sql.layer(path))
    )
  )

const makeKey = (own: Partial<KeyTerms> = {}) =>
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

const stored = rows("SELECT key_id FROM rate_windows")

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
    expect(yield* stored.pipe(life(path))).toHaveLength(1)
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
      yield* Effect.repeat(Effect.zipRight(eventLoopTurn, stored), { until: (found) => found.length === 1 })
    }).pipe(life(yield* temporaryDatabase, refuses), Effect.scoped)
  })
)

it.scoped("a key has its own limits where it was given any, and the configured ones where not", () =>
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
