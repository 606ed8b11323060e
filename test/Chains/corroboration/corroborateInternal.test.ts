import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, TestClock } from "effect"
import * as CorroborationRepo from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import { makeCorroborator } from "../../../src/Chains/corroboration/corroborate.ts"
import { corroborateInternal } from "../../../src/Chains/corroboration/corroborateInternal.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { type BalanceModel, direct, inside, nothing, spends } from "../balances/BalanceModel.ts"
import {
  alice,
  base,
  depsOf,
  inStore,
  look,
  network,
  noting,
  owing,
  receipts,
  scanTo,
  wanted,
  watchOf
} from "../balances/reconcileWorld.ts"
import { errorOf } from "../providing.ts"
import { distorted, richer } from "../twisted.ts"

const quiet = Effect.provide(Logger.remove(Logger.defaultLogger))

/** A node that fails calls of one method. */
const without = (client: RpcClient, ...methods: ReadonlyArray<string>): RpcClient => ({
  ...client,
  send: (calls) =>
    calls.some(({ method }) => methods.includes(method)) ? errorOf("model", "state") : client.send(calls)
})

/** Reads the model's head from the first node; no second one has corroborated it. */
const reported = Effect.fnUntraced(function* (model: BalanceModel, first: RpcClient) {
  yield* scanTo(model.head)
  yield* look(depsOf(first), model.head, yield* wanted(model.head), { corroborated: false })
  return (yield* receipts).map(({ amount, position }) => [position.slice(0, 4), amount])
})

/** How many of the receipts are corroborated after the other providers have been asked. */
const agreedBy = Effect.fnUntraced(function* (model: BalanceModel, first: RpcClient, second: RpcClient) {
  const { provider, providers } = someProviders(first, second)
  // Receipts are asked about once they have their confirmations.
  for (let depth = 1; depth < base.confirmations; depth++) model.mine([])
  yield* makeCorroborator(yield* watchOf(providers)).run(provider, model.head)
  return (yield* receipts).map(({ corroborated }) => corroborated)
})

/** The evidence of one node about the receipts. */
const answerOf = Effect.fnUntraced(function* (client: RpcClient) {
  const { provider, providers } = someProviders(client)
  const open = yield* CorroborationRepo.uncorroborated(yield* Reader, network, Number.MAX_SAFE_INTEGER - 1, 10)
  const { corroborated, denied, unable } = yield* corroborateInternal(provider, yield* watchOf(providers), open)
  return { corroborated: corroborated.length, denied: denied.length, unable: unable.length }
})

describe("money that moved inside contracts (issue 14 row 6)", () => {
  it.scoped("is marked unverifiable after ten minutes where no other provider can check it, until one denies it", () =>
    Effect.gen(function* () {
      const model = yield* owing("unable", alice)
      model.traces = false
      model.mine([inside(alice, 5n, [alice])])
      expect(yield* reported(model, model.client)).toEqual([["call", "5"]])
      for (let depth = 1; depth < base.confirmations; depth++) model.mine([])
      const blind = without({ ...model.client }, "eth_getBalance", "eth_getTransactionCount")
      let other = blind
      const { provider, providers } = someProviders(model.client, { ...blind, send: (calls) => other.send(calls) })
      const { settlement, touched } = noting()
      const { run } = makeCorroborator(yield* watchOf(providers, settlement))
      const flags = Effect.flatMap(Reader, (reader) =>
        reader.all("SELECT corroborated, unverifiable, denied_by FROM receipts")
      )
      yield* run(provider, model.head)
      expect(yield* flags).toEqual([{ corroborated: 0, unverifiable: 0, denied_by: null }])
      yield* TestClock.adjust("10 minutes")
      yield* run(provider, model.head)
      expect(yield* flags).toEqual([{ corroborated: 0, unverifiable: 1, denied_by: null }])
      expect(touched).toHaveLength(1)
      other = richer(model, -1n)
      yield* TestClock.adjust("10 minutes")
      expect(yield* run(provider, model.head)).toContain("denies receipts")
      expect(yield* flags).toEqual([{ corroborated: 0, unverifiable: 0, denied_by: expect.any(String) }])
      expect(touched).toHaveLength(2)
    }).pipe(quiet, inStore)
  )

  it.scoped("is not confirmed by one false balance, even with a real transaction", () =>
    Effect.gen(function* () {
      const model = yield* owing("lie", alice)
      model.traces = false
      model.mine([inside(alice, 1n, [alice])])
      const liar = richer(model, 99n)
      expect(yield* reported(model, liar)).toEqual([["call", "100"]])
      expect(yield* agreedBy(model, liar, model.client)).toEqual([0])
      expect(yield* answerOf(model.client)).toEqual({ corroborated: 0, denied: 1, unable: 0 })
    }).pipe(quiet, inStore)
  )

  it.scoped("is found with its real amount once two providers deny a larger one", () =>
    Effect.gen(function* () {
      const model = yield* owing("more", alice)
      model.traces = false
      model.mine([inside(alice, 1n, [alice])])
      expect(yield* reported(model, richer(model, 99n))).toEqual([["call", "100"]])
      yield* agreedBy(model, model.client, model.client)
      yield* scanTo(model.head)
      yield* look(depsOf(model.client), model.head, yield* wanted(model.head), { corroborated: false })
      expect((yield* receipts).map(({ amount }) => amount)).toEqual(["1"])
    }).pipe(quiet, inStore)
  )

  it.scoped("is found with its real amount also where the provider that reported more keeps doing so", () =>
    Effect.gen(function* () {
      const model = yield* owing("more", alice)
      model.traces = false
      model.mine([inside(alice, 1n, [alice])])
      expect(yield* reported(model, richer(model, 99n))).toEqual([["call", "100"]])
      yield* agreedBy(model, model.client, model.client)
      // Before another provider serves.
      yield* scanTo(model.head)
      yield* look(depsOf(richer(model, 99n)), model.head, yield* wanted(model.head), { corroborated: false })
      const reader = yield* Reader
      expect(yield* reader.all("SELECT number FROM balances WHERE balance <> '0'")).toEqual([])
      expect(
        yield* reader.all("SELECT checked_number FROM scans WHERE checked_number = ?", [model.head.number])
      ).toEqual([])
      yield* look(depsOf(model.client), model.head, yield* wanted(model.head), { corroborated: false })
      expect((yield* receipts).map(({ amount }) => amount)).toEqual(["1"])
    }).pipe(quiet, inStore)
  )

  it.scoped("is not confirmed where one provider hid a direct transfer and attributed it to another transaction", () =>
    Effect.gen(function* () {
      const model = yield* owing("hidden", alice)
      model.traces = false
      const { deeds } = model.mine([direct(alice, 60n), { ...nothing, names: [alice] }])
      const hidden = distorted(model.client, (_, answer) => {
        const { transactions } = (answer ?? {}) as { transactions?: ReadonlyArray<{ hash: string }> }
        if (transactions === undefined) return answer
        return { ...(answer as object), transactions: transactions.filter(({ hash }) => hash !== deeds[0]?.hash) }
      })
      expect(yield* reported(model, hidden)).toEqual([["call", "60"]])
      expect(yield* answerOf(model.client)).toEqual({ corroborated: 0, denied: 1, unable: 0 })
    }).pipe(quiet, inStore)
  )

  it.scoped("is corroborated by the balances after the block and the one before, whatever the owner spent there", () =>
    Effect.gen(function* () {
      const model = yield* owing("honest", alice)
      model.mine([direct(alice, 50n)])
      expect(yield* reported(model, model.client)).toEqual([["tx:0", "50"]])
      model.traces = false
      model.mine([spends(alice, 30n), inside(alice, 5n, [alice]), direct(alice, 7n)])
      expect(yield* reported(model, model.client)).toEqual([
        ["tx:0", "50"],
        ["call", "5"],
        ["tx:2", "7"]
      ])
      expect(yield* agreedBy(model, model.client, { ...model.client })).toEqual([1, 1, 1])
    }).pipe(quiet, inStore)
  )

  it.scoped(
    "is compared as the sum of one block: a node without traces attributes it to the one transaction that names the address",
    () =>
      Effect.gen(function* () {
        const model = yield* owing("sum", alice)
        model.traces = false
        model.mine([inside(alice, 3n, [alice]), inside(alice, 4n)])
        expect(yield* reported(model, model.client)).toEqual([["call", "7"]])
        model.traces = true
        expect(yield* answerOf({ ...model.client })).toEqual({ corroborated: 1, denied: 0, unable: 0 })
        expect(yield* answerOf(richer(model, -1n))).toEqual({ corroborated: 0, denied: 1, unable: 0 })
      }).pipe(quiet, inStore)
  )

  it.scoped(
    "is not corroborated beside an invented receipt of the same block by balances that show only one of the two",
    () =>
      Effect.gen(function* () {
        const model = yield* owing("beside", alice)
        const { deeds } = model.mine([inside(alice, 3n, [alice]), { ...nothing, names: [alice] }])
        expect(yield* reported(model, model.client)).toEqual([["call", "3"]])
        model.traces = false
        expect(yield* answerOf({ ...model.client })).toEqual({ corroborated: 1, denied: 0, unable: 0 })
        yield* (yield* Writer).write(
          Effect.flatMap(Tx, (tx) =>
            tx.run(
              `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash,
               currency, amount, payment_id, canonical, corroborated, seen_at)
             SELECT chain, mode, block_hash, address, position || '0', block_number, block_time, ?,
               currency, amount, payment_id, canonical, corroborated, seen_at FROM receipts`,
              [deeds[1]?.hash ?? ""]
            )
          )
        )
        expect(yield* answerOf({ ...model.client })).toEqual({ corroborated: 0, denied: 2, unable: 0 })
      }).pipe(quiet, inStore)
  )

  it.scoped("must be of a transaction that concerns the address, by its calldata or by a trace", () =>
    Effect.gen(function* () {
      const model = yield* owing("concern", alice)
      model.mine([inside(alice, 3n), nothing])
      expect(yield* reported(model, model.client)).toEqual([["call", "3"]])
      expect(yield* answerOf({ ...model.client })).toEqual({ corroborated: 1, denied: 0, unable: 0 })
      const blind = without({ ...model.client }, "debug_traceTransaction")
      // Its balances show that the money arrived in the block, by whichever transaction.
      expect(yield* answerOf(blind)).toEqual({ corroborated: 1, denied: 0, unable: 0 })
      const other = distorted({ ...model.client }, ({ method }, answer) =>
        method === "debug_traceTransaction" ? { ...(answer as object), calls: [] } : answer
      )
      expect(yield* answerOf(other)).toEqual({ corroborated: 0, denied: 1, unable: 0 })
    }).pipe(quiet, inStore)
  )

  it.scoped(
    "is neither corroborated nor denied by a provider without states that old, except by a trace of the amount",
    () =>
      Effect.gen(function* () {
        const model = yield* owing("deep", alice)
        model.mine([inside(alice, 3n, [alice])])
        expect(yield* reported(model, model.client)).toEqual([["call", "3"]])
        const old = (...more: ReadonlyArray<string>) => without({ ...model.client }, "eth_getBalance", ...more)
        expect(yield* answerOf(old("debug_traceTransaction"))).toEqual({ corroborated: 0, denied: 0, unable: 1 })
        expect(yield* agreedBy(model, model.client, old("debug_traceTransaction"))).toEqual([0])
        expect(yield* answerOf(old())).toEqual({ corroborated: 1, denied: 0, unable: 0 })
        const less = distorted(old(), ({ method }, answer) =>
          method === "debug_traceTransaction"
            ? { type: "CALL", from: alice, to: alice, value: "0x2", calls: [] }
            : answer
        )
        expect(yield* answerOf(less)).toEqual({ corroborated: 0, denied: 1, unable: 0 })
      }).pipe(quiet, inStore)
  )

  it.scoped.each<[string, (receipt: object) => unknown]>([
    ["does not have its transaction", () => null],
    ["has it in another block", (receipt) => ({ ...receipt, blockHash: `0x${"1".repeat(64)}` })],
    ["says that it failed", (receipt) => ({ ...receipt, status: "0x0" })]
  ])("is denied by who %s", ([, lie]) =>
    Effect.gen(function* () {
      const model = yield* owing("denied", alice)
      model.mine([inside(alice, 3n, [alice])])
      yield* reported(model, model.client)
      const other = distorted({ ...model.client }, ({ method }, answer) =>
        method === "eth_getTransactionReceipt" ? lie(answer as object) : answer
      )
      expect(yield* answerOf(other)).toEqual({ corroborated: 0, denied: 1, unable: 0 })
    }).pipe(quiet, inStore)
  )
})
