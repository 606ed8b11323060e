import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import { older } from "../twisted.ts"
import { BalanceModel, direct } from "./BalanceModel.ts"
import { alice, base, depsOf, firstAsked } from "./reconcileWorld.ts"

// What an address held before its payment is none of the payment's money: who says that it held more hides what came.

const withMoney = () => {
  const model = new BalanceModel("past")
  model.mine([direct(alice, 50n)])
  model.mine([])
  return model
}
const ofTwo = { ...base, rpcUrls: ["a", "b"].map((url) => Redacted.make(url)) }

it.effect("one provider alone cannot hide money by reporting it as older than the payment", () =>
  Effect.gen(function* () {
    const model = withMoney()
    const deps = { ...depsOf(older(model, 50n), [model.client]), chain: ofTwo }
    const { failed, transfers } = yield* reconcileBalances(deps, model.head, [firstAsked(alice)])
    expect(failed).toEqual([])
    expect(transfers.map(({ amount, blockNumber }) => [amount, blockNumber])).toEqual([[50n, 1]])
  })
)

it.effect(
  "while no other provider responds, an older balance is not believed: the address is retried and nothing is stored",
  () =>
    Effect.gen(function* () {
      const model = withMoney()
      const deps = { ...depsOf(older(model, 50n)), chain: ofTwo }
      const own = yield* reconcileBalances(deps, model.head, [firstAsked(alice)])
      expect(own).toMatchObject({ transfers: [], rows: [], failed: [{ address: alice, givenUp: false }] })
      // On a chain that the payment is not meant for, too.
      const elsewhere = yield* reconcileBalances(deps, model.head, [{ ...firstAsked(alice), own: false }])
      expect(elsewhere).toMatchObject({ transfers: [], rows: [], failed: [{ address: alice }] })
    })
)

it.effect("money older than the payment according to two providers, or to the only one, does not count", () =>
  Effect.gen(function* () {
    const model = withMoney()
    const two = { ...depsOf(older(model, 50n), [older(model, 50n)]), chain: ofTwo }
    for (const deps of [two, depsOf(older(model, 50n))]) {
      const { failed, rows, transfers } = yield* reconcileBalances(deps, model.head, [firstAsked(alice)])
      expect([failed, transfers]).toEqual([[], []])
      expect(rows).toMatchObject([{ address: alice, balance: 50n }])
    }
  })
)
