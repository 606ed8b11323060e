import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer, type Scope, TestClock } from "effect"
import { WatchedAddresses } from "../../../src/Chains/ledger/WatchedAddresses.ts"
import type { Mode } from "../../../src/Domain/Chain.ts"
import { change } from "../../lib/rows.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { address, inWorld } from "../around.ts"
import { modelRpc } from "../ModelChain.ts"
import { end, notingSettlement, pay, until, watch, world } from "../world.ts"

const day = 24 * 3_600_000
type World = Layer.Layer.Success<ReturnType<typeof at>> | Scope.Scope
const at = (path: string) => world(path, [], modelRpc({}), notingSettlement)

/** Two runs of the daemon on one database. */
const runs = <E, E2>(first: Effect.Effect<void, E, World>, second: Effect.Effect<void, E2, World>) =>
  Effect.flatMap(temporaryDatabase, (path) =>
    Effect.zipRight(Effect.provide(first, at(path)), Effect.provide(second, at(path)))
  )

const skip = (n: number, mode: Mode, skippedAt: number) =>
  change("INSERT INTO gap_addresses VALUES (?, ?, 'w', ?, ?)", address(n), mode, 100 + n, skippedAt)
const watchedOf = (of: ReadonlyArray<number>) =>
  Effect.map(WatchedAddresses, (matchSet) => of.filter((n) => matchSet.has("test", address(n).toLowerCase())))

describe("WatchedAddresses", () => {
  it.scoped("holds open payments and those that ended within the late window, by mode, also after a restart", () =>
    Effect.zipRight(
      TestClock.adjust("100 days"),
      runs(
        Effect.gen(function* () {
          const watched = yield* WatchedAddresses
          for (const n of [1, 2, 3]) yield* pay(address(n), { chain: n === 2 ? "base" : "ethereum" })
          const late = yield* pay(address(4))
          const gone = yield* pay(address(5))
          yield* pay(address(6), { mode: "live" })
          yield* end(late.id, 97 * day + 1)
          yield* end(gone.id, 97 * day)
          expect([watched.size("test"), watched.size("live")]).toEqual([5, 1])
          expect(watched.has("live", address(6))).toBe(true)
          expect(watched.has("live", address(1))).toBe(false)
        }),
        Effect.gen(function* () {
          expect(yield* watchedOf([1, 2, 3, 4, 5, 6])).toEqual([1, 2, 3, 4])
          expect((yield* WatchedAddresses).size("live")).toBe(1)
        })
      )
    )
  )

  it.scoped("removes addresses within an hour of the end of their late window", () =>
    Effect.gen(function* () {
      const watched = yield* WatchedAddresses
      const payments = yield* Effect.forEach([1, 2, 3], (n) => pay(address(n)), { concurrency: 1 })
      yield* watch
      for (const [i, { id }] of payments.slice(0, 2).entries()) yield* end(id, i * day)
      yield* TestClock.adjust("3 days")
      yield* TestClock.adjust("1 hour")
      yield* until(watchedOf([1, 2, 3]), (found) => found.length === 2)
      expect(yield* watchedOf([1, 2, 3])).toEqual([2, 3])
      yield* TestClock.adjust("1 day")
      yield* until(watchedOf([1, 2, 3]), (found) => found.length === 1)
      expect(yield* watchedOf([3])).toEqual([3])
      watched.remove("test", address(3))
      expect(watched.size("test")).toBe(0)
    }).pipe(inWorld)
  )

  it.scoped("loads more payments than one page holds", () => {
    const many = 20_050
    return Effect.zipRight(
      TestClock.adjust("40 days"),
      runs(
        Effect.gen(function* () {
          yield* pay(address(0xa))
          // Nearly all end in the same millisecond: no page may lose one of them. The addresses are decimal digits only.
          yield* change(
            `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${many - 1})
             INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address,
               wallet, wallet_index, status, created_at, expires_at, metadata, ended_at)
             SELECT 'p' || n, n, 'default', 'test', 'm' || n, '1', 'ETH', 'ethereum', printf('0x%040d', n), 'w', n,
               'expired', 0, 0, '{}', ${39 * day} + iif(n > 10000, 1, 0) FROM numbers`
          )
        }),
        Effect.map(WatchedAddresses, ({ size }) => expect(size("test")).toBe(many))
      )
    )
  })
})

it.scoped("a skipped address is watched, in its own mode, for the late window", () =>
  Effect.zipRight(
    TestClock.adjust("100 days"),
    runs(
      Effect.gen(function* () {
        yield* pay(address(9))
        yield* skip(1, "test", 97 * day)
        yield* skip(2, "test", 98 * day)
        yield* skip(3, "live", 98 * day)
      }),
      Effect.gen(function* () {
        const watched = yield* WatchedAddresses
        expect(yield* watchedOf([1, 2, 3])).toEqual([2])
        expect(watched.has("live", address(3))).toBe(true)
        yield* watch
        yield* TestClock.adjust("25 hours")
        yield* until(
          Effect.sync(() => watched.has("test", address(2)) || watched.has("live", address(3))),
          (isWatched) => !isWatched
        )
      })
    )
  )
)

/** A chain of the test mode has been read up to a block of that time, Unix milliseconds. */
const readUntil = (time: number) =>
  change(
    `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
     VALUES ('ethereum', 'test', 0, 1, '0x1', ?, 0) ON CONFLICT (chain, mode) DO UPDATE SET head_time = excluded.head_time`,
    time / 1000
  )

it.scoped("a clock that is 31 days ahead removes no address, at a start and while the daemon runs", () =>
  Effect.zipRight(
    TestClock.setTime(100 * day),
    runs(
      Effect.gen(function* () {
        const ended = yield* pay(address(1))
        yield* end(ended.id, 99 * day)
        yield* skip(2, "test", 99 * day)
        yield* readUntil(100 * day)
        yield* TestClock.setTime(131 * day)
      }),
      Effect.gen(function* () {
        expect(yield* watchedOf([1, 2])).toEqual([1, 2])
        yield* pay(address(3))
        yield* watch
        yield* TestClock.adjust("1 hour")
        // The hourly round has come to its end when the writer has had a few turns.
        yield* Effect.repeatN(readUntil(100 * day + 3_600_000), 50)
        expect(yield* watchedOf([1, 2, 3])).toEqual([1, 2, 3])
        yield* readUntil(102 * day + 1000)
        yield* TestClock.adjust("1 hour")
        yield* until(watchedOf([1, 2, 3]), (found) => found.length === 1)
        expect(yield* watchedOf([3])).toEqual([3])
      })
    )
  )
)
