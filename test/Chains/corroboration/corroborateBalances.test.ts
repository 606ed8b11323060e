import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { differingBalances } from "../../../src/Chains/corroboration/corroborateBalances.ts"
import * as Searches from "../../../src/Chains/corroboration/SearchesRepo.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import type { PaymentId } from "../../../src/Domain/Ids.ts"
import { Writer } from "../../../src/Sql.ts"
import { change, rows } from "../../lib/rows.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { BalanceModel, direct, inside } from "../balances/BalanceModel.ts"
import { alice, bob, network, receipts, scan } from "../balances/reconcileWorld.ts"
import { failing, ofState, story } from "../balances/story.ts"
import { distorted, richer } from "../twisted.ts"
import { choring, kept } from "../watcher/maintaining.ts"

const denied = "another provider denies a balance that one provider reported: the excess does not count, check rpc_urls"

/** A node of the model that has states only while `memory.isThere`. */
const forgetful = ({ client }: BalanceModel) => {
  const memory = { isThere: false }
  return { memory, client: failing(client, (call) => !memory.isThere && ofState(call)) }
}

const points = rows("SELECT number, balance FROM balances ORDER BY number")
/** Position, amount and whether it is corroborated of each receipt. */
const ledgerRows = Effect.map(receipts, (all) =>
  all.map(({ amount, corroborated, position }) => [position, amount, corroborated])
)

describe("unattributed money (issue 14 row 6)", () => {
  story("that another provider's balances deny is not stored and holds no payment", [alice], function* (model, logged) {
    const { next } = yield* choring(model, richer(model, 99n), { ...model.client })
    yield* next()
    yield* next()
    expect([yield* kept, yield* points]).toEqual([[], []])
    expect((yield* scan)?.checked?.number).toBe(2)
    expect(logged.filter((message) => message === denied)).toHaveLength(1)
  })

  story("is removed once another provider can be asked; money that came since is found", [alice], function* (model) {
    let lies = true
    const liar = richer(model, 99n)
    const { client, memory } = forgetful(model)
    const { next } = yield* choring(
      model,
      { ...model.client, send: (calls) => (lies ? liar : model.client).send(calls) },
      client
    )
    yield* next()
    expect(yield* kept).toEqual([[alice, "unattributed", "99"]])
    memory.isThere = true
    yield* next()
    expect([yield* kept, yield* points]).toEqual([[], [{ number: 0, balance: "0" }]])
    lies = false
    yield* next(direct(alice, 5n))
    expect(yield* kept).toEqual([[alice, "tx:0", "5"]])
  })

  for (const [when, others, prunes, left] of [
    ["denied by one other: it stays", 1, false, [[alice, "unattributed", "99"]]],
    ["denied by two others: it is removed", 2, false, []],
    ["denied by one other once no provider shows it: it is removed", 1, true, []]
  ] as const) {
    story(`of a payment about to end, ${when}`, [alice], function* (model) {
      const honest = Array.from({ length: others }, () => forgetful(model))
      let isGone = false
      const liar = failing(richer(model, 99n), (call) => isGone && ofState(call))
      const { next } = yield* choring(model, liar, ...honest.map(({ client }) => client))
      yield* next()
      expect(yield* kept).toEqual([[alice, "unattributed", "99"]])
      const ids = (yield* rows<{ readonly id: PaymentId }>("SELECT id FROM payments")).map(({ id }) => id)
      yield* (yield* Writer).write(Searches.keep(network, ids, model.head.number))
      isGone = prunes
      for (const { memory } of honest) memory.isThere = true
      yield* next()
      expect(yield* kept).toEqual(left)
      // The payment is searched again: a part of the money may have been real.
      expect(yield* rows("SELECT 1 FROM searches")).toHaveLength(left.length)
    })
  }

  story("that another provider's balances show is kept, and corroborated", [alice], function* (model, logged) {
    model.traces = false
    const { next } = yield* choring(model, model.client, { ...model.client })
    yield* next(direct(alice, 5n))
    yield* next(inside(alice, 3n), inside(alice, 4n), direct(alice, 2n))
    yield* next()
    expect(yield* ledgerRows).toEqual([
      ["tx:0", "5", 0],
      ["tx:2", "2", 0],
      ["unattributed", "7", 1]
    ])
    expect(logged).not.toContain(denied)
  })

  const misdated = ({ client }: BalanceModel) =>
    distorted(client, ({ method }, answer) => {
      const isBlock = method === "eth_getBlockByNumber" && answer !== null
      return isBlock ? { ...(answer as object), timestamp: "0x7fffffff" } : answer
    })
  for (const [title, other, rounds] of [
    ["where its block time differs there", misdated, 1],
    ["where the other has no states, and is not denied either", (model: BalanceModel) => forgetful(model).client, 4]
  ] as const) {
    story(`is not corroborated by another provider ${title}`, [alice], function* (model) {
      model.traces = false
      const { next } = yield* choring(model, model.client, other(model))
      yield* next(inside(alice, 3n), inside(alice, 4n))
      for (let i = 0; i < rounds; i++) yield* next()
      expect(yield* ledgerRows).toEqual([["unattributed", "7", 0]])
    })
  }

  story("that is real is not denied because a liar has invented a receipt beside it", [alice], function* (model) {
    model.traces = false
    const { client, memory } = forgetful(model)
    const { next } = yield* choring(model, model.client, client)
    yield* next(inside(alice, 3n), inside(alice, 4n))
    const { hash, number, time } = model.head
    const invented = { blockNumber: number, blockHash: hash, blockTime: time, txHash: "0x1", position: "tx:9" }
    const receipt = { ...invented, address: alice, currency: "ETH", amount: 2n }
    yield* (yield* Writer).write(Ledger.keepReceipts(network, [receipt], false))
    memory.isThere = true
    yield* next()
    expect(yield* ledgerRows).toEqual([
      ["tx:9", "2", 0],
      ["unattributed", "7", 0]
    ])
    yield* change("DELETE FROM receipts WHERE position = 'tx:9'")
    yield* next()
    expect(yield* ledgerRows).toEqual([["unattributed", "7", 1]])
  })
})

clockTest(
  "the balances of ending payments are compared by one call a thousand addresses, at the same block",
  function* () {
    const model = new BalanceModel("ending")
    model.mine([direct(alice, 5n), direct(bob, 6n)])
    const at = model.head
    model.mine([direct(alice, 1n)])
    const addresses = [alice, bob, ...Array.from({ length: 1998 }, (_, i) => `0x${i.toString(16).padStart(40, "0")}`)]
    const poorer = distorted({ ...model.client }, ({ method, params }, answer) => {
      const { data } = (params[0] ?? {}) as { readonly data?: string }
      const hides = method === "eth_call" && data?.startsWith(alice) === true
      return hides ? `0x${"0".repeat(64)}${String(answer).slice(66)}` : answer
    })
    const { client } = model
    model.calls.splice(0)
    expect(yield* differingBalances({ client: poorer }, { client }, addresses, at)).toEqual([
      { address: alice, first: 0n, other: 5n }
    ])
    expect(model.calls).toHaveLength(4)
    expect(yield* differingBalances({ client }, { client: { ...client } }, addresses, at)).toEqual([])
    expect(yield* differingBalances({ client }, { client: richer(model, 1n) }, [bob], at)).toEqual([
      { address: bob, first: 6n, other: 7n }
    ])
  }
)
