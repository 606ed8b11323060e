import { describe, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { RpcClient, RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import { change, rows } from "../../lib/rows.ts"
import { type BalanceModel, direct, inside } from "../balances/BalanceModel.ts"
import { alice, bob, depsOf, hiding, owe, refusing, round, scan, scanTo } from "../balances/reconcileWorld.ts"
import { failing, story } from "../balances/story.ts"
import { choring, kept } from "./maintaining.ts"

const checked = Effect.map(scan, (found) => found?.checked?.number)
const stored = Effect.map(rows<{ number: number }>("SELECT number FROM blocks ORDER BY number"), (all) =>
  all.map(({ number }) => number)
)
/** A stored block of the network. */
const storing = (number: number) =>
  change(
    "INSERT INTO blocks (chain, mode, number, hash, time) VALUES ('base', 'test', ?, '0x', 1) ON CONFLICT DO NOTHING",
    number
  )
const useless = ({ client }: BalanceModel, reason: RpcReason) => failing(client, () => true, reason)

/** The same node, which shows each call that it gets. */
const heard = ({ client }: BalanceModel, hear: (call: RpcRequest) => void): RpcClient => ({
  ...client,
  send: (calls) => {
    for (const call of calls) hear(call)
    return client.send(calls)
  }
})

describe("a round of balance reconciliation", () => {
  story(
    "waits for two rounds for an address whose money cannot be attributed, and then stores it once",
    [alice, bob],
    function* (model) {
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
    }
  )

  story("restarts the count when the money of the address could be attributed", [alice], function* (model) {
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
    expect([yield* kept, yield* checked]).toEqual([[[alice, "tx:0", "5"]], 3])
    yield* next()
    expect((yield* kept).slice(1)).toEqual([[alice, "unattributed", "6"]])
  })

  story(
    "stores the reports of the first provider if the other one fails, and that one goes into cooldown",
    [alice, bob],
    function* (model) {
      const { aside, next } = yield* choring(
        model,
        refusing(model, () => [1]),
        useless(model, "timeout")
      )
      model.mine([direct(alice, 5n)])
      yield* next(direct(bob, 6n))
      expect([yield* kept, yield* checked, aside]).toEqual([[[bob, "tx:0", "6"]], undefined, ["timeout"]])
    }
  )

  story("does not block other addresses permanently if the other provider fails too", [alice, bob], function* (model) {
    const { next } = yield* choring(
      model,
      refusing(model, () => [1]),
      useless(model, "refused")
    )
    yield* next(direct(alice, 5n))
    yield* next()
    expect(yield* checked).toBeUndefined()
    yield* next()
    expect([yield* kept, yield* checked]).toEqual([[[alice, "unattributed", "5"]], 3])
  })

  story(
    "reads from another provider what one cannot attribute, and stores the reports of both",
    [alice, bob],
    function* (model) {
      const { next } = yield* choring(
        model,
        refusing(model, () => [1]),
        model.client
      )
      model.mine([direct(alice, 5n)])
      yield* next(direct(bob, 6n))
      expect(yield* kept).toEqual([
        [alice, "tx:0", "5"],
        [bob, "tx:0", "6"]
      ])
      expect(yield* checked).toBe(2)
      expect(yield* rows("SELECT address FROM balances WHERE number = 2 ORDER BY address")).toEqual(
        [alice, bob].map((address) => ({ address }))
      )
    }
  )

  for (const [which, refused] of [
    ["both", [2]],
    ["only the other one", [1, 2]]
  ] as const) {
    story(`counts older money once where ${which} can tell its transaction by now`, [alice], function* (model) {
      model.traces = false
      model.mine([direct(alice, 3n), inside(alice, 4n)])
      yield* round(depsOf(hiding(model)), model.head)
      expect(yield* kept).toEqual([[alice, "unattributed", "7"]])
      const { next } = yield* choring(
        model,
        refusing(model, () => refused),
        model.client
      )
      yield* next(direct(alice, 5n))
      expect(yield* kept).toEqual([
        [alice, "tx:0", "3"],
        [alice, "unattributed", "4"],
        [alice, "tx:0", "5"]
      ])
    })
  }

  story("runs at once at a payment's deadline, otherwise at its interval", [], function* (model) {
    yield* owe(alice, { expiresAt: 100 })
    const { mined, next } = yield* choring(model, model.client)
    yield* next()
    expect(yield* checked).toBe(1)
    yield* mined([direct(alice, 5n)])
    expect(yield* checked).toBe(1)
    yield* mined([], 161)
    expect([yield* kept, yield* checked]).toEqual([[[alice, "tx:0", "5"]], 3])
  })
})

const ofBalances = ({ method }: RpcRequest) => method === "eth_call" || method === "eth_getBalance"

story(
  "an error during maintenance puts its provider into cooldown if it concerns all of it, is reported, and stops no other task",
  [alice],
  function* (model) {
    for (const [reason, expected] of [
      ["refused", []],
      ["timeout", ["timeout"]]
    ] as const) {
      const { aside, mined } = yield* choring(model, failing(model.client, ofBalances, reason))
      yield* change("UPDATE scans SET verified_number = 20000")
      yield* storing(999)
      expect(yield* mined([direct(alice, 5n)])).toContain(reason)
      expect(aside).toEqual(expected)
      expect(yield* stored).not.toContain(999)
    }
  }
)

const hour = 3_600_000
const day = 24 * hour

story(
  "after the clock was set back, a periodic task runs at once, and then at its interval",
  [alice],
  function* (model) {
    yield* owe(bob, { endedAt: 49 * day })
    yield* TestClock.setTime(50 * day)
    model.finalized = Number.POSITIVE_INFINITY
    const asked: Array<unknown> = []
    const { mined } = yield* choring(
      model,
      heard(model, ({ params: [first] }) => asked.push(first))
    )
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
  }
)

describe("stored blocks", () => {
  story("are kept down to 10,000 below the last one that is final and verified", [], function* (model) {
    for (const [verified, finalized] of [
      [30_000, 15_000],
      [15_000, 30_000],
      [15_000, null]
    ] as const) {
      yield* change("UPDATE scans SET verified_number = ?, finalized_number = ?", verified, finalized)
      for (const number of [4_999, 5_000, 6_000]) yield* storing(number)
      yield* (yield* choring(model, model.client)).mined([])
      expect((yield* stored).slice(-2)).toEqual([5_000, 6_000])
    }
  })

  story("are examined in pages, one a round, until the last one", [], function* (model) {
    yield* change("UPDATE scans SET verified_number = 30000")
    yield* change(
      `INSERT INTO blocks (chain, mode, number, hash, time)
       WITH RECURSIVE n (i) AS (SELECT 101 UNION ALL SELECT i + 1 FROM n WHERE i < 2600)
       SELECT 'base', 'test', i, '0x', 1 FROM n`
    )
    const { mined } = yield* choring(model, model.client)
    // The first page has two more blocks below.
    for (const left of [1_502, 502, 0]) {
      yield* mined([])
      expect((yield* stored).filter((number) => number > 100)).toHaveLength(left)
    }
  })

  for (const [which, replaced, numbers] of [
    ["has just got its confirmations, at a payment's deadline", false, [1, 4, 6]],
    ["belongs to the branch that was read", true, [1, 6]]
  ] as const) {
    story(`include the one that ${which}`, [], function* (model) {
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
      expect((yield* stored).slice(-numbers.length)).toEqual(numbers)
    })
  }
})

describe("the sweeps of ended payments", () => {
  const address = (n: number) => `0x${n.toString(16).padStart(40, "0")}`
  const now = 4 * day

  story(
    "compare nonces after a start and every six hours, also where the daily one of all comes in between",
    [],
    function* (model) {
      yield* TestClock.adjust("4 days")
      yield* owe(address(0), { endedAt: now - hour })
      let asked = 0
      const counting = heard(model, ({ method, params: [of] }) => {
        if (method === "eth_getTransactionCount" && of === address(0)) asked++
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
    }
  )

  story(
    "find what comes late in 10 minutes within the first hour, in an hour within a day, and in a day later",
    [],
    function* (model) {
      yield* TestClock.adjust("4 days")
      for (const [n, hoursAgo] of [1, 24, 26].entries()) yield* owe(address(n), { endedAt: now - hoursAgo * hour })
      const { mined } = yield* choring(model, model.client)
      yield* mined([])
      yield* mined([])
      yield* mined([0, 1, 2].map((n) => direct(address(n), 5n)))
      for (const [time, expected] of [
        ["0 minutes", []],
        ["9 minutes", []],
        ["1 minutes", [0]],
        ["49 minutes", [0]],
        ["1 minutes", [0, 1]],
        ["22 hours", [0, 1]],
        ["1 hours", [0, 1, 2]]
      ] as const) {
        yield* TestClock.adjust(time)
        yield* mined([])
        expect(
          (yield* kept).map(([to]) => to),
          time
        ).toEqual(expected.map(address))
      }
    }
  )

  story("ask the next provider each time, by each of their intervals", [], function* (model) {
    yield* TestClock.adjust("4 days")
    // Old enough for the sweep of each hour, and not for those in between.
    yield* owe(address(1), { endedAt: now - 5 * hour })
    const asked: Array<number> = []
    const by = (index: number) => heard(model, ({ method }) => method === "eth_call" && asked.push(index))
    const { mined } = yield* choring(model, by(0), by(1))
    yield* mined([])
    yield* mined([])
    asked.length = 0
    for (let minutes = 0; minutes < 240; minutes += 10) {
      yield* TestClock.adjust("10 minutes")
      yield* mined([])
    }
    expect(asked).toEqual([1, 0, 1, 0])
  })

  story("continue with the page that failed, and once a day with skipped addresses", [], function* (model) {
    yield* TestClock.adjust("4 days")
    yield* owe(address(1), { endedAt: 1 })
    yield* owe(address(2), { endedAt: 2.5 * day })
    yield* change("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 1000, 0)", address(3))
    // It has been checked once before, when it was skipped.
    yield* change("INSERT INTO gap_looks SELECT DISTINCT chain, ? FROM scans", address(3))
    let fails = true
    const { mined } = yield* choring(
      model,
      failing(model.client, () => fails, "refused")
    )
    expect(yield* mined([1, 2, 3].map((n) => direct(address(n), BigInt(n))))).toBeDefined()
    expect(yield* kept).toEqual([])
    fails = false
    expect(yield* mined([])).toBeUndefined()
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
  })
})
