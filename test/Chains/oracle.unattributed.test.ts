import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { readBalances } from "../../src/Chains/oracle.ts"
import { type BalanceModel, inside } from "./BalanceModel.ts"
import { alice, depsOf, inStore, look, owe, owing, round, scanTo, told, toldOfAny } from "./oracleWorld.ts"

const tracesOf = (model: BalanceModel) => model.calls.filter(({ method }) => method === "debug_traceTransaction").length

describe("an unattributed receipt", () => {
  it.scoped("is tried again as its age doubles, and gives its place to what is found, once, with the same total", () =>
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

  it.scoped("that is found again in the same block adds to the one that is there", () =>
    Effect.gen(function* () {
      const model = yield* owing("sum")
      yield* owe(alice, { chain: "ethereum", expiresAt: 10 })
      model.mine([], 1000)
      const { at, ...reading } = yield* readBalances(depsOf(model.client), model.head, [])
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
    }).pipe(inStore)
  )
})
