import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { claim, claimOnce } from "../../../src/Chains/repair/claim.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { change } from "../../lib/rows.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { type BalanceModel, type Deed, direct, inside, nothing, spends } from "../balances/BalanceModel.ts"
import { alice, bob, depsOf, ledgerLines, owe, receipts, round, scanTo, watchOf } from "../balances/reconcileWorld.ts"
import { failing, ofState, ofTrace, story } from "../balances/story.ts"
import { distorted } from "../twisted.ts"

type Deeds = ReadonlyArray<{ readonly hash: string }>
type Clients = readonly [RpcClient, ...Array<RpcClient>]

/** A claim with these providers, of which the first serves. */
const claimWith = (clients: Clients, hash = "") =>
  Effect.gen(function* () {
    const { provider, providers } = someProviders(...clients)
    const watch = yield* watchOf(providers)
    return yield* claim((work) => work(watch, provider), hash)
  })
const claimOf = ({ client }: BalanceModel, hash: string | undefined) => claimWith([client], hash)
const refusal = (clients: Clients, hash: string | undefined) =>
  Effect.map(Effect.flip(claimWith(clients, hash)), ({ message }) => message)

/** As `ledgerLines`, with each transaction by its index in the block. */
const ledger = (deeds: Deeds) =>
  Effect.map(ledgerLines(alice), (lines) =>
    lines.map((line) => deeds.reduce((text, { hash }, place) => text.replace(hash, `${place}`), line)).sort()
  )

/** A round with a provider that does not trace: the transaction that names an address is taken to have brought all. */
const roundUntraced = (model: BalanceModel) =>
  Effect.gen(function* () {
    model.traces = false
    yield* round(depsOf({ ...model.client }), model.head)
    model.traces = true
  })

/** Mines a block with these transactions, after which the watcher does its part. */
const mined =
  <A, E, R>(after: (model: BalanceModel) => Effect.Effect<A, E, R>) =>
  (model: BalanceModel, ...deeds: ReadonlyArray<Deed>) =>
    Effect.suspend(() => {
      const block = model.mine(deeds)
      return Effect.as(after(model), block.deeds)
    })
const looked = mined((model) => round(depsOf(model.client), model.head))
const lookedUntraced = mined(roundUntraced)
const passed = mined((model) => scanTo(model.head))

describe("a claim of one of several transactions that paid an address in one block", () => {
  story("takes its money from the transaction to which all of it was attributed", [alice, bob], function* (model) {
    const deeds = yield* lookedUntraced(model, inside(alice, 40n, [alice]), inside(alice, 50n), inside(alice, 10n))
    expect(yield* ledger(deeds)).toEqual(["1 call:0 100"])
    yield* claimOf(model, deeds[1]?.hash)
    expect(yield* ledger(deeds)).toEqual(["1 call:0 50", "1 call:1 50"])
    yield* claimOf(model, deeds[2]?.hash)
    yield* claimOf(model, deeds[1]?.hash)
    expect(yield* ledger(deeds)).toEqual(["1 call:0 40", "1 call:1 50", "1 call:2 10"])
  })

  story("works where one transferred nothing, and all states of the block are pruned", [alice, bob], function* (model) {
    const deeds = yield* looked(model, inside(bob, 1n, [alice]), inside(alice, 60n))
    expect(yield* ledger(deeds)).toEqual(["1 call:0 60"])
    for (let i = 0; i < 5; i++) model.mine([])
    yield* scanTo(model.head)
    model.states = 2
    yield* claimOf(model, deeds[1]?.hash)
    expect(yield* ledger(deeds)).toEqual(["1 call:1 60"])
  })

  story("works for one in another block, where the states between were pruned then", [alice], function* (model) {
    const deeds = [inside(alice, 3n, [alice]), inside(alice, 4n)].flatMap((deed) => model.mine([deed]).deeds)
    for (let i = 0; i < 5; i++) model.mine([])
    model.states = 1
    yield* roundUntraced(model)
    expect(yield* ledger(deeds)).toEqual(["1 call:0 7"])
    model.states = Number.POSITIVE_INFINITY
    yield* claimOf(model, deeds[1]?.hash)
    expect(yield* ledger(deeds)).toEqual(["1 call:0 3", "2 call:1 4"])
  })

  story("works where the owner spends in the same block", [alice], function* (model) {
    model.mine([inside(alice, 20n, [alice])])
    yield* roundUntraced(model)
    const { deeds } = model.mine([inside(alice, 40n, [alice]), inside(alice, 60n), spends(alice, 7n)])
    yield* roundUntraced(model)
    expect(yield* ledger(deeds)).toContain("2 call:0 100")
    yield* claimOf(model, deeds[1]?.hash)
    expect((yield* ledger(deeds)).slice(-2)).toEqual(["2 call:0 40", "2 call:1 60"])
  })

  story("is refused where the ledger would exceed the income", [alice, bob], function* (model) {
    const deeds = yield* lookedUntraced(model, inside(alice, 40n, [alice]), inside(alice, 60n))
    // As if it had come by a transfer to the address itself, which no trace is asked about.
    yield* change("UPDATE receipts SET position = 'tx:0' WHERE position LIKE 'call:%'")
    expect(yield* refusal([model.client], deeds[1]?.hash)).toContain(
      `${alice} got 100 wei in block 1, and with it the ledger would have 60 more`
    )
    expect(yield* ledger(deeds)).toEqual(["1 tx:0 100"])
  })

  story("does not count what an address sends to itself", [alice], function* (model) {
    yield* looked(model, direct(alice, 50n))
    const [deed] = yield* looked(model, { ...nothing, moves: [{ from: alice, to: alice, amount: 5n }] })
    expect(yield* refusal([model.client], deed?.hash)).toContain("pays no address that was handed out")
    expect(yield* ledger([])).toEqual(["1 tx:0 50"])
  })

  story("counts the transaction's own value once, although its trace has it too", [alice], function* (model) {
    const [deed] = yield* looked(model, direct(alice, 50n))
    yield* change("DELETE FROM balances")
    yield* change("DELETE FROM receipts")
    expect(yield* claimOf(model, deed?.hash)).toMatchObject({ added: 1, credits: [{ amount: 50n }] })
    expect(yield* ledger([])).toEqual(["1 tx:0 50"])
  })

  story("credits what is missing", [alice, bob], function* (model) {
    const deeds = yield* lookedUntraced(model, inside(alice, 40n, [alice]), inside(alice, 60n))
    yield* change("UPDATE receipts SET amount = '40'")
    expect(yield* claimOf(model, deeds[1]?.hash)).toMatchObject({ added: 1 })
    expect(yield* ledger(deeds)).toEqual(["1 call:0 40", "1 call:1 60"])
  })
})

describe("a claim, where there are several providers", () => {
  story("finds a transaction that any of them knows; its receipts are not corroborated", [alice], function* (model) {
    const [deed] = yield* passed(model, direct(alice, 7n))
    const unknowing = distorted(model.client, ({ method }, answer) =>
      method === "eth_getTransactionByHash" || method === "eth_getTransactionReceipt" ? null : answer
    )
    expect(yield* refusal([unknowing, unknowing], deed?.hash)).toContain("No provider of chains.base.test knows")
    expect(yield* claimWith([unknowing, model.client], deed?.hash)).toMatchObject({ added: 1 })
    expect(yield* receipts).toMatchObject([{ position: "tx:0", amount: "7", corroborated: 0 }])
  })

  story("is not taken from a provider that answers with another transaction of its block", [alice], function* (model) {
    const [small, large] = yield* passed(model, direct(alice, 7n), direct(alice, 70n))
    const asks = (hash = "") => model.client.send([{ method: "eth_getTransactionByHash", params: [hash] }])
    const [another] = yield* asks(large?.hash)
    const mixing = distorted(model.client, ({ method }, answer) =>
      method === "eth_getTransactionByHash" ? another : answer
    )
    const { provider, providers } = someProviders(mixing)
    const { message } = yield* Effect.flip(claimOnce(yield* watchOf(providers), provider, small?.hash ?? ""))
    expect(message).toContain(`it is ${large?.hash}`)
    expect(yield* receipts).toEqual([])
  })

  story("takes the transaction's internal transfers from any of them", [alice], function* (model) {
    const deeds = yield* passed(model, inside(alice, 7n))
    const silent = failing(model.client, ofTrace, "unsupported")
    expect(yield* refusal([silent], deeds[0]?.hash)).toContain("no provider shows what its contracts moved")
    yield* claimWith([silent, model.client], deeds[0]?.hash)
    expect(yield* ledger(deeds)).toEqual(["1 call:0 7"])
  })

  story("takes the address's income from any of them", [alice], function* (model) {
    yield* looked(model, direct(alice, 20n))
    const deeds = yield* looked(model, inside(alice, 40n, [alice]), inside(alice, 60n), spends(alice, 7n))
    yield* claimWith([failing(model.client, ofState), model.client], deeds[1]?.hash)
    expect((yield* ledger(deeds)).slice(-2)).toEqual(["2 call:0 40", "2 call:1 60"])
  })
})

describe("a claim", () => {
  story("is not bounded by balances between which the owner has spent", [alice], function* (model) {
    yield* looked(model, direct(alice, 50n))
    model.traces = false
    const deeds = yield* looked(model, inside(alice, 40n), inside(bob, 1n), spends(alice, 3n))
    model.traces = true
    expect(yield* ledger(deeds)).toContain("2 unattributed 40")
    yield* claimWith([failing(model.client, ofState)], deeds[0]?.hash)
    expect((yield* ledger(deeds)).slice(-1)).toEqual(["2 call:0 40"])
  })

  story("counts what the owner spent in no other block than the transaction's", [alice], function* (model) {
    yield* looked(model, direct(alice, 50n))
    const deeds = yield* lookedUntraced(model, inside(alice, 40n, [alice]), inside(alice, 60n), spends(alice, 7n))
    const renamed = distorted(model.client, ({ method, params }, answer) =>
      method === "eth_getBlockByNumber" && params[1] === true
        ? { ...(answer as object), hash: `0x${"7".repeat(64)}`, transactions: [] }
        : answer
    )
    yield* claimWith([renamed, model.client], deeds[1]?.hash)
    expect((yield* ledger(deeds)).slice(-2)).toEqual(["2 call:0 40", "2 call:1 60"])
  })

  story("does not reduce orphaned receipts", [alice], function* (model) {
    model.traces = false
    const { deeds } = model.mine([inside(alice, 3n), inside(alice, 4n)])
    model.mine([])
    model.states = 0
    yield* round(depsOf(model.client), model.head)
    model.states = 2
    model.traces = true
    yield* change(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
             amount, payment_id, canonical, corroborated, seen_at)
           SELECT chain, mode, '0xgone', address, position, 1, block_time, tx_hash, currency, '9', payment_id, 0, corroborated,
             seen_at FROM receipts`
    )
    // One of which it is not known that it does not trace.
    yield* claimWith([{ ...model.client }], deeds[0]?.hash)
    expect(yield* ledger(deeds)).toEqual(["1 call:0 3", "2 unattributed 4"])
  })

  story("credits addresses of its own mode only", [], function* (model) {
    yield* owe(alice)
    const [deed] = yield* passed(model, direct(alice, 7n))
    yield* change("UPDATE payments SET mode = 'live'")
    expect(yield* refusal([model.client], deed?.hash)).toContain("handed out here in test mode")
    yield* change("INSERT INTO gap_addresses SELECT address, 'live', 'w', 9, 0 FROM payments")
    yield* change("DELETE FROM payments")
    expect(yield* refusal([model.client], deed?.hash)).toContain("handed out here in test mode")
    yield* change("UPDATE gap_addresses SET mode = 'test'")
    expect((yield* claimOf(model, deed?.hash)).credits).toMatchObject([{ amount: 7n, payment: undefined }])
  })

  story("is refused before the transaction's block is scanned, and for a failed one", [alice], function* (model) {
    const [failed] = yield* passed(model, { ...direct(alice, 7n), fails: true })
    expect(yield* refusal([model.client], failed?.hash)).toContain("is in block 1, where it failed")
    const [paid] = model.mine([direct(alice, 7n)]).deeds
    expect(yield* refusal([model.client], paid?.hash)).toContain(
      "is in block 2, and chains.base.test has been read up to 1"
    )
    yield* scanTo(model.head)
    const pending = distorted(model.client, ({ method }, answer) =>
      method === "eth_getTransactionReceipt" ? null : answer
    )
    expect(yield* refusal([pending], paid?.hash)).toContain("is known and in no block yet")
    expect(yield* receipts).toEqual([])
    expect(yield* claimOf(model, paid?.hash)).toMatchObject({ added: 1, blockNumber: 2 })
  })
})
