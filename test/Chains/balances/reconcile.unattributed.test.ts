import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { tick } from "../../../src/Chains/watcher/tick.ts"
import { Writer } from "../../../src/Sql.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { type BalanceModel, direct, inside, nothing, spends } from "./BalanceModel.ts"
import {
  alice,
  depsOf,
  hiding,
  inStore,
  look,
  network,
  owe,
  owing,
  round,
  scanTo,
  told,
  toldOfAny,
  watchOf
} from "./reconcileWorld.ts"

const tracesOf = (model: BalanceModel) => model.calls.filter(({ method }) => method === "debug_traceTransaction").length

describe("an unattributed receipt", () => {
  it.scoped("is searched for again as its age doubles, and replaced once by what is found, with the same total", () =>
    Effect.gen(function* () {
      const model = yield* owing("doubt")
      model.traces = false
      const id = yield* owe(alice)
      // Two transactions, neither of which names anybody.
      model.mine([inside(alice, 3n), inside(alice, 4n)])
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual(["1 unattributed 7"])
      const tried = Effect.fnUntraced(function* (time: number) {
        model.mine([], time)
        model.calls.splice(0)
        const { client } = model
        // A provider of which nothing has been learnt.
        const { reading, touched } = yield* round(depsOf({ ...client }), model.head)
        const traces = tracesOf(model)
        return { traces, replaced: reading.replaced.length, touched }
      })
      expect((yield* tried(20)).traces).toBe(2)
      expect((yield* tried(26)).traces).toBe(2)
      expect((yield* tried(27)).traces).toBe(0)
      expect(yield* told(alice)).toEqual(["1 unattributed 7"])
      model.traces = true
      expect(yield* tried(60)).toEqual({ traces: 2, replaced: 1, touched: [id] })
      expect((yield* toldOfAny(alice)).sort()).toEqual(["1 call:? 3", "1 call:? 4"])
      expect(yield* tried(100_000)).toEqual({ traces: 0, replaced: 0, touched: [] })
    }).pipe(inStore)
  )

  it.scoped("is replaced by a part that is found, and by the rest", () =>
    Effect.gen(function* () {
      const model = yield* owing("part", alice)
      model.traces = false
      model.mine([direct(alice, 3n), inside(alice, 4n)])
      yield* round(depsOf(hiding(model)), model.head)
      expect(yield* told(alice)).toEqual(["1 unattributed 7"])
      model.mine([], 60)
      const { reading } = yield* round(depsOf(model.client), model.head)
      expect(reading.replaced).toHaveLength(1)
      expect(yield* told(alice)).toEqual(["1 tx:0 3", "1 unattributed 4"])
    }).pipe(inStore)
  )

  it.scoped("that is found again in the same block adds to the existing one", () =>
    Effect.gen(function* () {
      const model = yield* owing("sum")
      yield* owe(alice, { chain: "ethereum", expiresAt: 10 })
      model.mine([], 1000)
      const { at, ...reading } = yield* reconcileBalances(depsOf(model.client), model.head, [])
      yield* scanTo(at)
      const transfer = {
        blockNumber: at.number,
        blockHash: at.hash,
        blockTime: at.time,
        txHash: undefined,
        position: "unattributed",
        address: alice,
        currency: "ETH",
        amount: 3n
      }
      yield* look(depsOf(model.client), at, [], { ...reading, transfers: [transfer] })
      yield* look(depsOf(model.client), at, [], { ...reading, transfers: [{ ...transfer, amount: 4n }] })
      expect(yield* told(alice)).toEqual([`${at.number} unattributed 7`])
      // What a reorg has taken back is no part of what comes when its block returns.
      const writer = yield* Writer
      yield* writer.write(Ledger.orphanAbove(network, { number: 0, hash: "0x", time: 0 }))
      yield* scanTo(at)
      yield* look(depsOf(model.client), at, [], { ...reading, transfers: [{ ...transfer, amount: 5n }] })
      expect(yield* told(alice)).toEqual([`${at.number} unattributed 5`])
    }).pipe(inStore)
  )

  it.scoped("is not replaced by less when a node omits what the owner spent in the block", () =>
    Effect.gen(function* () {
      const model = yield* owing("less", alice)
      model.mine([direct(alice, 50n)])
      yield* round(depsOf(model.client), model.head)
      model.traces = false
      // More transactions than one batch of traces has, and what both parts bring is no more than was spent.
      const others = Array.from({ length: 10 }, () => nothing)
      const { deeds } = model.mine([spends(alice, 3n), inside(alice, 5n), ...others, inside(alice, 5n)])
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual(["1 tx:0 50", "2 unattributed 10"])
      model.traces = true
      const forgetful = {
        ...model.client,
        send: (calls: Parameters<typeof model.client.send>[0]) =>
          Effect.map(model.client.send(calls), (answers) =>
            answers.map((answer) => {
              const { transactions } = (answer ?? {}) as { transactions?: ReadonlyArray<{ hash: string }> }
              if (transactions === undefined) return answer
              return { ...(answer as object), transactions: transactions.filter(({ hash }) => hash !== deeds[0]?.hash) }
            })
          )
      }
      model.mine([], 100)
      yield* round(depsOf(forgetful), model.head)
      expect(yield* told(alice)).toEqual(["1 tx:0 50", "2 unattributed 10"])
      model.mine([], 300)
      yield* round(depsOf({ ...model.client }), model.head)
      expect((yield* toldOfAny(alice)).sort()).toEqual(["1 tx:0 50", "2 call:? 5", "2 call:? 5"])
    }).pipe(inStore)
  )

  it.scoped("does not survive a reorg: a later round searches for the money in the new branch", () =>
    Effect.gen(function* () {
      const model = yield* owing("reorg", alice)
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
      expect(yield* told(alice)).toEqual([])
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual(["2 unattributed 7"])
      model.traces = true
      model.mine([], 60)
      yield* round(depsOf({ ...model.client }), model.head)
      expect((yield* toldOfAny(alice)).sort()).toEqual(["2 call:? 3", "2 call:? 4"])
    }).pipe(inStore)
  )
})
