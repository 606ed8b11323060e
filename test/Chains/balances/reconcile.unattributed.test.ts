import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { tick } from "../../../src/Chains/watcher/tick.ts"
import { blockTimeLag } from "../../../src/Domain/Payment.ts"
import { Writer } from "../../../src/Sql.ts"
import { change, rows } from "../../lib/rows.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { distorted } from "../twisted.ts"
import { BalanceModel, direct, inside, nothing, spends } from "./BalanceModel.ts"
import {
  alice,
  bob,
  depsOf,
  firstAsked,
  hiding,
  ledgerLines,
  ledgerLinesByAny,
  look,
  network,
  owe,
  round,
  scanTo,
  wanted,
  watchOf
} from "./reconcileWorld.ts"
import { ofTrace, story } from "./story.ts"

const sorted = Effect.map(ledgerLinesByAny(alice), (lines) => lines.toSorted())

describe("an unattributed receipt", () => {
  story("is searched for again as its age doubles, and replaced once, with the same total", [], function* (model) {
    model.traces = false
    const id = yield* owe(alice)
    // Two transactions, neither of which names an address.
    model.mine([inside(alice, 3n), inside(alice, 4n)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(alice)).toEqual(["1 unattributed 7"])
    const tried = Effect.fnUntraced(function* (time: number) {
      model.mine([], time)
      model.calls.splice(0)
      // A provider of which nothing has been learnt.
      const { reading, touched } = yield* round(depsOf({ ...model.client }), model.head)
      return { traces: model.calls.filter(ofTrace).length, replaced: reading.replaced.length, touched }
    })
    expect((yield* tried(20)).traces).toBe(2)
    expect((yield* tried(26)).traces).toBe(2)
    expect((yield* tried(27)).traces).toBe(0)
    expect(yield* ledgerLines(alice)).toEqual(["1 unattributed 7"])
    model.traces = true
    expect(yield* tried(60)).toEqual({ traces: 2, replaced: 1, touched: [id] })
    expect(yield* sorted).toEqual(["1 call:? 3", "1 call:? 4"])
    expect(yield* tried(100_000)).toEqual({ traces: 0, replaced: 0, touched: [] })
  })

  story("is replaced by a part that is found, and by the rest", [alice], function* (model) {
    model.traces = false
    model.mine([direct(alice, 3n), inside(alice, 4n)])
    yield* round(depsOf(hiding(model)), model.head)
    expect(yield* ledgerLines(alice)).toEqual(["1 unattributed 7"])
    model.mine([], 60)
    expect((yield* round(depsOf(model.client), model.head)).reading.replaced).toHaveLength(1)
    expect(yield* ledgerLines(alice)).toEqual(["1 tx:0 3", "1 unattributed 4"])
  })

  story("that is found again in the same block adds to the existing one", [], function* (model) {
    yield* owe(alice, { chain: "ethereum", expiresAt: 10 })
    model.mine([], 1000)
    const { at, ...reading } = yield* reconcileBalances(depsOf(model.client), model.head, [])
    yield* scanTo(at)
    const place = { blockNumber: at.number, blockHash: at.hash, blockTime: at.time, position: "unattributed" }
    const find = (amount: bigint) =>
      look(depsOf(model.client), at, [], {
        ...reading,
        transfers: [{ ...place, txHash: undefined, address: alice, currency: "ETH", amount }]
      })
    yield* find(3n)
    yield* find(4n)
    expect(yield* ledgerLines(alice)).toEqual([`${at.number} unattributed 7`])
    // What a reorg has removed is not part of what comes when its block returns.
    yield* (yield* Writer).write(Ledger.orphanAbove(network, { number: 0, hash: "0x", time: 0 }))
    yield* scanTo(at)
    yield* find(5n)
    expect(yield* ledgerLines(alice)).toEqual([`${at.number} unattributed 5`])
  })

  story("is not replaced by less when a node omits what the owner spent in the block", [alice], function* (model) {
    model.mine([direct(alice, 50n)])
    yield* round(depsOf(model.client), model.head)
    model.traces = false
    // More transactions than one batch of traces has, and what both parts bring is no more than was spent.
    const others = Array.from({ length: 10 }, () => nothing)
    const { deeds } = model.mine([spends(alice, 3n), inside(alice, 5n), ...others, inside(alice, 5n)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(alice)).toEqual(["1 tx:0 50", "2 unattributed 10"])
    model.traces = true
    const forgetful = distorted(model.client, (_, answer) => {
      const { transactions } = (answer ?? {}) as { transactions?: ReadonlyArray<{ hash: string }> }
      if (transactions === undefined) return answer
      return { ...(answer as object), transactions: transactions.filter(({ hash }) => hash !== deeds[0]?.hash) }
    })
    model.mine([], 100)
    yield* round(depsOf(forgetful), model.head)
    expect(yield* ledgerLines(alice)).toEqual(["1 tx:0 50", "2 unattributed 10"])
    model.mine([], 300)
    yield* round(depsOf({ ...model.client }), model.head)
    expect(yield* sorted).toEqual(["1 tx:0 50", "2 call:? 5", "2 call:? 5"])
  })

  story("does not survive a reorg: a later round searches for the money in the new branch", [alice], function* (model) {
    model.mine([inside(alice, 7n)])
    yield* round(depsOf(model.client), model.head)
    const { provider, providers } = soleProvider(model.client)
    const watch = yield* watchOf(providers)
    watch.watched.add(alice)
    model.rollback(1)
    model.traces = false
    model.mine([nothing])
    model.mine([inside(alice, 3n), inside(alice, 4n)])
    expect(yield* tick(watch, provider)).toMatchObject({ _tag: "CaughtUp", scanned: 2 })
    expect(yield* ledgerLines(alice)).toEqual([])
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(alice)).toEqual(["2 unattributed 7"])
    model.traces = true
    model.mine([], 60)
    yield* round(depsOf({ ...model.client }), model.head)
    expect(yield* sorted).toEqual(["2 call:? 3", "2 call:? 4"])
  })
})

describe("coins below the floor", () => {
  const asking = change("UPDATE payments SET amount = '1000000', floor = '1000'")
  /** A round; returns how many calls it took. */
  const rounds = (model: BalanceModel) =>
    Effect.map(round(depsOf(model.client), model.head), () => model.calls.splice(0).length)

  story("are not searched for, in however many blocks", [alice], function* (model) {
    yield* asking
    for (let i = 0; i < 244; i++) {
      model.mine([inside(alice, 1n)])
      if (i % 61 === 60) expect(yield* rounds(model)).toBe(1)
    }
    expect(yield* ledgerLines(alice)).toEqual([])
  })

  story("that add up to it become one unattributed receipt, for a few calls", [alice], function* (model) {
    yield* asking
    for (let i = 0; i < 244; i++) model.mine([inside(alice, 5n)])
    expect(yield* rounds(model)).toBeLessThan(16)
    expect(yield* ledgerLines(alice)).toEqual(["244 unattributed 1220"])
    model.mine([inside(alice, 5n)])
    expect(yield* rounds(model)).toBeLessThan(16)
    expect(yield* ledgerLines(alice)).toEqual(["244 unattributed 1220"])
  })

  story("hide no payment among them, and the rest is one unattributed receipt", [alice], function* (model) {
    yield* asking
    for (let i = 0; i < 100; i++) model.mine([inside(alice, 2n)])
    model.mine([direct(alice, 1_000_000n)])
    for (let i = 0; i < 100; i++) model.mine([inside(alice, 2n)])
    expect(yield* rounds(model)).toBeLessThan(60)
    expect(yield* ledgerLinesByAny(alice)).toEqual(["101 tx:0 1000000", "201 unattributed 400"])
  })

  story("are searched for where they may complete the payment", [alice], function* (model) {
    yield* asking
    model.mine([direct(alice, 999_500n)])
    yield* rounds(model)
    yield* change("UPDATE payments SET status = 'detecting', amount_received = '999500'")
    model.mine([direct(alice, 500n)])
    yield* rounds(model)
    expect(yield* ledgerLinesByAny(alice)).toEqual(["1 tx:0 999500", "2 tx:0 500"])
  })

  story("are recorded without a search at the payment's deadline", [alice], function* (model) {
    yield* asking
    for (let i = 0; i < 40; i++) model.mine([inside(alice, 2n)])
    yield* rounds(model)
    expect(yield* ledgerLines(alice)).toEqual([])
    const { time } = model.head
    yield* change("UPDATE payments SET expires_at = ?", time * 1000)
    model.mine([], time + 200)
    expect(yield* rounds(model)).toBeLessThan(16)
    expect(yield* ledgerLines(alice)).toEqual(["41 unattributed 80"])
  })
})

const carol = `0x${"c3".repeat(20)}`
const elsewhere = { chain: "ethereum", currency: "USDC" } as const

describe("the coins of a payment of another chain", () => {
  clockTest("give no receipt where its balance is the same or lower", function* () {
    const model = new BalanceModel("less")
    model.mine([direct(alice, 9n), direct(bob, 9n), direct(carol, 9n)])
    model.mine([spends(alice, 4n), direct(carol, 1n)])
    const known = { number: 1, balance: 9n, nonce: 0, assumed: false }
    const queries = [alice, bob, carol].map((one) => ({ ...firstAsked(one), own: false, withNonce: true, known }))
    const found = yield* reconcileBalances(depsOf(model.client), model.head, queries)
    expect(found.transfers).toMatchObject([{ address: carol, amount: 1n }])
    expect(found.rows.map(({ balance }) => balance)).toEqual([3n, 10n])
  })

  story("do not count from before the payment, where the state of that time is known", [], function* (model) {
    model.mine([direct(alice, 40n), direct(bob, 50n)])
    yield* scanTo(model.head)
    model.mine([])
    const created = model.head
    yield* scanTo(created)
    const createdAt = created.time * 1000 + 999 + blockTimeLag
    yield* owe(alice, { ...elsewhere, expiresAt: 2_100, createdAt })
    yield* owe(bob, { ...elsewhere, expiresAt: 2_200, createdAt })
    yield* owe(carol, { ...elsewhere, expiresAt: 2_100, createdAt: 0 })
    // Its time is before the payments: it lags.
    model.mine([direct(alice, 3n), direct(carol, 4n)])
    yield* scanTo(model.head)
    expect(yield* wanted({ ...model.head, time: 2_161 })).toMatchObject([
      { address: alice, known: { number: created.number } },
      { address: carol, known: { number: 0 } }
    ])
    model.mine([], 2_161)
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(alice)).toEqual([`${model.head.number} unattributed 3`])
    // Seen, and not asked about again.
    expect(yield* rows("SELECT address FROM balances ORDER BY address")).toEqual([
      { address: alice },
      { address: carol }
    ])
    model.states = 0
    model.mine([], 2_261)
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(bob)).toEqual([`${model.head.number} unattributed 50`])
  })
})
