import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Balances from "../../../src/Chains/balances/BalancesRepo.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import { type Db, Reader, Tx, Writer } from "../../../src/Sql.ts"
import { direct, inside } from "./BalanceModel.ts"
import {
  alice,
  bob,
  depsOf,
  inStore,
  look,
  network,
  owe,
  owing,
  round,
  scan,
  scanTo,
  told,
  toldOfAny,
  wanted
} from "./reconcileWorld.ts"

const live: Network = { chain: "base", mode: "live" }
const carol = `0x${"c3".repeat(20)}`

const change = (sql: string, ...params: Parameters<Db["run"]>[1] & object) =>
  Effect.flatMap(Writer, (writer) => writer.write(Effect.flatMap(Tx, (tx) => tx.run(sql, params))))
const reorgTo = (block: Parameters<typeof Ledger.orphanAbove>[1]) =>
  Effect.flatMap(Writer, (writer) => writer.write(Ledger.orphanAbove(network, block)))
const confirm = change("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1")

/** A payment as `owe` makes it, in live mode. */
const oweLive = (...payment: Parameters<typeof owe>) =>
  Effect.flatMap(owe(...payment), (id) => change("UPDATE payments SET mode = 'live' WHERE id = ?", id))

describe("two modes in one database", () => {
  it.scoped("a round covers the payments of its own mode only, and is no round of the other mode", () =>
    Effect.gen(function* () {
      const model = yield* owing("modes", alice)
      yield* scanTo(model.head, live)
      yield* oweLive(bob, { expiresAt: 100 })
      yield* oweLive(carol, { chain: "ethereum", currency: "USDC", expiresAt: 100 })
      model.mine([direct(alice, 5n), direct(bob, 6n)], 161)
      const reader = yield* Reader
      const at = model.head
      expect((yield* wanted(at)).map(({ address }) => address)).toEqual([alice])
      expect(yield* Balances.due(reader, network, at, 60_000)).toBe(false)
      yield* round(depsOf(model.client), at)
      yield* scanTo(at, live)
      expect(yield* Balances.due(reader, live, at, 60_000)).toBe(true)
      expect((yield* wanted(at, live)).map(({ address, own }) => [address, own])).toEqual([
        [bob, true],
        [carol, false]
      ])
      expect((yield* Ledger.scan(reader, live))?.checked).toBeUndefined()
      expect((yield* scan)?.checked?.number).toBe(1)
    }).pipe(inStore)
  )

  it.scoped("each has its own ended payments, and its own payments that lost coins to a reorg", () =>
    Effect.gen(function* () {
      const model = yield* owing("ended", alice)
      yield* oweLive(bob, { endedAt: 5 })
      yield* owe(carol, { endedAt: 5 })
      const reader = yield* Reader
      const ended = (on: Network) =>
        Effect.map(Balances.endedPage(reader, on, 0, undefined, 10), ({ asked }) => asked.map((one) => one.address))
      expect([yield* ended(network), yield* ended(live)]).toEqual([[carol], [bob]])

      model.mine([direct(alice, 5n)])
      yield* round(depsOf(model.client), model.head)
      yield* scanTo(model.head, live)
      expect(yield* Balances.orphanedQueries(reader, live, 0)).toEqual([])
      yield* confirm
      yield* reorgTo({ number: 0, hash: "0x", time: 0 })
      const lostCoins = (on: Network) => Balances.asked(reader, on, model.head, 60_000, 0)
      expect((yield* lostCoins(network)).map(({ address }) => address)).toEqual([alice])
      expect(yield* lostCoins(live)).toEqual([])
    }).pipe(inStore)
  )

  it.scoped("the creation block of a payment for another chain comes from blocks of its own mode", () =>
    Effect.gen(function* () {
      yield* scanTo({ number: 7, hash: "0x7", time: 70 })
      yield* scanTo({ number: 9, hash: "0x9", time: 90 }, live)
      yield* scanTo({ number: 8, hash: "0x8", time: 80 }, { chain: "optimism", mode: "test" })
      yield* owe(alice, { chain: "ethereum", currency: "USDC", createdAt: 100_000, expiresAt: 200 })
      const [asked] = yield* wanted({ number: 20, hash: "0x20", time: 300 })
      expect(asked?.known).toMatchObject({ number: 7, assumed: true })
    }).pipe(inStore)
  )
})

describe("a round covers", () => {
  it.scoped("a payment in the chain's coin once at its deadline", () =>
    Effect.gen(function* () {
      const model = yield* owing("once")
      yield* owe(alice, { expiresAt: 100 })
      const at = { ...model.head, time: 161 }
      expect((yield* wanted(at)).map(({ address, withNonce }) => [address, withNonce])).toEqual([[alice, true]])
    }).pipe(inStore)
  )

  it.scoped(
    "a payment created without a known head from this round's block on; once ended, it is compared as another chain's",
    () =>
      Effect.gen(function* () {
        const model = yield* owing("unplaced", alice)
        yield* owe(bob, { endedAt: 5 })
        model.mine([direct(alice, 40n), direct(bob, 50n)])
        yield* scanTo(model.head)
        yield* change("UPDATE payments SET created_head = NULL")
        const [asked] = yield* wanted(model.head)
        expect(asked?.known).toMatchObject({ number: 1, assumed: true })
        yield* round(depsOf(model.client), model.head)
        expect(yield* told(alice)).toEqual([])
        const page = yield* Balances.endedPage(yield* Reader, network, 0, undefined, 10)
        expect(page.asked.map(({ known, own }) => [own, known.number])).toEqual([[false, 0]])
      }).pipe(inStore)
  )

  it.scoped(
    "a confirmed payment that lost coins, compared with its own balance point and not with the last round",
    () =>
      Effect.gen(function* () {
        const model = yield* owing("undone", alice)
        model.mine([direct(alice, 9n)])
        yield* round(depsOf(model.client), model.head)
        yield* confirm
        yield* reorgTo({ number: 0, hash: "0x", time: 0 })
        const writer = yield* Writer
        yield* writer.write(Balances.moveChecked(network, { number: 5, hash: "0x5", time: 50 }))
        const reader = yield* Reader
        const [asked] = yield* Balances.asked(reader, network, { number: 9, hash: "0x9", time: 90 }, 60_000, 0)
        expect(asked).toMatchObject({ address: alice, comparedTo: 0 })
      }).pipe(inStore)
  )
})

describe("the query of a payment that loses coins to a reorg", () => {
  it.scoped("has the points and receipts up to the common ancestor", () =>
    Effect.gen(function* () {
      const model = yield* owing("ancestor", alice)
      model.mine([inside(alice, 5n, [alice])])
      yield* round(depsOf(model.client), model.head)
      model.mine([inside(alice, 7n, [alice])])
      yield* owe(bob)
      yield* round(depsOf(model.client), model.head)
      const reader = yield* Reader
      const [asked, ...others] = yield* Balances.orphanedQueries(reader, network, 1)
      expect(others).toEqual([])
      expect(asked).toMatchObject({ address: alice, own: true, known: { number: 1, balance: 5n }, credits: [] })
      yield* change("DELETE FROM balances")
      const [anew] = yield* Balances.orphanedQueries(reader, network, 1)
      expect(anew).toMatchObject({ known: { number: 0, assumed: true }, credits: [{ amount: 5n }] })
      // A payment that was made in a block which is gone counts from the ancestor.
      yield* change("UPDATE payments SET created_head = 2")
      const [later] = yield* Balances.orphanedQueries(reader, network, 1)
      expect(later?.known).toMatchObject({ number: 1, assumed: true })
      expect(yield* Balances.orphanedQueries(reader, network, 2)).toEqual([])
      yield* reorgTo({ number: 1, hash: "0x", time: 10 })
      expect(yield* Balances.orphanedQueries(reader, network, 1)).toEqual([])
    }).pipe(inStore)
  )
})

it.scoped("a token's receipt does not count towards the native balance", () =>
  Effect.gen(function* () {
    const model = yield* owing("token", alice)
    const { hash, number, time } = model.mine([inside(alice, 5n, [alice])])
    yield* scanTo(model.head)
    const token = {
      blockNumber: number,
      blockHash: hash,
      blockTime: time,
      txHash: "0xtoken",
      position: "log:0",
      address: alice,
      currency: "USDC",
      amount: 5n
    }
    const writer = yield* Writer
    yield* writer.write(Ledger.keepReceipts(network, [token], true))
    yield* look(depsOf(model.client), model.head, yield* wanted(model.head))
    expect(yield* toldOfAny(alice)).toEqual(["1 call:? 5", "1 log:0 5"])
    // Nor of what it has lost with a reorg.
    yield* change("DELETE FROM receipts WHERE position <> 'log:0'")
    expect(yield* Balances.orphanedQueries(yield* Reader, network, 0)).toEqual([])
  }).pipe(inStore)
)
