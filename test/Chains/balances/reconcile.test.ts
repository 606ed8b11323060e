import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { Reader, Writer } from "../../../src/Sql.ts"
import { distorted } from "../twisted.ts"
import { BalanceModel, direct, inside, nothing, spends } from "./BalanceModel.ts"
import {
  alice,
  bob,
  depsOf,
  firstAsked,
  ledgerLines,
  ledgerLinesByAny,
  look,
  network,
  owe,
  receipts,
  refusing,
  round,
  scan,
  scanTo,
  wanted
} from "./reconcileWorld.ts"
import { ofTrace, story } from "./story.ts"

const countOf = ({ calls }: BalanceModel, method: string) => calls.filter((call) => call.method === method).length
const checkedTo = Effect.map(scan, (now) => now?.checked?.number)

/** A node that reports the same amount for all balances, read by `eth_call`. */
const holding = ({ client }: BalanceModel, amount: bigint) =>
  distorted(client, ({ method }, answer) =>
    method === "eth_call" ? `0x${amount.toString(16).padStart(64, "0")}` : answer
  )

describe("a round", () => {
  story("takes one call per thousand addresses while nothing changes, and stores nothing", [], function* (model) {
    const all = Array.from({ length: 1001 }, (_, i) => `0x${(i + 1).toString(16).padStart(40, "d")}`)
    model.mine([])
    const reading = yield* reconcileBalances(depsOf(model.client), model.head, all.map(firstAsked))
    expect(reading).toMatchObject({ transfers: [], rows: [], replaced: [] })
    expect(model.calls.splice(0).map(({ method }) => method)).toEqual(["eth_call", "eth_call"])
    yield* reconcileBalances(depsOf(model.client), model.head, all.slice(1).map(firstAsked))
    expect(model.calls.length).toBe(1)
  })

  story("reads once what an address held before its payment, which does not count", [], function* (model) {
    model.mine([direct(alice, 40n)])
    yield* scanTo(model.head)
    yield* owe(alice)
    model.mine([])
    yield* round(depsOf(model.client), model.head)
    expect(model.calls.splice(0).length).toBeGreaterThan(1)
    model.mine([])
    yield* round(depsOf(model.client), model.head)
    expect(model.calls.map(({ method }) => method)).toEqual(["eth_call"])
    expect(yield* receipts).toEqual([])
  })

  story("moves `checked` to its block, and is stored only on the head that it was read at", [], function* (model) {
    const id = yield* owe(alice)
    model.mine([direct(alice, 5n)])
    const at = model.head
    yield* scanTo(at)
    const asked = yield* wanted(at)
    model.mine([])
    yield* scanTo(model.head)
    expect((yield* look(depsOf(model.client), at, asked)).stored).toBe(false)
    // Nor on another block of that number.
    yield* scanTo({ ...at, hash: "0xother" })
    expect((yield* look(depsOf(model.client), at, asked)).stored).toBe(false)
    expect([yield* receipts, yield* checkedTo]).toEqual([[], undefined])

    expect(yield* round(depsOf(model.client), model.head)).toMatchObject({ stored: true, touched: [id] })
    expect((yield* scan)?.checked).toEqual({ number: 2, time: 20 })
    expect(yield* ledgerLines(alice)).toEqual(["1 tx:0 5"])
    // The block of the receipt is one that later reorgs are measured against.
    expect(yield* Ledger.newestBlockAt(yield* Reader, network, 1)).toMatchObject({ number: 1 })
  })

  story("fails when its block was orphaned meanwhile", [alice], function* (model) {
    model.mine([direct(alice, 5n)])
    model.mine([])
    const at = model.head
    yield* scanTo(at)
    const asked = yield* wanted(at)
    let batches = 0
    const moving: RpcClient = {
      ...model.client,
      send: (calls) =>
        Effect.suspend(() => {
          // After the balances and the nonces have been read, by the block's hash.
          if (batches++ === 2) {
            const { time } = model.head
            model.rollback(2)
            model.mine([])
            model.mine([], time + 1)
          }
          return model.client.send(calls)
        })
    }
    expect(yield* Effect.flip(reconcileBalances(depsOf(moving), at, asked))).toMatchObject({ reason: "inconsistent" })
  })

  story("finds the block of income that an earlier provider denied", [alice], function* (model) {
    model.mine([inside(alice, 5n)])
    model.mine([])
    yield* round(depsOf(holding(model, 0n)), model.head)
    expect([yield* receipts, yield* checkedTo]).toEqual([[], 2])
    model.mine([])
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLinesByAny(alice)).toEqual(["1 call:? 5"])
  })

  story("stores uncorroborated receipts as such, unattributed ones too", [alice, bob], function* (model) {
    model.traces = false
    model.mine([direct(alice, 5n), inside(bob, 6n)])
    yield* scanTo(model.head)
    yield* look(depsOf(model.client), model.head, yield* wanted(model.head), { corroborated: false })
    expect((yield* receipts).map(({ corroborated, position }) => [position, corroborated])).toEqual([
      ["tx:0", 0],
      ["unattributed", 0]
    ])
  })

  story("resumes after a reorg: receipts above the common ancestor are searched for again", [alice], function* (model) {
    model.mine([direct(alice, 5n)])
    model.mine([inside(alice, 7n), spends(alice, 1n)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(alice)).toHaveLength(2)
    model.rollback(1)
    const ancestor = model.head
    model.mine([])
    model.mine([inside(alice, 8n, [alice])])
    yield* (yield* Writer).write(Ledger.orphanAbove(network, ancestor))
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLinesByAny(alice)).toEqual(["1 tx:0 5", "3 call:? 8"])
  })

  story("finds income hidden by a spend of the same amount once the nonce has changed", [alice], function* (model) {
    // With the fee: after the second block it holds what it held.
    for (const deeds of [[direct(alice, 50n)], [inside(alice, 5n), spends(alice, 3n)], [inside(alice, 4n)]]) {
      model.mine(deeds)
      yield* round(depsOf(model.client), model.head)
    }
    expect(yield* ledgerLinesByAny(alice)).toEqual(["1 tx:0 50", "2 call:? 5", "3 call:? 4"])
  })

  story("with all states pruned searches above the last one, however old the balance point is", [], function* (model) {
    model.states = 0
    for (let n = 1; n < 600; n++) model.mine([])
    model.mine([direct(alice, 5n)])
    model.mine([])
    const asked = { ...firstAsked(alice), comparedTo: 590 }
    const { transfers } = yield* reconcileBalances(depsOf(model.client), model.head, [asked])
    expect(transfers.map(({ blockNumber, position }) => [blockNumber, position])).toEqual([[600, "tx:0"]])
  })

  story("does not trace a transaction that the ledger has for the rest of its block's income", [], function* (model) {
    // More than one batch of traces has.
    const others = Array.from({ length: 10 }, () => nothing)
    const { deeds, hash } = model.mine([inside(alice, 9n), ...others, inside(alice, 4n)])
    const txHash = deeds[0]?.hash
    const credits = [{ blockNumber: 1, blockHash: hash, position: `call:${txHash}`, amount: 9n }]
    const { transfers } = yield* reconcileBalances(depsOf(model.client), model.head, [
      { ...firstAsked(alice), credits }
    ])
    expect(transfers).toMatchObject([{ position: `call:${deeds.at(-1)?.hash}`, amount: 4n }])
  })

  story("bisects income in each of 1,000 blocks up to a limit; the rest is unattributed", [alice], function* (model) {
    for (let i = 0; i < 1_000; i++) model.mine([direct(alice, 5n)])
    yield* round(depsOf(model.client), model.head)
    // The state at the head, and those of the bisection.
    expect(countOf(model, "eth_getTransactionCount")).toBeLessThan(260)
    const stored = yield* receipts
    const unattributed = stored.filter(({ position }) => position === "unattributed").length
    expect(unattributed).toBeLessThan(12)
    expect(stored.length - unattributed).toBeGreaterThan(240)
    expect(stored.reduce((sum, { amount }) => sum + BigInt(amount), 0n)).toBe(5_000n)
  })

  story("traces up to a limit, as does the search of one block", [], function* (model) {
    const dusted = Array.from({ length: 5 }, (_, i) => `0x${(i + 1).toString(16).padStart(40, "d")}`)
    for (const address of dusted) yield* owe(address)
    // Nothing names them, and what pays them comes last.
    const others = Array.from({ length: 150 }, () => nothing)
    for (const address of dusted) model.mine([...others, inside(address, 1n), inside(address, 1n)])
    yield* round(depsOf(model.client), model.head)
    expect(model.calls.filter(ofTrace)).toHaveLength(300)
    expect((yield* receipts).map(({ amount, position }) => [position, amount])).toEqual(
      dusted.map(() => ["unattributed", "2"])
    )
    const one = new BalanceModel("dust of one")
    one.mine([...others, inside(alice, 1n)])
    yield* reconcileBalances(depsOf(one.client), one.head, [firstAsked(alice)])
    expect(one.calls.filter(ofTrace)).toHaveLength(100)
  })
})

describe("an error about one address", () => {
  story("leaves out that address only, and `checked` waits until it is given up", [], function* (model) {
    const id = yield* owe(alice)
    yield* owe(bob)
    model.mine([direct(alice, 5n)])
    model.mine([direct(bob, 6n)])
    const deps = depsOf(refusing(model, () => [1]))
    const { reading, stored } = yield* round(deps, model.head)
    expect(stored).toBe(true)
    expect(reading.failed).toMatchObject([{ address: alice, error: { reason: "garbage" }, givenUp: false }])
    expect((yield* receipts).map(({ address, position }) => [address, position])).toEqual([[bob, "tx:0"]])
    expect(yield* checkedTo).toBeUndefined()

    const last = yield* look(deps, model.head, yield* wanted(model.head), { hopeless: new Set([alice]) })
    expect(last.touched).toEqual([id])
    expect([yield* ledgerLines(alice), yield* checkedTo]).toEqual([["2 unattributed 5"], 2])
    // It is not searched for again before it is due, and attributed once its block can be read.
    model.mine([])
    expect((yield* round(deps, model.head)).reading.failed).toEqual([])
    model.mine([], 60)
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(alice)).toEqual(["1 tx:0 5"])
  })

  story("keeps a round incomplete while one of two is not given up", [alice, bob], function* (model) {
    model.mine([direct(alice, 5n)])
    model.mine([direct(bob, 6n)])
    yield* scanTo(model.head)
    const lookAt = (...hopeless: ReadonlyArray<string>) =>
      Effect.flatMap(wanted(model.head), (asked) =>
        look(depsOf(refusing(model, () => [1, 2])), model.head, asked, { hopeless: new Set(hopeless) })
      )
    const { reading } = yield* lookAt(alice)
    expect(reading.failed.map(({ address, givenUp }) => [address, givenUp]).sort()).toEqual([
      [alice, true],
      [bob, false]
    ])
    expect(yield* checkedTo).toBeUndefined()
    yield* lookAt(alice, bob)
    expect(yield* checkedTo).toBe(2)
  })

  story("in the search for an unattributed receipt does not block the round", [alice, bob], function* (model) {
    model.traces = false
    model.mine([inside(alice, 3n), inside(alice, 4n)])
    yield* round(depsOf(model.client), model.head)
    model.mine([direct(bob, 6n)])
    yield* round(depsOf(refusing(model, () => [1])), model.head)
    expect([yield* ledgerLines(alice), yield* ledgerLines(bob)]).toEqual([["1 unattributed 7"], ["2 tx:0 6"]])
    expect(yield* checkedTo).toBe(2)
  })
})

describe("a balance in one response that the next one contradicts", () => {
  const disputed = { rows: [], failed: [{ address: alice, error: { reason: "inconsistent" } }] }

  story("does not become new money when the truth comes back: too low", [alice], function* (model) {
    model.mine([direct(alice, 60n)])
    yield* round(depsOf(model.client), model.head)
    model.mine([])
    expect((yield* round(depsOf(holding(model, 0n)), model.head)).reading).toMatchObject(disputed)
    model.mine([])
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(alice)).toEqual(["1 tx:0 60"])
  })

  story("does not become money: too high", [alice], function* (model) {
    model.mine([])
    const asked = yield* wanted(model.head)
    const deps = depsOf(holding(model, 100n))
    expect((yield* round(deps, model.head)).reading).toMatchObject(disputed)
    // Also after the wait for a better response is over: the smaller of the two counts.
    const last = yield* reconcileBalances(deps, model.head, asked, new Set([alice]))
    expect(last).toMatchObject({ transfers: [], failed: [{ givenUp: true }] })
    model.mine([])
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(alice)).toEqual([])
  })
})
