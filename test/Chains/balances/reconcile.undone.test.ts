import { expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { tick } from "../../../src/Chains/watcher/tick.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { errorOf } from "../providing.ts"
import { direct, fee, spends } from "./BalanceModel.ts"
import {
  alice,
  confirmedAndReorged,
  depsOf,
  firstAsked,
  inStore,
  look,
  owe,
  owing,
  round,
  scan,
  scanTo,
  told,
  wanted,
  watchOf
} from "./reconcileWorld.ts"

it.scoped.each([
  ["open", "status = 'pending'"],
  ["confirmed", "status = 'confirmed', confirmed_at = 1, ended_at = 1"]
] as const)(
  "coins that a reorg mines again below the head of their payment's creation are found by a round: one that is %s",
  ([, change]) =>
    Effect.gen(function* () {
      const model = yield* owing("lower")
      for (let i = 0; i < 5; i++) model.mine([])
      const { provider, providers } = soleProvider(model.client)
      const watch = yield* watchOf(providers)
      watch.watched.add(alice)
      yield* tick(watch, provider)
      yield* owe(alice)
      model.mine([direct(alice, 9n)])
      yield* tick(watch, provider)
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual(["6 tx:0 9"])
      const writer = yield* Writer
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run(`UPDATE payments SET ${change}`)))
      model.rollback(4)
      model.mine([direct(alice, 9n)])
      for (let i = 0; i < 5; i++) model.mine([])
      const noBalances: RpcClient = {
        ...model.client,
        send: (calls) =>
          calls.some(({ method }) => method === "eth_call") ? errorOf("model", "timeout") : model.client.send(calls)
      }
      yield* tick(watch, soleProvider(noBalances).provider)
      expect(yield* told(alice)).toEqual([])
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual(["3 tx:0 9"])
    }).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)), inStore)
)

it.scoped("coins lost to a reorg are searched for even if the new blocks became final before the first round", () =>
  Effect.gen(function* () {
    const model = yield* owing("never", alice)
    model.mine([direct(alice, 9n)])
    yield* scanTo(model.head)
    // Found without a round, as the blocks of Ethereum tell of them.
    yield* look(depsOf(model.client), model.head, [firstAsked(alice)], { of: "page" })
    expect([yield* told(alice), (yield* scan)?.checked]).toEqual([["1 tx:0 9"], undefined])
    yield* confirmedAndReorged
    model.rollback(1)
    model.mine([])
    model.mine([direct(alice, 9n)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* told(alice)).toEqual(["2 tx:0 9"])
    expect(yield* wanted(model.head)).toEqual([])
  }).pipe(inStore)
)

it.scoped("coins mined again after a reorg are found by a round although the owner has collected them since", () =>
  Effect.gen(function* () {
    const model = yield* owing("collected again", alice)
    model.mine([direct(alice, 9n)])
    yield* round(depsOf(model.client), model.head)
    yield* confirmedAndReorged
    model.rollback(1)
    model.mine([])
    model.mine([direct(alice, 9n)])
    // The balance is what it was before any of it came.
    model.mine([spends(alice, 9n - fee)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* told(alice)).toEqual(["2 tx:0 9"])
  }).pipe(inStore)
)

it.scoped("coins in the new branch that its next block spends are found with the reorg", () =>
  Effect.gen(function* () {
    const model = yield* owing("collected in the branch")
    const { provider, providers } = soleProvider(model.client)
    const watch = yield* watchOf(providers)
    watch.watched.add(alice)
    yield* tick(watch, provider)
    yield* owe(alice)
    model.mine([direct(alice, 9n)])
    model.mine([])
    yield* tick(watch, provider)
    yield* round(depsOf(model.client), model.head)
    expect(yield* told(alice)).toEqual(["1 tx:0 9"])
    model.rollback(2)
    model.mine([direct(alice, 9n)])
    model.mine([spends(alice, 9n - fee)])
    yield* tick(watch, provider)
    expect(yield* told(alice)).toEqual(["1 tx:0 9"])
  }).pipe(Effect.provide(Logger.remove(Logger.defaultLogger)), inStore)
)
