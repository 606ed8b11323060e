import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { type BalanceModel, direct, inside, spends } from "../balances/BalanceModel.ts"
import { alice, bob, depsOf, inStore, owe, owing, receipts, round, scanTo } from "../balances/reconcileWorld.ts"
import { errorOf } from "../providing.ts"
import { claimOf, claimWith, ledger, looked } from "./claiming.ts"

/** The same node, which answers one method otherwise. */
const answering = ({ client }: BalanceModel, method: string, otherwise: (answer: object) => unknown): RpcClient => ({
  ...client,
  send: (calls) =>
    Effect.map(client.send(calls), (answers) =>
      answers.map((answer, i) => (calls[i]?.method === method ? otherwise(answer as object) : answer))
    )
})

/** The same node, which has no states but the newest. */
const forgetful = ({ client }: BalanceModel): RpcClient => ({
  ...client,
  send: (calls) =>
    calls.some(({ method }) => method === "eth_getBalance") ? errorOf("model", "state") : client.send(calls)
})

/** A block with one transaction, which the watcher has read past. */
const passed = (model: BalanceModel, ...deeds: Parameters<BalanceModel["mine"]>[0]) =>
  Effect.gen(function* () {
    const block = model.mine(deeds)
    yield* scanTo(model.head)
    return block.deeds
  })

const refusal = (clients: Parameters<typeof claimWith>[0], hash: string | undefined) =>
  Effect.map(Effect.flip(claimWith(clients, hash)), ({ message }) => message)

describe("a claim, where there are several providers", () => {
  it.scoped("finds a transaction that any of them knows, and its receipts are not corroborated yet", () =>
    Effect.gen(function* () {
      const model = yield* owing("known", alice)
      const [deed] = yield* passed(model, direct(alice, 7n))
      const unknowing = answering(model, "eth_getTransactionByHash", () => null)
      expect(yield* refusal([unknowing, unknowing], deed?.hash)).toContain("No provider of chains.base.test knows")
      expect(yield* claimWith([unknowing, model.client], deed?.hash)).toMatchObject({ added: 1 })
      expect(yield* receipts).toMatchObject([{ position: "tx:0", amount: "7", corroborated: 0 }])
    }).pipe(inStore)
  )

  it.scoped("takes the transaction's internal transfers from any of them", () =>
    Effect.gen(function* () {
      const model = yield* owing("traces", alice)
      const deeds = yield* passed(model, inside(alice, 7n))
      const silent: RpcClient = {
        ...model.client,
        send: (calls) =>
          calls[0]?.method === "debug_traceTransaction" ? errorOf("silent", "unsupported") : model.client.send(calls)
      }
      expect(yield* refusal([silent], deeds[0]?.hash)).toContain("no provider shows what its contracts moved")
      yield* claimWith([silent, model.client], deeds[0]?.hash)
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:0 7"])
    }).pipe(inStore)
  )

  it.scoped("takes the address's income from any of them", () =>
    Effect.gen(function* () {
      const model = yield* owing("states", alice)
      yield* looked(model, direct(alice, 20n))
      const deeds = yield* looked(model, inside(alice, 40n, [alice]), inside(alice, 60n), spends(alice, 7n))
      yield* claimWith([forgetful(model), model.client], deeds[1]?.hash)
      expect((yield* ledger(alice, deeds)).slice(-2)).toEqual(["2 call:0 40", "2 call:1 60"])
    }).pipe(inStore)
  )
})

describe("a claim", () => {
  it.scoped("is not bounded by balances between which the owner has spent", () =>
    Effect.gen(function* () {
      const model = yield* owing("spent", alice)
      yield* looked(model, direct(alice, 50n))
      model.traces = false
      const deeds = yield* looked(model, inside(alice, 40n), inside(bob, 1n), spends(alice, 3n))
      model.traces = true
      expect(yield* ledger(alice, deeds)).toContain("2 unattributed 40")
      yield* claimWith([forgetful(model)], deeds[0]?.hash)
      expect((yield* ledger(alice, deeds)).slice(-1)).toEqual(["2 call:0 40"])
    }).pipe(inStore)
  )

  it.scoped("does not reduce orphaned receipts", () =>
    Effect.gen(function* () {
      const model = yield* owing("orphan", alice)
      model.traces = false
      const { deeds } = model.mine([inside(alice, 3n), inside(alice, 4n)])
      model.mine([])
      model.states = 0
      yield* round(depsOf(model.client), model.head)
      model.states = 2
      model.traces = true
      const writer = yield* Writer
      yield* writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* tx.run(
            `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
               amount, payment_id, canonical, corroborated, seen_at)
             SELECT chain, mode, '0xgone', address, position, 1, block_time, tx_hash, currency, '9', payment_id, 0, corroborated,
               seen_at FROM receipts`
          )
        })
      )
      // One of which it is not known that it does not trace.
      yield* claimWith([{ ...model.client }], deeds[0]?.hash)
      expect(yield* ledger(alice, deeds)).toEqual(["1 call:0 3", "2 unattributed 4"])
    }).pipe(inStore)
  )

  it.scoped("credits addresses of its own mode only", () =>
    Effect.gen(function* () {
      const model = yield* owing("mode")
      yield* owe(alice)
      const [deed] = yield* passed(model, direct(alice, 7n))
      const writer = yield* Writer
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE payments SET mode = 'live'")))
      expect(yield* refusal([model.client], deed?.hash)).toContain("handed out here in test mode")
      yield* writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* tx.run("INSERT INTO gap_addresses SELECT address, 'live', 'w', 9, 0 FROM payments")
          yield* tx.run("DELETE FROM payments")
        })
      )
      expect(yield* refusal([model.client], deed?.hash)).toContain("handed out here in test mode")
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE gap_addresses SET mode = 'test'")))
      expect((yield* claimOf(model, deed?.hash)).credits).toMatchObject([{ amount: 7n, payment: undefined }])
    }).pipe(inStore)
  )

  it.scoped("is refused before the transaction's block is scanned, and for a failed transaction", () =>
    Effect.gen(function* () {
      const model = yield* owing("waits", alice)
      const [failed] = yield* passed(model, { ...direct(alice, 7n), fails: true })
      expect(yield* refusal([model.client], failed?.hash)).toContain("is in block 1, where it failed")
      const [paid] = model.mine([direct(alice, 7n)]).deeds
      expect(yield* refusal([model.client], paid?.hash)).toContain(
        "is in block 2, and chains.base.test has been read up to 1"
      )
      yield* scanTo(model.head)
      const pending = answering(model, "eth_getTransactionReceipt", () => null)
      expect(yield* refusal([pending], paid?.hash)).toContain("is known and in no block yet")
      expect(yield* receipts).toEqual([])
      expect(yield* claimOf(model, paid?.hash)).toMatchObject({ added: 1, blockNumber: 2 })
    }).pipe(inStore)
  )
})
