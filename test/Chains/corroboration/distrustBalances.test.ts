import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import { type BalanceModel, direct } from "../balances/BalanceModel.ts"
import { alice, depsOf, inStore, owing, round, told, wanted } from "../balances/reconcileWorld.ts"

const lying = (client: BalanceModel["client"], word: bigint) => {
  const lie = `0x${word.toString(16).padStart(64, "0")}`
  const twist = (calls: Parameters<typeof client.send>[0], answers: ReadonlyArray<unknown>) =>
    answers.map((a, i) => (calls[i]?.method === "eth_call" ? lie : a))
  return {
    ...client,
    send: (calls: Parameters<typeof client.send>[0]) => Effect.map(client.send(calls), (r) => twist(calls, r))
  }
}
describe("a stale or invented balance", () => {
  it.scoped("one too low answer of eth_call does not become new money when the truth comes back", () =>
    Effect.gen(function* () {
      const model = yield* owing("low", alice)
      model.mine([direct(alice, 60n)])
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual(["1 tx:0 60"])
      model.mine([])
      const lied = yield* round(depsOf(lying(model.client, 0n)), model.head)
      expect(lied.reading).toMatchObject({ rows: [], failed: [{ address: alice, error: { reason: "inconsistent" } }] })
      model.mine([])
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual(["1 tx:0 60"])
    }).pipe(inStore)
  )
  it.scoped("one too high answer of eth_call does not become money", () =>
    Effect.gen(function* () {
      const model = yield* owing("high", alice)
      model.mine([])
      const asked = yield* wanted(model.head)
      const lied = yield* round(depsOf(lying(model.client, 100n)), model.head)
      expect(lied.reading).toMatchObject({ rows: [], failed: [{ address: alice, error: { reason: "inconsistent" } }] })
      // Also after the wait for a better response is over: the smaller of the two counts.
      const hopeless = new Set([alice])
      const last = yield* reconcileBalances(depsOf(lying(model.client, 100n)), model.head, asked, hopeless)
      expect(last).toMatchObject({ transfers: [], failed: [{ givenUp: true }] })
      model.mine([])
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual([])
    }).pipe(inStore)
  )
})
