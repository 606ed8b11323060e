import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as CorroborationRepo from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import { makeCorroborator } from "../../../src/Chains/corroboration/corroborate.ts"
import { corroborateInternal, onlySelection } from "../../../src/Chains/corroboration/corroborateInternal.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { Reader } from "../../../src/Sql.ts"
import { change, rows } from "../../lib/rows.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { type BalanceModel, direct, inside, nothing, spends } from "../balances/BalanceModel.ts"
import {
  alice,
  base,
  depsOf,
  look,
  network,
  noting,
  receipts,
  scanTo,
  wanted,
  watchOf
} from "../balances/reconcileWorld.ts"
import { failing, ofState, ofTrace, story } from "../balances/story.ts"
import { distorted, richer } from "../twisted.ts"

/** Compares the balances of the model's head by one node; no second one has corroborated what it finds. */
const lookBy = (model: BalanceModel, first: RpcClient) =>
  Effect.gen(function* () {
    yield* scanTo(model.head)
    yield* look(depsOf(first), model.head, yield* wanted(model.head), { corroborated: false })
  })

/** What one node reports of the model's head. */
const reported = (model: BalanceModel, first: RpcClient) =>
  Effect.zipRight(
    lookBy(model, first),
    Effect.map(receipts, (all) => all.map(({ amount, position }) => [position.slice(0, 4), amount]))
  )

/** Mines as many blocks as the receipts need to be asked about. */
const confirm = (model: BalanceModel) => {
  for (let depth = 1; depth < base.confirmations; depth++) model.mine([])
}

/** Which of the receipts are corroborated once both providers have been asked. */
const agreedBy = Effect.fnUntraced(function* (model: BalanceModel, first: RpcClient, second: RpcClient) {
  const { provider, providers } = someProviders(first, second)
  confirm(model)
  yield* makeCorroborator(yield* watchOf(providers)).run(provider, model.head)
  return (yield* receipts).map(({ corroborated }) => corroborated)
})

/** The evidence of one node about the receipts. */
const answerOf = Effect.fnUntraced(function* (client: RpcClient) {
  const { provider, providers } = someProviders(client)
  const open = yield* CorroborationRepo.uncorroborated(yield* Reader, network, "own", Number.MAX_SAFE_INTEGER - 1, 10)
  const answers = yield* corroborateInternal(provider, yield* watchOf(providers), open)
  return Array.from(answers.values(), ({ is }) => is)
})

const corroborated = ["yes"]
const denied = ["no"]

describe("money that moved inside contracts (issue 14 row 6)", () => {
  story("is unverifiable after ten minutes where no other can check it, until one denies", [alice], function* (model) {
    model.traces = false
    model.mine([inside(alice, 5n, [alice])])
    expect(yield* reported(model, model.client)).toEqual([["call", "5"]])
    confirm(model)
    let other = failing({ ...model.client }, ofState)
    const { provider, providers } = someProviders(model.client, { ...other, send: (calls) => other.send(calls) })
    const { settlement, touched } = noting()
    const watch = yield* watchOf(providers, settlement)
    const { run } = makeCorroborator(watch)
    const flags = rows("SELECT corroborated, unverifiable, denied_by FROM receipts")
    yield* run(provider, model.head)
    expect(yield* flags).toEqual([{ corroborated: 0, unverifiable: 0, denied_by: null }])
    yield* TestClock.adjust("10 minutes")
    yield* run(provider, model.head)
    expect(yield* flags).toEqual([{ corroborated: 0, unverifiable: 1, denied_by: null }])
    expect(touched).toHaveLength(1)
    other = richer(model, -1n)
    yield* TestClock.adjust("10 minutes")
    yield* run(provider, model.head)
    expect(watch.troubles.reason).toContain("denies receipts")
    expect(yield* flags).toEqual([{ corroborated: 0, unverifiable: 0, denied_by: expect.any(String) }])
    expect(touched).toHaveLength(2)
  })

  story(
    "is not unverifiable while no other answers, though the serving one cannot check it",
    [alice],
    function* (model) {
      model.traces = false
      model.mine([inside(alice, 5n, [alice])])
      yield* reported(model, model.client)
      confirm(model)
      let other = failing(model.client, () => true, "timeout")
      const serving = failing({ ...model.client }, ofState)
      const { provider, providers } = someProviders(serving, { ...other, send: (calls) => other.send(calls) })
      const { run } = makeCorroborator(yield* watchOf({ ...providers, decidesAlone: () => true }))
      const flags = rows("SELECT corroborated, unverifiable FROM receipts")
      yield* TestClock.adjust("10 minutes")
      yield* run(provider, model.head)
      expect(yield* flags).toEqual([{ corroborated: 0, unverifiable: 0 }])
      other = failing(model.client, ofState)
      yield* TestClock.adjust("10 minutes")
      yield* run(provider, model.head)
      expect(yield* flags).toEqual([{ corroborated: 0, unverifiable: 1 }])
    }
  )

  for (const isDenied of [true, false]) {
    const title = isDenied
      ? "not where another one denies another part of its transaction"
      : "where none denies anything"
    story(`is decided by one alone that cannot be checked, ${title}, in one round`, [alice], function* (model) {
      model.traces = false
      model.mine([inside(alice, 5n, [alice])])
      yield* reported(model, model.client)
      confirm(model)
      if (isDenied) {
        yield* change(
          `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
             amount, canonical, corroborated, seen_at)
           SELECT chain, mode, block_hash, address, 'log:0xc0ffee:0x1', block_number, block_time, tx_hash, 'USDC', '7', 1, 0, 0
           FROM receipts`
        )
      }
      const { provider, providers } = someProviders(model.client, failing({ ...model.client }, ofState))
      const watch = yield* watchOf({ ...providers, decidesAlone: () => true })
      yield* makeCorroborator(watch).run(provider, model.head)
      const isCounted = rows("SELECT corroborated FROM receipts WHERE currency = 'ETH'")
      expect(yield* isCounted).toEqual([{ corroborated: isDenied ? 0 : 1 }])
    })
  }

  story("is not confirmed by one false balance, even with a real transaction", [alice], function* (model) {
    model.traces = false
    model.mine([inside(alice, 1n, [alice])])
    const liar = richer(model, 99n)
    expect(yield* reported(model, liar)).toEqual([["call", "100"]])
    expect(yield* agreedBy(model, liar, model.client)).toEqual([0])
    expect(yield* answerOf(model.client)).toEqual(denied)
  })

  story("is found with its real amount once two deny a larger one, which a liar keeps up", [alice], function* (model) {
    model.traces = false
    model.mine([inside(alice, 1n, [alice])])
    expect(yield* reported(model, richer(model, 99n))).toEqual([["call", "100"]])
    yield* agreedBy(model, model.client, model.client)
    // Before another provider serves.
    yield* lookBy(model, richer(model, 99n))
    expect(yield* rows("SELECT number FROM balances WHERE balance <> '0'")).toEqual([])
    expect(yield* rows("SELECT 1 FROM scans WHERE checked_number = ?", model.head.number)).toEqual([])
    yield* lookBy(model, model.client)
    expect((yield* receipts).map(({ amount }) => amount)).toEqual(["1"])
  })

  story("is not confirmed where one hid a direct transfer and attributed it elsewhere", [alice], function* (model) {
    model.traces = false
    const { deeds } = model.mine([direct(alice, 60n), { ...nothing, names: [alice] }])
    const hidden = distorted(model.client, (_, answer) => {
      const { transactions } = (answer ?? {}) as { transactions?: ReadonlyArray<{ hash: string }> }
      if (transactions === undefined) return answer
      return { ...(answer as object), transactions: transactions.filter(({ hash }) => hash !== deeds[0]?.hash) }
    })
    expect(yield* reported(model, hidden)).toEqual([["call", "60"]])
    expect(yield* answerOf(model.client)).toEqual(denied)
  })

  story("is corroborated by the balances around its block, whatever the owner spent there", [alice], function* (model) {
    model.mine([direct(alice, 50n)])
    yield* lookBy(model, model.client)
    model.traces = false
    model.mine([spends(alice, 30n), inside(alice, 5n, [alice]), direct(alice, 7n)])
    expect(yield* reported(model, model.client)).toEqual([
      ["tx:0", "50"],
      ["call", "5"],
      ["tx:2", "7"]
    ])
    expect(yield* agreedBy(model, model.client, { ...model.client })).toEqual([1, 1, 1])
  })

  // A node without traces attributes all of it to the one transaction that names the address.
  story("is not denied by balances of a block in which the owner may have spent more", [alice], function* (model) {
    model.traces = false
    const { hash } = model.mine([inside(alice, 5n, [alice])])
    yield* reported(model, model.client)
    // As an account does that someone else sends for: its nonce moves without a transaction of its own.
    const moved = (more: bigint) =>
      distorted(richer(model, more), ({ method, params }, answer) =>
        method === "eth_getTransactionCount" && JSON.stringify(params).includes(hash) ? "0x1" : answer
      )
    expect(yield* answerOf(richer(model, -2n))).toEqual(denied)
    expect(yield* answerOf(moved(-2n))).toEqual(["unable"])
    expect(yield* answerOf(moved(0n))).toEqual(corroborated)
  })

  story("is compared as the sum of one block", [alice], function* (model) {
    model.traces = false
    model.mine([inside(alice, 3n, [alice]), inside(alice, 4n)])
    expect(yield* reported(model, model.client)).toEqual([["call", "7"]])
    model.traces = true
    expect(yield* answerOf({ ...model.client })).toEqual(corroborated)
    expect(yield* answerOf(richer(model, -1n))).toEqual(denied)
  })

  story("is not corroborated beside an invented receipt by balances that show one only", [alice], function* (model) {
    const { deeds } = model.mine([inside(alice, 3n, [alice]), { ...nothing, names: [alice] }])
    expect(yield* reported(model, model.client)).toEqual([["call", "3"]])
    model.traces = false
    expect(yield* answerOf({ ...model.client })).toEqual(corroborated)
    yield* change(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash,
         currency, amount, payment_id, canonical, corroborated, seen_at)
       SELECT chain, mode, block_hash, address, position || '0', block_number, block_time, ?,
         currency, amount, payment_id, canonical, corroborated, seen_at FROM receipts`,
      deeds[1]?.hash ?? ""
    )
    // Two of the same amount cannot be distinguished.
    expect(yield* answerOf({ ...model.client })).toEqual(["unable", "unable"])
    yield* change("UPDATE receipts SET amount = '2' WHERE position GLOB '*0'")
    const answers = yield* answerOf({ ...model.client })
    expect([...answers].sort()).toEqual(["no", "yes"])
    yield* change("UPDATE receipts SET amount = '4' WHERE position GLOB '*0'")
    expect(yield* answerOf({ ...model.client })).toEqual(answers)
  })

  story("must be of a transaction that concerns the address, by calldata or by a trace", [alice], function* (model) {
    model.mine([inside(alice, 3n), nothing])
    expect(yield* reported(model, model.client)).toEqual([["call", "3"]])
    expect(yield* answerOf({ ...model.client })).toEqual(corroborated)
    // Its balances show that the money arrived in the block, by whichever transaction.
    expect(yield* answerOf(failing({ ...model.client }, ofTrace))).toEqual(corroborated)
    const other = distorted({ ...model.client }, (call, answer) =>
      ofTrace(call) ? { ...(answer as object), calls: [] } : answer
    )
    expect(yield* answerOf(other)).toEqual(denied)
  })

  story("is left open by a provider without its states, except by a trace of the amount", [alice], function* (model) {
    model.mine([inside(alice, 3n, [alice])])
    expect(yield* reported(model, model.client)).toEqual([["call", "3"]])
    const old = failing({ ...model.client }, ofState)
    expect(yield* answerOf(failing(old, ofTrace))).toEqual(["unable"])
    expect(yield* agreedBy(model, model.client, failing({ ...old }, ofTrace))).toEqual([0])
    expect(yield* answerOf({ ...old })).toEqual(corroborated)
    const less = distorted({ ...old }, (call, answer) =>
      ofTrace(call) ? { type: "CALL", from: alice, to: alice, value: "0x2", calls: [] } : answer
    )
    expect(yield* answerOf(less)).toEqual(denied)
  })

  for (const [title, lie] of [
    ["does not have its transaction", () => null],
    ["has it in another block", (receipt: object) => ({ ...receipt, blockHash: `0x${"1".repeat(64)}` })],
    ["says that it failed", (receipt: object) => ({ ...receipt, status: "0x0" })]
  ] as const) {
    story(`is denied by a provider that ${title}`, [alice], function* (model) {
      model.mine([inside(alice, 3n, [alice])])
      yield* reported(model, model.client)
      const other = distorted({ ...model.client }, ({ method }, answer) =>
        method === "eth_getTransactionReceipt" ? lie(answer as object) : answer
      )
      expect(yield* answerOf(other)).toEqual(denied)
    })
  }
})

it("a sum shows the only selection of amounts that adds up to it", () => {
  const amounts = [
    ["a", 3n],
    ["b", 4n],
    ["c", 8n]
  ] as const
  const selected = (total: bigint, of: ReadonlyArray<readonly [string, bigint]> = amounts) =>
    [...(onlySelection(of, total) ?? ["none"])].join()
  expect([0n, 3n, 7n, 11n, 15n].map((total) => selected(total))).toEqual(["", "a", "a,b", "a,c", "a,b,c"])
  expect(selected(5n)).toBe("none")
  expect(selected(3n, [...amounts, ["d", 3n]])).toBe("none")
  const many = Array.from({ length: 11 }, (_, n) => [`${n}`, 1n << BigInt(n)] as const)
  expect([selected(5n, many), selected(5n, many.slice(1, 11)), selected(6n, many.slice(1))]).toEqual([
    "none",
    "none",
    "1,2"
  ])
})
