import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import { Reader, Writer } from "../../../src/Sql.ts"
import { BalanceModel, direct, inside, nothing, spends } from "./BalanceModel.ts"
import {
  alice,
  bob,
  depsOf,
  firstAsked,
  inStore,
  look,
  network,
  owe,
  owing,
  receipts,
  round,
  scan,
  scanTo,
  told,
  toldOfAny,
  wanted
} from "./reconcileWorld.ts"

const tracesOf = (model: BalanceModel) => model.calls.filter(({ method }) => method === "debug_traceTransaction").length

describe("a round", () => {
  it.scoped("takes one call per thousand addresses while nothing changes, and stores nothing", () =>
    Effect.gen(function* () {
      const model = yield* owing("quiet")
      const all = Array.from({ length: 1001 }, (_, i) => `0x${(i + 1).toString(16).padStart(40, "d")}`)
      model.mine([])
      const reading = yield* reconcileBalances(depsOf(model.client), model.head, all.map(firstAsked))
      expect(reading).toMatchObject({ transfers: [], rows: [], replaced: [] })
      expect(model.calls.map(({ method }) => method)).toEqual(["eth_call", "eth_call"])
      model.calls.splice(0)
      yield* reconcileBalances(depsOf(model.client), model.head, all.slice(1).map(firstAsked))
      expect(model.calls.length).toBe(1)
    }).pipe(inStore)
  )

  it.scoped("reads once what an address held before its payment, which does not count", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("before")
      model.mine([direct(alice, 40n)])
      yield* scanTo(model.head)
      yield* owe(alice)
      model.mine([])
      yield* round(depsOf(model.client), model.head)
      expect(model.calls.length).toBeGreaterThan(1)
      model.mine([])
      model.calls.splice(0)
      yield* round(depsOf(model.client), model.head)
      expect(model.calls.map(({ method }) => method)).toEqual(["eth_call"])
      expect(yield* receipts).toEqual([])
    }).pipe(inStore)
  )

  it.scoped("moves `checked` to its block, and is stored only on the head that it was read at", () =>
    Effect.gen(function* () {
      const model = yield* owing("checked")
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
      expect(yield* receipts).toEqual([])
      expect((yield* scan)?.checked).toBeUndefined()

      const { stored, touched } = yield* round(depsOf(model.client), model.head)
      expect([stored, touched]).toEqual([true, [id]])
      expect((yield* scan)?.checked).toEqual({ number: 2, time: 20 })
      expect(yield* told(alice)).toEqual(["1 tx:0 5"])
      // The block of the receipt is one that later reorgs are measured against.
      const reader = yield* Reader
      expect(yield* Ledger.newestBlockAt(reader, network, 1)).toMatchObject({ number: 1 })
    }).pipe(inStore)
  )

  it.scoped("fails when its block was orphaned meanwhile", () =>
    Effect.gen(function* () {
      const model = yield* owing("reorg", alice)
      model.mine([direct(alice, 5n)])
      model.mine([])
      const at = model.head
      yield* scanTo(at)
      const asked = yield* wanted(at)
      const { client } = model
      let batches = 0
      const moving = {
        ...client,
        send: (calls: Parameters<typeof client.send>[0]) =>
          Effect.suspend(() => {
            // After the balances and the nonces have been read, by the block's hash.
            if (batches++ === 2) {
              const { time } = model.head
              model.rollback(2)
              model.mine([])
              model.mine([], time + 1)
            }
            return client.send(calls)
          })
      }
      const read = yield* Effect.either(reconcileBalances(depsOf(moving), at, asked))
      expect(Either.isLeft(read) && read.left).toMatchObject({ _tag: "RpcError", reason: "inconsistent" })
    }).pipe(inStore)
  )

  it.scoped("finds the block of income that an earlier provider denied", () =>
    Effect.gen(function* () {
      const model = yield* owing("denied", alice)
      model.mine([inside(alice, 5n)])
      model.mine([])
      const { client } = model
      const denying = {
        ...client,
        send: (calls: Parameters<typeof client.send>[0]) => Effect.succeed(calls.map(() => `0x${"0".repeat(64)}`))
      }
      yield* round(depsOf(denying), model.head)
      expect((yield* scan)?.checked?.number).toBe(2)
      expect(yield* receipts).toEqual([])
      model.mine([])
      yield* round(depsOf(client), model.head)
      expect(yield* toldOfAny(alice)).toEqual(["1 call:? 5"])
    }).pipe(inStore)
  )

  it.scoped("stores uncorroborated receipts as such, unattributed ones too", () =>
    Effect.gen(function* () {
      const model = yield* owing("corroborated", alice, bob)
      model.traces = false
      model.mine([direct(alice, 5n), inside(bob, 6n)])
      yield* scanTo(model.head)
      yield* look(depsOf(model.client), model.head, yield* wanted(model.head), { corroborated: false })
      expect((yield* receipts).map(({ corroborated, position }) => [position, corroborated])).toEqual([
        ["tx:0", 0],
        ["unattributed", 0]
      ])
    }).pipe(inStore)
  )

  it.scoped("resumes after a reorg: receipts above the common ancestor are searched for again", () =>
    Effect.gen(function* () {
      const model = yield* owing("again", alice)
      model.mine([direct(alice, 5n)])
      model.mine([inside(alice, 7n), spends(alice, 1n)])
      yield* round(depsOf(model.client), model.head)
      const before = yield* told(alice)
      expect(before.length).toBe(2)
      model.rollback(1)
      const ancestor = model.head
      model.mine([])
      model.mine([inside(alice, 8n, [alice])])
      const writer = yield* Writer
      yield* writer.write(Ledger.orphanAbove(network, ancestor))
      yield* round(depsOf(model.client), model.head)
      expect(yield* toldOfAny(alice)).toEqual(["1 tx:0 5", "3 call:? 8"])
    }).pipe(inStore)
  )

  it.scoped("does not count orphaned receipts: the same amount mined again later is found there", () =>
    Effect.gen(function* () {
      const model = yield* owing("same amount", alice)
      model.mine([direct(alice, 7n)])
      yield* round(depsOf(model.client), model.head)
      model.rollback(1)
      const writer = yield* Writer
      yield* writer.write(Ledger.orphanAbove(network, model.head))
      model.mine([])
      model.mine([direct(alice, 7n)])
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual(["2 tx:0 7"])
    }).pipe(inStore)
  )
})

describe("an error about one address", () => {
  /** A node that has no good block for one address. */
  const refusing = (model: BalanceModel, address: string) => ({
    ...model.client,
    send: (calls: Parameters<typeof model.client.send>[0]) =>
      calls.some(
        ({ method, params }) =>
          method === "eth_getBlockByNumber" && params[1] === true && model.came(address, 0).has(Number(params[0]))
      )
        ? new RpcError({
            host: "model",
            method: "eth_getBlockByNumber",
            reason: "garbage",
            detail: "as the test wants"
          })
        : model.client.send(calls)
  })

  it.scoped("leaves out that address only, and `checked` waits until it is given up", () =>
    Effect.gen(function* () {
      const model = yield* owing("refused")
      const id = yield* owe(alice)
      yield* owe(bob)
      model.mine([direct(alice, 5n)])
      model.mine([direct(bob, 6n)])
      const deps = depsOf(refusing(model, alice))
      const { reading, stored } = yield* round(deps, model.head)
      expect(stored).toBe(true)
      expect(reading.failed).toMatchObject([{ address: alice, error: { reason: "garbage" }, givenUp: false }])
      expect((yield* receipts).map(({ address, position }) => [address, position])).toEqual([[bob, "tx:0"]])
      expect((yield* scan)?.checked).toBeUndefined()

      const last = yield* look(deps, model.head, yield* wanted(model.head), { hopeless: new Set([alice]) })
      expect(last.touched).toEqual([id])
      expect(yield* told(alice)).toEqual(["2 unattributed 5"])
      expect((yield* scan)?.checked?.number).toBe(2)
      model.mine([])
      expect((yield* round(deps, model.head)).reading.failed).toEqual([])
    }).pipe(inStore)
  )
})

describe("income in each of a thousand blocks", () => {
  it.scoped("is bisected up to a limit, and what is left is unattributed", () =>
    Effect.gen(function* () {
      const model = yield* owing("staircase", alice)
      for (let i = 0; i < 1_000; i++) model.mine([direct(alice, 5n)])
      yield* round(depsOf(model.client), model.head)
      const count = (method: string) => model.calls.filter((call) => call.method === method).length
      // The state at the head, and those of the bisection.
      expect(count("eth_getTransactionCount")).toBeLessThan(260)
      const stored = yield* receipts
      expect(stored.filter(({ position }) => position === "unattributed").length).toBeLessThan(12)
      expect(stored.filter(({ position }) => position !== "unattributed").length).toBeGreaterThan(240)
      expect(stored.reduce((sum, { amount }) => sum + BigInt(amount), 0n)).toBe(5_000n)
    }).pipe(inStore)
  )
})

describe("a block of many calls", () => {
  it.scoped("is traced up to a limit, and so is a round", () =>
    Effect.gen(function* () {
      const model = yield* owing("dust")
      const dusted = Array.from({ length: 5 }, (_, i) => `0x${(i + 1).toString(16).padStart(40, "d")}`)
      for (const address of dusted) yield* owe(address)
      // Nothing names them, and what pays them comes last.
      const others = Array.from({ length: 150 }, () => nothing)
      for (const address of dusted) model.mine([...others, inside(address, 1n), inside(address, 1n)])
      yield* round(depsOf(model.client), model.head)
      const traced = tracesOf(model)
      expect(traced).toBe(300)
      expect((yield* receipts).map(({ amount, position }) => [position, amount])).toEqual(
        dusted.map(() => ["unattributed", "2"])
      )
      const one = new BalanceModel("dust of one")
      one.mine([...others, inside(alice, 1n)])
      yield* reconcileBalances(depsOf(one.client), one.head, [firstAsked(alice)])
      expect(tracesOf(one)).toBe(100)
    }).pipe(inStore)
  )
})
