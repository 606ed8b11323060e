import { expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { defaultAccount } from "../../src/Auth/Accounts.ts"
import { Keys, RateLimits } from "../../src/Auth.ts"
import type { ApiKeyId } from "../../src/Domain/Ids.ts"
import { eventLoopTurn } from "../../src/Sql/eventLoopTurn.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"

const limits = { perMinute: 3, perHour: 5 }

const life = (path: string) =>
  Effect.provide(
    Layer.merge(RateLimits.layer, Keys.layer).pipe(
      Layer.provide(testSettingsLayer(path, { limits })),
      Layer.provideMerge(Sql.layer(path))
    )
  )

const makeKey = Effect.gen(function* () {
  const writer = yield* Writer
  const keys = yield* Keys
  yield* writer.write(
    Effect.flatMap(Tx, (tx) =>
      tx.run("INSERT INTO accounts (id, name, created_at) VALUES (?, 'Shop', 0) ON CONFLICT DO NOTHING", [
        defaultAccount
      ])
    )
  )
  const request = {
    account: defaultAccount,
    mode: "test" as const,
    name: "shop",
    permissions: [],
    expiresIn: undefined
  }
  return (yield* keys.create(request)).record.id
})

const spendNow = (key: ApiKeyId) =>
  Effect.gen(function* () {
    const rateLimits = yield* RateLimits
    const { allowed, remaining } = rateLimits.spend(key, (yield* Effect.clock).unsafeCurrentTimeMillis())
    return [allowed, remaining]
  })

const rows = Effect.flatMap(Reader, (reader) => reader.all<{ key_id: string }>("SELECT key_id FROM rate_windows"))

it.scoped("the used requests of a key survive a restart, and are deleted after its hour", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const key = yield* Effect.gen(function* () {
      const made = yield* makeKey
      expect(yield* spendNow(made)).toEqual([true, 2])
      expect(yield* spendNow(made)).toEqual([true, 1])
      return made
    }).pipe(life(path))
    yield* Effect.gen(function* () {
      expect(yield* spendNow(key)).toEqual([true, 0])
      expect(yield* spendNow(key)).toEqual([false, 0])
    }).pipe(life(path))
    yield* TestClock.adjust("1 hour")
    yield* Effect.gen(function* () {
      expect(yield* rows).toHaveLength(1)
    }).pipe(life(path))
    yield* Effect.gen(function* () {
      expect(yield* rows).toEqual([])
      expect(yield* spendNow(key)).toEqual([true, 2])
    }).pipe(life(path))
  })
)

it.scoped("used requests are stored within a second", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const key = yield* makeKey
      const rateLimits = yield* RateLimits
      yield* Effect.forkScoped(rateLimits.run)
      yield* TestClock.adjust("100 millis")
      yield* spendNow(key)
      yield* TestClock.adjust("1 second")
      yield* Effect.repeat(Effect.zipRight(eventLoopTurn, rows), { until: (found) => found.length === 1 })
    }).pipe(life(path), Effect.scoped)
  })
)
