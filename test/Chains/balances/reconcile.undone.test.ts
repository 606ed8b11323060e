import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { tick } from "../../../src/Chains/watcher/tick.ts"
import { change } from "../../lib/rows.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { type BalanceModel, direct, fee, spends } from "./BalanceModel.ts"
import {
  alice,
  confirmedAndReorged,
  depsOf,
  firstAsked,
  ledgerLines,
  look,
  owe,
  round,
  scan,
  scanTo,
  wanted,
  watchOf
} from "./reconcileWorld.ts"
import { failing, story } from "./story.ts"

/** A watcher of the model that has read its head; returns its tick. */
const watching = (model: BalanceModel) =>
  Effect.gen(function* () {
    const { provider, providers } = soleProvider(model.client)
    const watch = yield* watchOf(providers)
    watch.watched.add(alice)
    yield* tick(watch, provider)
    return (by = provider) => tick(watch, by)
  })

story("coins that a reorg mines again below the creation of a confirmed payment are found", [], function* (model) {
  for (let i = 0; i < 5; i++) model.mine([])
  const read = yield* watching(model)
  yield* owe(alice)
  model.mine([direct(alice, 9n)])
  yield* read()
  yield* round(depsOf(model.client), model.head)
  expect(yield* ledgerLines(alice)).toEqual(["6 tx:0 9"])
  yield* change("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1")
  model.rollback(4)
  model.mine([direct(alice, 9n)])
  for (let i = 0; i < 5; i++) model.mine([])
  const noBalances = failing(model.client, ({ method }) => method === "eth_call", "timeout")
  yield* read(soleProvider(noBalances).provider)
  expect(yield* ledgerLines(alice)).toEqual([])
  yield* round(depsOf(model.client), model.head)
  expect(yield* ledgerLines(alice)).toEqual(["3 tx:0 9"])
})

story("coins lost to a reorg are searched for even if new blocks are final before a round", [alice], function* (model) {
  model.mine([direct(alice, 9n)])
  yield* scanTo(model.head)
  // Found without a round, as the blocks of Ethereum show them.
  yield* look(depsOf(model.client), model.head, [firstAsked(alice)], { of: "page" })
  expect([yield* ledgerLines(alice), (yield* scan)?.checked]).toEqual([["1 tx:0 9"], undefined])
  yield* confirmedAndReorged
  model.rollback(1)
  model.mine([])
  model.mine([direct(alice, 9n)])
  yield* round(depsOf(model.client), model.head)
  expect(yield* ledgerLines(alice)).toEqual(["2 tx:0 9"])
  expect(yield* wanted(model.head)).toEqual([])
})

story("coins in the new branch that its next block spends are found with the reorg", [], function* (model) {
  const read = yield* watching(model)
  yield* owe(alice)
  model.mine([direct(alice, 9n)])
  model.mine([])
  yield* read()
  yield* round(depsOf(model.client), model.head)
  expect(yield* ledgerLines(alice)).toEqual(["1 tx:0 9"])
  model.rollback(2)
  model.mine([direct(alice, 9n)])
  model.mine([spends(alice, 9n - fee)])
  yield* read()
  expect(yield* ledgerLines(alice)).toEqual(["1 tx:0 9"])
})
