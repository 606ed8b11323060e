import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import { BalanceModel, direct, inside, nothing, spends } from "./BalanceModel.ts"
import { alice, depsOf, firstAsked, inStore, owing, round, toldOfAny } from "./reconcileWorld.ts"

it.scoped("income hidden by a spend of the same amount is found once the nonce has changed", () =>
  Effect.gen(function* () {
    const model = yield* owing("as much", alice)
    model.mine([direct(alice, 50n)])
    yield* round(depsOf(model.client), model.head)
    // With the fee: what it holds is what it held.
    model.mine([inside(alice, 5n), spends(alice, 3n)])
    yield* round(depsOf(model.client), model.head)
    model.mine([inside(alice, 4n)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* toldOfAny(alice)).toEqual(["1 tx:0 50", "2 call:? 5", "3 call:? 4"])
  }).pipe(inStore)
)

it.effect("with all states pruned, income is searched above the last round, however old the balance point is", () =>
  Effect.gen(function* () {
    const model = new BalanceModel("long")
    model.states = 0
    for (let n = 1; n < 600; n++) model.mine([])
    model.mine([direct(alice, 5n)])
    model.mine([])
    const asked = { ...firstAsked(alice), comparedTo: 590 }
    const { transfers } = yield* reconcileBalances(depsOf(model.client), model.head, [asked])
    expect(transfers.map(({ blockNumber, position }) => [blockNumber, position])).toEqual([[600, "tx:0"]])
  })
)

it.effect("a transaction that the ledger has is not traced for the rest of its block's income", () =>
  Effect.gen(function* () {
    const model = new BalanceModel("rest")
    // More than one batch of traces has.
    const others = Array.from({ length: 10 }, () => nothing)
    const { deeds, hash } = model.mine([inside(alice, 9n), ...others, inside(alice, 4n)])
    const [txHash, last] = [deeds[0]?.hash, deeds.at(-1)?.hash]
    const credits = [{ number: 1, blockHash: hash, position: `call:${txHash}`, txHash, amount: 9n }]
    const { transfers } = yield* reconcileBalances(depsOf(model.client), model.head, [
      { ...firstAsked(alice), credits }
    ])
    expect(transfers.map(({ amount, position }) => [position, amount])).toEqual([[`call:${last}`, 4n]])
  })
)
