import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Tx, Writer } from "../../../src/Sql.ts"
import { direct, inside, nothing, spends } from "../balances/BalanceModel.ts"
import { alice, bob, inStore, owing, scanTo } from "../balances/reconcileWorld.ts"
import { claimOf, ledger, looked, lookedUntraced, roundUntraced } from "./claiming.ts"

describe("a claim of one of several transactions that paid an address in one block", () => {
  it.scoped("takes its money from the transaction to which all of it was attributed", () =>
    Effect.gen(function* () {
      const model = yield* owing("claim", alice, bob)
      const deeds = yield* lookedUntraced(model, inside(alice, 40n, [alice]), inside(alice, 50n), inside(alice, 10n))
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:0 100"])
      yield* claimOf(model, deeds[1]?.hash)
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:0 50", "1 call:1 50"])
      yield* claimOf(model, deeds[2]?.hash)
      yield* claimOf(model, deeds[1]?.hash)
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:0 40", "1 call:1 50", "1 call:2 10"])
    }).pipe(inStore)
  )

  it.scoped("works where one of them transferred nothing, and where all states of the block are pruned", () =>
    Effect.gen(function* () {
      const model = yield* owing("old", alice, bob)
      const deeds = yield* looked(model, inside(bob, 1n, [alice]), inside(alice, 60n))
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:0 60"])
      for (let i = 0; i < 5; i++) model.mine([])
      yield* scanTo(model.head)
      model.states = 2
      yield* claimOf(model, deeds[1]?.hash)
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:1 60"])
    }).pipe(inStore)
  )

  it.scoped("works for one in another block, where the states between them were pruned at the search", () =>
    Effect.gen(function* () {
      const model = yield* owing("apart", alice)
      const deeds = [inside(alice, 3n, [alice]), inside(alice, 4n)].flatMap((deed) => model.mine([deed]).deeds)
      for (let i = 0; i < 5; i++) model.mine([])
      model.states = 1
      yield* roundUntraced(model)
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:0 7"])
      model.states = Number.POSITIVE_INFINITY
      yield* claimOf(model, deeds[1]?.hash)
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:0 3", "2 call:1 4"])
    }).pipe(inStore)
  )

  it.scoped("works where the owner spends in the same block", () =>
    Effect.gen(function* () {
      const model = yield* owing("spent", alice)
      model.mine([inside(alice, 20n, [alice])])
      yield* roundUntraced(model)
      const { deeds } = model.mine([inside(alice, 40n, [alice]), inside(alice, 60n), spends(alice, 7n)])
      yield* roundUntraced(model)
      expect(yield* ledger(alice, deeds)).toContain("2 call:0 100")
      yield* claimOf(model, deeds[1]?.hash)
      expect((yield* ledger(alice, deeds)).slice(-2)).toEqual(["2 call:0 40", "2 call:1 60"])
    }).pipe(inStore)
  )

  it.scoped("is refused where the ledger would exceed the income", () =>
    Effect.gen(function* () {
      const model = yield* owing("refused", alice, bob)
      const deeds = yield* lookedUntraced(model, inside(alice, 40n, [alice]), inside(alice, 60n))
      const writer = yield* Writer
      // As if it had come by a transfer to the address itself, which no trace is asked about.
      yield* writer.write(
        Effect.flatMap(Tx, (tx) => tx.run("UPDATE receipts SET position = 'tx:0' WHERE position LIKE 'call:%'"))
      )
      const { message } = yield* Effect.flip(claimOf(model, deeds[1]?.hash))
      expect(message).toContain(`${alice} got 100 wei in block 1, and with it the ledger would have 60 more`)
      expect(yield* ledger(alice, deeds)).toEqual(["1 tx:0 100"])
    }).pipe(inStore)
  )

  it.scoped("does not count what an address sends to itself", () =>
    Effect.gen(function* () {
      const model = yield* owing("itself", alice)
      yield* looked(model, direct(alice, 50n))
      const [deed] = yield* looked(model, { ...nothing, moves: [{ from: alice, to: alice, amount: 5n }] })
      expect((yield* Effect.flip(claimOf(model, deed?.hash))).message).toContain("pays no address that was handed out")
      expect(yield* ledger(alice, [])).toEqual(["1 tx:0 50"])
    }).pipe(inStore)
  )

  it.scoped("counts the transaction's own value once, although its trace has it too", () =>
    Effect.gen(function* () {
      const model = yield* owing("direct", alice)
      const [deed] = yield* looked(model, direct(alice, 50n))
      const writer = yield* Writer
      const forget = Effect.flatMap(Tx, (tx) =>
        Effect.zipRight(tx.run("DELETE FROM balances"), tx.run("DELETE FROM receipts"))
      )
      yield* writer.write(forget)
      expect(yield* claimOf(model, deed?.hash)).toMatchObject({ added: 1, credits: [{ amount: 50n }] })
      expect(yield* ledger(alice, [])).toEqual(["1 tx:0 50"])
    }).pipe(inStore)
  )

  it.scoped("credits what is missing", () =>
    Effect.gen(function* () {
      const model = yield* owing("missing", alice, bob)
      const deeds = yield* lookedUntraced(model, inside(alice, 40n, [alice]), inside(alice, 60n))
      const writer = yield* Writer
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE receipts SET amount = '40'")))
      expect(yield* claimOf(model, deeds[1]?.hash)).toMatchObject({ added: 1 })
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:0 40", "1 call:1 60"])
    }).pipe(inStore)
  )
})
