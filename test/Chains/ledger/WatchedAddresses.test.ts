import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { getAddress, type Hex } from "viem"
import { WatchedAddresses } from "../../../src/Chains/ledger/WatchedAddresses.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { modelRpc } from "../ModelChain.ts"
import { end, notingSettlement, pay, until, watch, world } from "../world.ts"

const address = (n: number): string => getAddress(`0x${n.toString(16).padStart(40, "0")}` as Hex)
const day = 24 * 3_600_000
const at = (path: string) => world(path, [], modelRpc({}), notingSettlement)
const watchedOf = (of: ReadonlyArray<number>) =>
  Effect.map(WatchedAddresses, (matchSet) => of.filter((n) => matchSet.has("test", address(n).toLowerCase())))

describe("WatchedAddresses", () => {
  it.scoped(
    "holds open payments and those that ended within the late window, by mode, and is the same after a restart",
    () =>
      Effect.gen(function* () {
        const path = yield* temporaryDatabase
        yield* TestClock.adjust("100 days")
        yield* Effect.gen(function* () {
          const matchSet = yield* WatchedAddresses
          for (const n of [1, 2, 3]) yield* pay(address(n), { chain: n === 2 ? "base" : "ethereum" })
          const late = yield* pay(address(4))
          const gone = yield* pay(address(5))
          yield* pay(address(6), { mode: "live" })
          yield* end(late.id, 97 * day + 1)
          yield* end(gone.id, 97 * day)
          expect(matchSet.size("test")).toBe(5)
          expect(matchSet.size("live")).toBe(1)
          expect(matchSet.has("live", address(6))).toBe(true)
          expect(matchSet.has("live", address(1))).toBe(false)
        }).pipe(Effect.provide(at(path)))
        yield* Effect.gen(function* () {
          expect(yield* watchedOf([1, 2, 3, 4, 5, 6])).toEqual([1, 2, 3, 4])
          expect((yield* WatchedAddresses).size("live")).toBe(1)
        }).pipe(Effect.provide(at(path)))
      })
  )

  it.scoped("removes addresses within an hour of the end of their late window", () =>
    Effect.gen(function* () {
      const path = yield* temporaryDatabase
      yield* Effect.gen(function* () {
        const matchSet = yield* WatchedAddresses
        const payments = yield* Effect.forEach([1, 2, 3], (n) => pay(address(n)), { concurrency: 1 })
        yield* watch
        for (const [i, { id }] of payments.slice(0, 2).entries()) yield* end(id, i * day)
        yield* TestClock.adjust("3 days")
        yield* TestClock.adjust("1 hour")
        yield* until(watchedOf([1, 2, 3]), (watched) => watched.length === 2)
        expect(yield* watchedOf([1, 2, 3])).toEqual([2, 3])
        yield* TestClock.adjust("1 day")
        yield* until(watchedOf([1, 2, 3]), (watched) => watched.length === 1)
        expect(yield* watchedOf([3])).toEqual([3])
        matchSet.remove("test", address(3))
        expect(matchSet.size("test")).toBe(0)
      }).pipe(Effect.provide(at(path)))
    })
  )

  it.scoped("loads more payments than one page holds", () =>
    Effect.gen(function* () {
      const path = yield* temporaryDatabase
      yield* TestClock.adjust("40 days")
      const many = 20_050
      yield* Effect.gen(function* () {
        const writer = yield* Writer
        yield* pay(address(0xa))
        // Nearly all end in the same millisecond: no page may lose one of them. The addresses are decimal digits only.
        yield* writer.write(
          Effect.flatMap(Tx, (tx) =>
            tx.run(
              `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${many - 1})
               INSERT INTO payments (id, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
                 wallet_index, status, created_at, expires_at, metadata, ended_at)
               SELECT 'p' || n, 'default', 'test', 'm' || n, '1', 'ETH', 'ethereum', printf('0x%040d', n), 'w', n,
                 'expired', 0, 0, '{}', ${39 * day} + (n > 10000) FROM numbers`
            )
          )
        )
      }).pipe(Effect.provide(at(path)))
      yield* Effect.gen(function* () {
        expect((yield* WatchedAddresses).size("test")).toBe(many)
      }).pipe(Effect.provide(at(path)))
    })
  )
})

it.scoped("a skipped address is watched, in its own mode, for the late window", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* TestClock.adjust("100 days")
    yield* Effect.gen(function* () {
      const writer = yield* Writer
      yield* pay(address(9))
      const gaps = [
        [1, "test", 97 * day],
        [2, "test", 98 * day],
        [3, "live", 98 * day]
      ] as const
      for (const [n, mode, foundAt] of gaps) {
        yield* writer.write(
          Effect.flatMap(Tx, (tx) =>
            tx.run("INSERT INTO gap_addresses VALUES (?, ?, 'w', ?, ?)", [address(n), mode, 100 + n, foundAt])
          )
        )
      }
    }).pipe(Effect.provide(at(path)))
    yield* Effect.gen(function* () {
      const matchSet = yield* WatchedAddresses
      expect(yield* watchedOf([1, 2, 3])).toEqual([2])
      expect(matchSet.has("live", address(3))).toBe(true)
      yield* watch
      yield* TestClock.adjust("25 hours")
      yield* until(watchedOf([2]), (watched) => watched.length === 0)
      yield* until(
        Effect.sync(() => matchSet.has("live", address(3))),
        (watched) => !watched
      )
    }).pipe(Effect.provide(at(path)))
  })
)

/** A chain of the test mode has been read up to a block of that time, Unix milliseconds. */
const readUntil = (time: number) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.flatMap(Tx, (tx) =>
        tx.run(
          `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
           VALUES ('ethereum', 'test', 0, 1, '0x1', ?, 0) ON CONFLICT DO UPDATE SET head_time = excluded.head_time`,
          [time / 1000]
        )
      )
    )
  )

it.scoped("a clock that is 31 days ahead removes no address, at a start and while the daemon runs", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* TestClock.setTime(100 * day)
    yield* Effect.gen(function* () {
      const ended = yield* pay(address(1))
      yield* end(ended.id, 99 * day)
      const skippedAt = 99 * day
      const writer = yield* Writer
      yield* writer.write(
        Effect.flatMap(Tx, (tx) =>
          tx.run("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 1, ?)", [address(2), skippedAt])
        )
      )
      yield* readUntil(100 * day)
    }).pipe(Effect.provide(at(path)))
    yield* TestClock.setTime(131 * day)
    yield* Effect.gen(function* () {
      expect(yield* watchedOf([1, 2])).toEqual([1, 2])
      yield* pay(address(3))
      yield* watch
      yield* TestClock.adjust("1 hour")
      // The hourly round has come to its end when the writer has had a few turns.
      yield* Effect.repeatN(readUntil(100 * day + 3_600_000), 50)
      expect(yield* watchedOf([1, 2, 3])).toEqual([1, 2, 3])
      yield* readUntil(102 * day + 1000)
      yield* TestClock.adjust("1 hour")
      yield* until(watchedOf([1, 2, 3]), (watched) => watched.length === 1)
      expect(yield* watchedOf([3])).toEqual([3])
    }).pipe(Effect.provide(at(path)))
  })
)
