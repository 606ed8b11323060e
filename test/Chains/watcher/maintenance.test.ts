import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, TestClock } from "effect"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import { Reader } from "../../../src/Sql.ts"
import { direct } from "../balances/BalanceModel.ts"
import { alice, bob, inStore, owe, owing, refusing, scan, scanTo } from "../balances/reconcileWorld.ts"
import { errorOf } from "../providing.ts"
import { distorted } from "../twisted.ts"
import { runSql } from "../world.ts"
import { choring, kept } from "./maintaining.ts"

const checked = Effect.map(scan, (found) => found?.checked?.number)
const stored = Effect.flatMap(Reader, (reader) =>
  Effect.map(reader.all<{ number: number }>("SELECT number FROM blocks ORDER BY number"), (rows) =>
    rows.map(({ number }) => number)
  )
)
const quiet = Effect.provide(Logger.remove(Logger.defaultLogger))

describe("a round of balance reconciliation", () => {
  it.scoped("waits for two rounds for an address whose money cannot be attributed, and then stores it once", () =>
    Effect.gen(function* () {
      const model = yield* owing("third", alice, bob)
      const bad = refusing(model, () => [1])
      const { next } = yield* choring(model, bad, bad)
      yield* next(direct(alice, 5n))
      yield* next(direct(bob, 6n))
      expect(yield* kept).toEqual([[bob, "tx:0", "6"]])
      expect(yield* checked).toBeUndefined()
      yield* next()
      expect(yield* kept).toEqual([
        [bob, "tx:0", "6"],
        [alice, "unattributed", "5"]
      ])
      expect(yield* checked).toBe(3)
    }).pipe(quiet, inStore)
  )

  it.scoped("restarts the count when the money of the address could be attributed", () =>
    Effect.gen(function* () {
      const model = yield* owing("anew", alice)
      let bad = [1]
      const { next } = yield* choring(
        model,
        refusing(model, () => bad)
      )
      yield* next(direct(alice, 5n))
      yield* next()
      bad = []
      yield* next()
      bad = [4]
      yield* next(direct(alice, 6n))
      yield* next()
      expect(yield* kept).toEqual([[alice, "tx:0", "5"]])
      expect(yield* checked).toBe(3)
      yield* next()
      expect(yield* kept).toEqual([
        [alice, "tx:0", "5"],
        [alice, "unattributed", "6"]
      ])
    }).pipe(quiet, inStore)
  )

  it.scoped("stores the reports of the first provider if the other one fails, and that one goes into cooldown", () =>
    Effect.gen(function* () {
      const model = yield* owing("trouble", alice, bob)
      const down: RpcClient = { ...model.client, send: () => errorOf("down", "timeout") }
      const { aside, next } = yield* choring(
        model,
        refusing(model, () => [1]),
        down
      )
      model.mine([direct(alice, 5n)])
      yield* next(direct(bob, 6n))
      expect(yield* kept).toEqual([[bob, "tx:0", "6"]])
      expect(yield* checked).toBeUndefined()
      expect(aside).toEqual(["timeout"])
    }).pipe(quiet, inStore)
  )

  it.scoped("runs at once at a payment's deadline, otherwise at its interval", () =>
    Effect.gen(function* () {
      const model = yield* owing("pace")
      yield* owe(alice, { expiresAt: 100 })
      const { mined, next } = yield* choring(model, model.client)
      yield* next()
      expect(yield* checked).toBe(1)
      yield* mined([direct(alice, 5n)])
      expect(yield* checked).toBe(1)
      yield* mined([], 161)
      expect(yield* checked).toBe(3)
      expect(yield* kept).toEqual([[alice, "tx:0", "5"]])
    }).pipe(quiet, inStore)
  )
})

describe("an error during maintenance", () => {
  it.scoped(
    "puts its provider into cooldown if it concerns the whole provider, is reported, and stops no other task",
    () =>
      Effect.gen(function* () {
        const model = yield* owing("error", alice)
        for (const [reason, expected] of [
          ["refused", []],
          ["timeout", ["timeout"]]
        ] as const) {
          const failing: RpcClient = {
            ...model.client,
            send: (calls) =>
              calls.some(({ method }) => method === "eth_call" || method === "eth_getBalance")
                ? errorOf("model", reason)
                : model.client.send(calls)
          }
          const { aside, mined } = yield* choring(model, failing)
          yield* runSql("UPDATE scans SET verified_number = 20000")
          yield* runSql("INSERT INTO blocks (chain, mode, number, hash, time) VALUES ('base', 'test', 999, '0x', 1)")
          expect(yield* mined([direct(alice, 5n)])).toContain(reason)
          expect(aside).toEqual(expected)
          expect(yield* stored).not.toContain(999)
        }
      }).pipe(quiet, inStore)
  )
})

it.scoped("after the clock was set back, a periodic task runs at once, and then at its interval", () =>
  Effect.gen(function* () {
    const model = yield* owing("clock", alice)
    const day = 86_400_000
    yield* owe(bob, { endedAt: 49 * day })
    yield* TestClock.setTime(50 * day)
    const asked: Array<unknown> = []
    const { client } = model
    const noting: RpcClient = {
      ...client,
      send: (calls) => {
        asked.push(...calls.map(({ params: [first] }) => first))
        return client.send(
          calls.map((call) => (call.params[0] === "finalized" ? { ...call, params: ["latest"] } : call))
        )
      }
    }
    const { mined } = yield* choring(model, noting)
    yield* mined([])
    // Addresses that a lost copy may have assigned come last.
    yield* mined([])
    yield* TestClock.setTime(45 * day)
    asked.splice(0)
    yield* mined([direct(alice, 5n), direct(bob, 6n)])
    expect(yield* kept).toEqual([
      [alice, "tx:0", "5"],
      [bob, "tx:1", "6"]
    ])
    expect(asked).toContain("finalized")
    yield* mined([])
    asked.splice(0)
    yield* mined([direct(alice, 7n), direct(bob, 8n)])
    expect(asked).toEqual([])
  }).pipe(quiet, inStore)
)

describe("stored blocks", () => {
  it.scoped("are kept down to 10,000 below the last one that is final and verified", () =>
    Effect.gen(function* () {
      const model = yield* owing("old")
      for (const [verified, finalized] of [
        [30_000, 15_000],
        [15_000, 30_000],
        [15_000, null]
      ] as const) {
        yield* runSql("UPDATE scans SET verified_number = ?, finalized_number = ?", [verified, finalized])
        for (const number of [4_999, 5_000, 6_000]) {
          yield* runSql(
            "INSERT INTO blocks (chain, mode, number, hash, time) VALUES ('base', 'test', ?, '0x', 1) ON CONFLICT DO NOTHING",
            [number]
          )
        }
        const { mined } = yield* choring(model, model.client)
        yield* mined([])
        expect((yield* stored).slice(-2)).toEqual([5_000, 6_000])
      }
    }).pipe(quiet, inStore)
  )

  it.scoped("are examined in pages, one a round, until the last one", () =>
    Effect.gen(function* () {
      const model = yield* owing("pages")
      yield* runSql("UPDATE scans SET verified_number = 30000")
      yield* runSql(
        `INSERT INTO blocks (chain, mode, number, hash, time)
         WITH RECURSIVE n (i) AS (SELECT 101 UNION ALL SELECT i + 1 FROM n WHERE i < 2600)
         SELECT 'base', 'test', i, '0x', 1 FROM n`
      )
      const { mined } = yield* choring(model, model.client)
      const left: Array<number> = []
      for (let round = 0; round < 3; round++) {
        yield* mined([])
        left.push((yield* stored).filter((number) => number > 100).length)
      }
      // The first page has two more blocks below.
      expect(left).toEqual([1_502, 502, 0])
    }).pipe(quiet, inStore)
  )

  it.scoped.each([
    ["has just got its confirmations, at a payment's deadline", false, [1, 4, 6]],
    ["belongs to the branch that was read", true, [1, 6]]
  ] as const)("include the one that %s", ([, replaced, kept]) =>
    Effect.gen(function* () {
      const model = yield* owing("settled")
      yield* owe(alice, { expiresAt: 100 })
      const { mined, run } = yield* choring(model, model.client)
      yield* mined([])
      for (const time of [150, 170, 180, 190, 200]) model.mine([], time)
      yield* scanTo(model.head)
      const at = model.head
      if (replaced) {
        model.rollback(3)
        for (const time of [181, 191, 201]) model.mine([], time)
      }
      yield* run(at)
      expect((yield* stored).slice(-kept.length)).toEqual(kept)
    }).pipe(quiet, inStore)
  )
})

describe("the sweeps of ended payments", () => {
  const address = (n: number) => `0x${n.toString(16).padStart(40, "0")}`

  it.scoped("compare nonces after a start and every six hours, also where the daily one of all comes in between", () =>
    Effect.gen(function* () {
      const model = yield* owing("nonces")
      yield* TestClock.adjust("4 days")
      yield* owe(address(0), { endedAt: 4 * 86_400_000 - 3_600_000 })
      let asked = 0
      const counting = distorted(model.client, ({ method, params: [of] }, answer) => {
        if (method === "eth_getTransactionCount" && of === address(0)) asked++
        return answer
      })
      const { mined } = yield* choring(model, counting)
      for (const [time, expected] of [
        ["0 hours", 1],
        ["5 hours", 1],
        ["1 hours", 2],
        ["18 hours", 3]
      ] as const) {
        yield* TestClock.adjust(time)
        // The sweep that is due, and the one of nonces that it does not stand for.
        yield* mined([])
        yield* mined([])
        expect(asked, time).toBe(expected)
      }
    }).pipe(inStore)
  )

  const lost = Effect.fnUntraced(function* (which: string) {
    yield* runSql("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 1000, 0)", [which])
    // It has been checked once before, when it was skipped.
    yield* runSql("INSERT INTO gap_looks SELECT DISTINCT chain, ? FROM scans", [which])
  })

  it.scoped(
    "find what comes late in 10 minutes within the first hour, in an hour within a day, and in a day later",
    () =>
      Effect.gen(function* () {
        const model = yield* owing("late")
        yield* TestClock.adjust("4 days")
        const now = 4 * 86_400_000
        for (const [n, hoursAgo] of [1, 24, 26].entries())
          yield* owe(address(n), { endedAt: now - hoursAgo * 3_600_000 })
        const { mined } = yield* choring(model, model.client)
        yield* mined([])
        yield* mined([])
        yield* mined([0, 1, 2].map((n) => direct(address(n), 5n)))
        const found = Effect.map(kept, (all) => all.map(([to]) => to))
        expect(yield* found).toEqual([])
        for (const [time, expected] of [
          ["9 minutes", []],
          ["1 minutes", [address(0)]],
          ["49 minutes", [address(0)]],
          ["1 minutes", [address(0), address(1)]],
          ["22 hours", [address(0), address(1)]],
          ["1 hours", [address(0), address(1), address(2)]]
        ] as const) {
          yield* TestClock.adjust(time)
          yield* mined([])
          expect(yield* found, time).toEqual(expected)
        }
      }).pipe(quiet, inStore)
  )

  it.scoped("ask the next provider each time, by each of their intervals", () =>
    Effect.gen(function* () {
      const model = yield* owing("turns")
      yield* TestClock.adjust("4 days")
      // Old enough for the sweep of each hour, and not for those in between.
      yield* owe(address(1), { endedAt: 4 * 86_400_000 - 5 * 3_600_000 })
      const asked: Array<number> = []
      const by = (index: number): RpcClient => ({
        ...model.client,
        send: (calls) => {
          if (calls.some(({ method }) => method === "eth_call")) asked.push(index)
          return model.client.send(calls)
        }
      })
      const { mined } = yield* choring(model, by(0), by(1))
      yield* mined([])
      yield* mined([])
      asked.length = 0
      for (let minutes = 0; minutes < 240; minutes += 10) {
        yield* TestClock.adjust("10 minutes")
        yield* mined([])
      }
      expect(asked).toEqual([1, 0, 1, 0])
    }).pipe(quiet, inStore)
  )

  it.scoped("continue with the page that failed, and once a day with skipped addresses", () =>
    Effect.gen(function* () {
      const model = yield* owing("sweep")
      const day = 86_400_000
      yield* TestClock.adjust("4 days")
      yield* owe(address(1), { endedAt: 1 })
      yield* owe(address(2), { endedAt: 2.5 * day })
      yield* lost(address(3))
      let failure: RpcReason | undefined = "refused"
      const moody: RpcClient = {
        ...model.client,
        send: (calls) => (failure === undefined ? model.client.send(calls) : errorOf("model", failure))
      }
      const { mined } = yield* choring(model, moody)
      expect(yield* mined([1, 2, 3].map((n) => direct(address(n), BigInt(n))))).toBeDefined()
      expect(yield* kept).toEqual([])
      failure = undefined
      yield* mined([])
      expect(yield* kept).toEqual([[address(2), "tx:1", "2"]])
      yield* mined([])
      expect(yield* kept).toHaveLength(2)
      // Not before the next day; the first payment is still too old.
      yield* mined([direct(address(2), 4n), direct(address(3), 4n)])
      yield* mined([])
      expect(yield* kept).toHaveLength(2)
      yield* TestClock.adjust("1 day")
      yield* mined([])
      yield* mined([])
      expect((yield* kept).map(([to, , amount]) => [to, amount])).toEqual([
        [address(2), "2"],
        [address(3), "3"],
        [address(2), "4"],
        [address(3), "4"]
      ])
      expect(yield* checked).toBeUndefined()
    }).pipe(quiet, inStore)
  )
})
