import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { differingBalances } from "../../../src/Chains/corroboration/corroborateBalances.ts"
import * as Searches from "../../../src/Chains/corroboration/SearchesRepo.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import type { PaymentId } from "../../../src/Domain/Ids.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { BalanceModel, direct, inside } from "../balances/BalanceModel.ts"
import { alice, bob, inStore, network, owing, receipts, scan } from "../balances/reconcileWorld.ts"
import { errorOf } from "../providing.ts"
import { distorted, richer } from "../twisted.ts"
import { choring, kept } from "../watcher/maintaining.ts"

const warnings: Array<unknown> = []
const heard = Effect.provide(
  Logger.replace(
    Logger.defaultLogger,
    Logger.make(({ message }) => void warnings.push(Array.isArray(message) ? message[0] : message))
  )
)
const denied = "another provider denies a balance that one provider reported: the excess does not count, check rpc_urls"

/** The same node, while it has states. */
const withStates = (client: RpcClient, has: () => boolean): RpcClient => ({
  ...client,
  send: (calls) =>
    !has() && calls.some(({ method }) => method === "eth_getBalance") ? errorOf("other", "state") : client.send(calls)
})

const points = Effect.flatMap(Reader, (reader) =>
  reader.all<{ number: number; balance: string }>("SELECT number, balance FROM balances ORDER BY number")
)

describe("unattributed money (issue 14 row 6)", () => {
  it.scoped("that another provider's balances deny is not stored, and keeps no payment from ending", () =>
    Effect.gen(function* () {
      warnings.splice(0)
      const model = yield* owing("denied", alice)
      const { next } = yield* choring(model, richer(model, 99n), { ...model.client })
      yield* next()
      yield* next()
      expect([yield* kept, yield* points]).toEqual([[], []])
      expect((yield* scan)?.checked?.number).toBe(2)
      expect(warnings.filter((message) => message === denied)).toHaveLength(1)
    }).pipe(heard, inStore)
  )

  it.scoped("is removed when another provider can be asked, and money that really arrived since is found", () =>
    Effect.gen(function* () {
      const model = yield* owing("back", alice)
      let lies = true
      let has = false
      const liar = richer(model, 99n)
      const first: RpcClient = { ...model.client, send: (calls) => (lies ? liar : model.client).send(calls) }
      const { next } = yield* choring(
        model,
        first,
        withStates(model.client, () => has)
      )
      yield* next()
      expect(yield* kept).toEqual([[alice, "unattributed", "99"]])
      has = true
      yield* next()
      expect([yield* kept, yield* points]).toEqual([[], [{ number: 0, balance: "0" }]])
      lies = false
      yield* next(direct(alice, 5n))
      expect(yield* kept).toEqual([[alice, "tx:0", "5"]])
    }).pipe(heard, inStore)
  )

  it.scoped.each([
    [1, [[alice, "unattributed", "99"]]],
    [2, []]
  ] as const)("of a payment that is about to end is not taken back by %d other provider", ([others, left]) =>
    Effect.gen(function* () {
      const model = yield* owing("ending", alice)
      let has = false
      const honest = Array.from({ length: others }, () => withStates(model.client, () => has))
      const { next } = yield* choring(model, richer(model, 99n), ...honest)
      yield* next()
      const payments = yield* (yield* Reader).all<{ id: PaymentId }>("SELECT id FROM payments")
      yield* (yield* Writer).write(
        Searches.keep(
          network,
          payments.map(({ id }) => id),
          model.head.number
        )
      )
      has = true
      yield* next()
      expect(yield* kept).toEqual(left)
      // The payment is searched again: a part of the money may have been real.
      expect(yield* (yield* Reader).all("SELECT 1 FROM searches")).toHaveLength(left.length)
    }).pipe(heard, inStore)
  )

  it.scoped("that another provider's balances show is kept, and corroborated", () =>
    Effect.gen(function* () {
      warnings.splice(0)
      const model = yield* owing("shown", alice)
      model.traces = false
      const { next } = yield* choring(model, model.client, { ...model.client })
      yield* next(direct(alice, 5n))
      yield* next(inside(alice, 3n), inside(alice, 4n), direct(alice, 2n))
      yield* next()
      expect((yield* receipts).map(({ corroborated, amount, position }) => [position, amount, corroborated])).toEqual([
        ["tx:0", "5", 0],
        ["tx:2", "2", 0],
        ["unattributed", "7", 1]
      ])
      expect(warnings).not.toContain(denied)
    }).pipe(heard, inStore)
  )

  it.scoped("that another provider's balances show is not corroborated where its block time differs there", () =>
    Effect.gen(function* () {
      const model = yield* owing("dated", alice)
      model.traces = false
      const other = distorted(model.client, ({ method }, answer) => {
        const isBlock = method === "eth_getBlockByNumber" && answer !== null
        return isBlock ? { ...(answer as object), timestamp: "0x7fffffff" } : answer
      })
      const { next } = yield* choring(model, model.client, other)
      yield* next(inside(alice, 3n), inside(alice, 4n))
      yield* next()
      expect((yield* receipts).map(({ corroborated, amount, position }) => [position, amount, corroborated])).toEqual([
        ["unattributed", "7", 0]
      ])
    }).pipe(heard, inStore)
  )

  it.scoped("that is real is not denied because a liar has invented a receipt beside it", () =>
    Effect.gen(function* () {
      const model = yield* owing("beside", alice)
      model.traces = false
      let has = false
      const { next } = yield* choring(
        model,
        model.client,
        withStates(model.client, () => has)
      )
      yield* next(inside(alice, 3n), inside(alice, 4n))
      const { hash, number, time } = model.head
      const invented = { blockNumber: number, blockHash: hash, blockTime: time, txHash: "0x1", position: "tx:9" }
      const receipt = { ...invented, address: alice, currency: "ETH", amount: 2n }
      const writer = yield* Writer
      yield* writer.write(Ledger.keepReceipts(network, [receipt], false))
      has = true
      yield* next()
      const all = Effect.map(receipts, (rows) => rows.map(({ corroborated, position }) => [position, corroborated]))
      expect(yield* all).toEqual([
        ["tx:9", 0],
        ["unattributed", 0]
      ])
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts WHERE position = 'tx:9'")))
      yield* next()
      expect(yield* all).toEqual([["unattributed", 1]])
    }).pipe(heard, inStore)
  )

  it.scoped("stays where no other provider has the states, and no more is denied than is missing", () =>
    Effect.gen(function* () {
      const model = yield* owing("old", alice)
      model.traces = false
      const { next } = yield* choring(
        model,
        model.client,
        withStates(model.client, () => false)
      )
      yield* next(inside(alice, 3n), inside(alice, 4n))
      for (let i = 0; i < 4; i++) yield* next()
      expect((yield* receipts).map(({ corroborated, amount }) => [amount, corroborated])).toEqual([["7", 0]])
    }).pipe(heard, inStore)
  )
})

describe("the balances of addresses whose payments end (issue 14 row 4)", () => {
  it.effect("are compared by one call a thousand addresses, at the same block", () =>
    Effect.gen(function* () {
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
      model.calls.splice(0)
      expect(yield* differingBalances({ client: poorer }, { client: model.client }, addresses, at)).toEqual([
        { address: alice, first: 0n, other: 5n }
      ])
      expect(model.calls).toHaveLength(4)
      const { client } = model
      expect(yield* differingBalances({ client }, { client: { ...client } }, addresses, at)).toEqual([])
      expect(yield* differingBalances({ client }, { client: richer(model, 1n) }, [bob], at)).toEqual([
        { address: bob, first: 6n, other: 7n }
      ])
    })
  )
})
