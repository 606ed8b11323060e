import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import * as Balances from "../../../src/Chains/balances/BalancesRepo.ts"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import { blockTimeLag } from "../../../src/Domain/Payment.ts"
import { Reader } from "../../../src/Sql.ts"
import { change, rows, write } from "../../lib/rows.ts"
import { type BalanceModel, direct, inside, spends } from "./BalanceModel.ts"
import {
  alice,
  bob,
  confirmedAndReorged,
  depsOf,
  ledgerLines,
  ledgerLinesByAny,
  look,
  network,
  owe,
  receipts,
  round,
  scan,
  scanTo,
  wanted
} from "./reconcileWorld.ts"
import { story } from "./story.ts"

const live: Network = { chain: "base", mode: "live" }
const carol = `0x${"c3".repeat(20)}`
const start: Balances.Cursor = { endedAt: 0, sequence: 0 }
const usdcOf = { chain: "ethereum", currency: "USDC" } as const

const reorgTo = (block: Parameters<typeof Ledger.orphanAbove>[1]) => write(Ledger.orphanAbove(network, block))
const reading = <A, E, R>(query: (reader: Reader["Type"]) => Effect.Effect<A, E, R>) => Effect.flatMap(Reader, query)

/** A payment as `owe` makes it, in live mode. */
const oweLive = (...payment: Parameters<typeof owe>) =>
  Effect.flatMap(owe(...payment), (id) => change("UPDATE payments SET mode = 'live' WHERE id = ?", id))

const isDue = ({ head }: BalanceModel, on = network) => reading((reader) => Balances.due(reader, on, head))
/** Each address that a round would ask for, and whether its payment is for this chain. */
const asked = (...at: Parameters<typeof wanted>) =>
  Effect.map(wanted(...at), (all) => all.map(({ address, own }) => [address, own]))
const addressesOf = (all: ReadonlyArray<{ readonly address: string }>) => all.map(({ address }) => address)
const points = rows<{ readonly address: string }>(
  "SELECT address, number, balance, nonce FROM balances ORDER BY address, number"
)

describe("two modes in one database", () => {
  story(
    "a round covers payments of its own mode only, and is not a round of the other mode",
    [alice],
    function* (model) {
      yield* scanTo(model.head, live)
      yield* oweLive(bob, { expiresAt: 100 })
      yield* oweLive(carol, { ...usdcOf, expiresAt: 100 })
      model.mine([direct(alice, 5n), direct(bob, 6n)], 161)
      const at = model.head
      expect(yield* asked(at)).toEqual([[alice, true]])
      expect(yield* isDue(model)).toBe(false)
      yield* round(depsOf(model.client), at)
      yield* scanTo(at, live)
      expect(yield* isDue(model, live)).toBe(true)
      expect(yield* asked(at, live)).toEqual([
        [bob, true],
        [carol, false]
      ])
      expect((yield* reading((reader) => Ledger.scan(reader, live)))?.checked).toBeUndefined()
      expect((yield* scan)?.checked?.number).toBe(1)
    }
  )

  story("each has its own ended payments, and its own that lost coins to a reorg", [alice], function* (model) {
    yield* oweLive(bob, { endedAt: 5 })
    yield* owe(carol, { endedAt: 5 })
    const ended = (on: Network) =>
      Effect.map(
        reading((reader) => Balances.endedPage(reader, on, start, 0, 10)),
        (page) => addressesOf(page.asked)
      )
    expect([yield* ended(network), yield* ended(live)]).toEqual([[carol], [bob]])

    model.mine([direct(alice, 5n)])
    yield* round(depsOf(model.client), model.head)
    yield* scanTo(model.head, live)
    expect(yield* reading((reader) => Balances.orphanedQueries(reader, live, 0))).toEqual([])
    yield* confirmedAndReorged
    const lostCoins = (on: Network) =>
      Effect.map(
        reading((reader) => Balances.dueInRound(reader, on, model.head, 0, false)),
        addressesOf
      )
    expect([yield* lostCoins(network), yield* lostCoins(live)]).toEqual([[alice], []])
  })

  story("the creation block of another chain's payment comes from blocks of its own mode", [], function* () {
    yield* scanTo({ number: 7, hash: "0x7", time: 70 })
    yield* scanTo({ number: 9, hash: "0x9", time: 90 }, live)
    yield* scanTo({ number: 8, hash: "0x8", time: 80 }, { chain: "optimism", mode: "test" })
    const createdAt = 100_000 + blockTimeLag
    yield* owe(alice, { ...usdcOf, createdAt, expiresAt: 2_000 })
    // Its time is before the payment, but the block may be newer.
    yield* scanTo({ number: 10, hash: "0x10", time: 101 })
    expect(yield* wanted({ number: 20, hash: "0x20", time: 3_000 })).toMatchObject([
      { known: { number: 7, assumed: true } }
    ])
    yield* change("UPDATE payments SET created_at = ?", blockTimeLag)
    yield* change("DELETE FROM blocks WHERE number = 0")
    expect(yield* wanted({ number: 20, hash: "0x20", time: 3_000 })).toMatchObject([
      { known: { number: 7, assumed: true } }
    ])
  })
})

describe("a round covers", () => {
  story("a payment in the chain's coin once at its deadline", [], function* (model) {
    yield* owe(alice, { expiresAt: 100 })
    expect(yield* wanted({ ...model.head, time: 161 })).toMatchObject([{ address: alice, withNonce: true }])
  })

  story("every payment of the mode at its deadline, once; on another chain only the amount", [], function* (model) {
    yield* owe(alice, { ...usdcOf, expiresAt: 100 })
    yield* owe(bob, { currency: "USDC", expiresAt: 100 })
    model.mine([direct(alice, 2n), inside(bob, 5n, [bob])])
    model.mine([direct(alice, 1n)], 160)
    yield* round(depsOf(model.client), model.head)
    expect([yield* isDue(model), yield* receipts]).toEqual([false, []])
    model.mine([], 161)
    expect(yield* isDue(model)).toBe(true)
    yield* round(depsOf(model.client), model.head)
    expect(yield* isDue(model)).toBe(false)
    expect(yield* ledgerLines(alice)).toEqual(["3 unattributed 3"])
    expect(yield* ledgerLinesByAny(bob)).toEqual(["1 call:? 5"])
    model.mine([], 200)
    expect(yield* wanted(model.head)).toEqual([])
    // A reorg removes the comparisons above it, and the payments are due again.
    yield* reorgTo({ number: 2, hash: "0x", time: 160 })
    expect(yield* isDue(model)).toBe(true)
    expect(yield* asked(model.head)).toEqual([
      [bob, true],
      [alice, false]
    ])
  })

  story("one without a known head from its own block on; once ended, as another chain's", [alice], function* (model) {
    yield* owe(bob, { endedAt: 5 })
    model.mine([direct(alice, 40n), direct(bob, 50n)])
    yield* scanTo(model.head)
    yield* change("UPDATE payments SET created_head = NULL")
    expect(yield* wanted(model.head)).toMatchObject([{ known: { number: 1, assumed: true } }])
    yield* round(depsOf(model.client), model.head)
    expect(yield* ledgerLines(alice)).toEqual([])
    const page = yield* reading((reader) => Balances.endedPage(reader, network, start, 0, 10))
    expect(page.asked).toMatchObject([{ own: false, known: { number: 0 } }])
  })

  story("a confirmed one that lost coins from its own point, until new blocks are final", [], function* (model) {
    const confirmed = yield* owe(alice)
    yield* owe(bob, { currency: "USDC" })
    model.mine([direct(alice, 9n), direct(bob, 9n)])
    yield* round(depsOf(model.client), model.head)
    yield* confirmedAndReorged
    model.rollback(1)
    model.mine([])
    model.mine([])
    expect(yield* rows("SELECT payment_id FROM receipts WHERE canonical = 0")).toEqual([{ payment_id: confirmed }])
    const lost = (final: number) => reading((reader) => Balances.dueInRound(reader, network, model.head, final, false))
    // No round has covered its block since.
    expect(yield* lost(1)).toMatchObject([{ address: alice, own: true, comparedTo: 0 }])
    yield* round(depsOf(model.client), model.head)
    expect(yield* lost(0)).toMatchObject([{ address: alice, own: true, comparedTo: 0 }])
    expect(yield* lost(1)).toEqual([])
  })

  story("an address that was compared before from its last balance on", [alice], function* (model) {
    model.mine([direct(alice, 9n)])
    model.mine([spends(alice, 1n)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* points).toEqual([
      { address: alice, number: 0, balance: "0", nonce: 0 },
      { address: alice, number: 1, balance: "9", nonce: 0 },
      { address: alice, number: 2, balance: "6", nonce: 1 }
    ])
    expect(yield* wanted(model.head)).toMatchObject([{ known: { number: 2, balance: 6n, nonce: 1, assumed: false } }])
  })
})

describe("pages", () => {
  const address = (n: number) => `0x${n.toString(16).padStart(40, "0")}`
  const skip = (n: number, mode: string) =>
    change("INSERT INTO gap_addresses VALUES (?, ?, 'w', ?, 0)", address(n), mode, 1000 + n)

  story("cover ended payments and skipped addresses, without moving `checked`", [], function* (model) {
    yield* owe(address(1), { endedAt: 1000 })
    for (const n of [2, 3, 4]) yield* owe(address(n), { endedAt: 2000, ...(n === 3 ? { chain: "polygon" } : {}) })
    yield* skip(5, "test")
    model.mine([2, 3, 4, 5].map((n) => direct(address(n), BigInt(n))))
    model.mine([])
    yield* scanTo(model.head)
    const reader = yield* Reader
    const deps = depsOf(model.client)
    const pages: Array<ReadonlyArray<string>> = []
    let cursor: Balances.Cursor | undefined = { endedAt: 1001, sequence: 0 }
    do {
      const page: Effect.Effect.Success<ReturnType<typeof Balances.endedPage>> = yield* Balances.endedPage(
        reader,
        network,
        cursor,
        0,
        2
      )
      pages.push(addressesOf(page.asked))
      yield* look(deps, model.head, page.asked, { of: "page" })
      cursor = page.next
    } while (cursor !== undefined)
    expect(pages).toEqual([[address(2), address(3)], [address(4)]])
    const skipped = yield* Balances.skippedPage(reader, network, undefined, 10)
    expect(skipped.next).toBeUndefined()
    yield* look(deps, model.head, skipped.asked, { of: "page" })
    expect((yield* receipts).map((row) => [row.address, row.position, row.amount])).toEqual([
      [address(2), "tx:0", "2"],
      [address(4), "tx:2", "4"],
      [address(3), "unattributed", "3"],
      [address(5), "unattributed", "5"]
    ])
    expect((yield* scan)?.checked).toBeUndefined()
    // Seen once, known from then on.
    const again = yield* Balances.endedPage(reader, network, start, 0, 10)
    expect((yield* reconcileBalances(deps, model.head, again.asked)).transfers).toEqual([])
  })

  story("have each skipped address of the mode once, and end with the last", [alice], function* () {
    for (const n of [6, 7, 8, 9]) yield* skip(n, n < 9 ? "test" : "live")
    const reader = yield* Reader
    const pagesOf = Effect.fnUntraced(function* (limit: number) {
      const pages: Array<ReadonlyArray<string>> = []
      let after: string | undefined
      do {
        const page = yield* Balances.skippedPage(reader, network, after, limit)
        pages.push(addressesOf(page.asked))
        after = page.next
      } while (after !== undefined)
      return pages
    })
    const [first, second, third] = [6, 7, 8].map(address)
    expect(yield* pagesOf(2)).toEqual([[first, second], [third]])
    // Whether more follow a full page is known with the next one.
    expect(yield* pagesOf(3)).toEqual([[first, second, third], []])
    expect(yield* pagesOf(4)).toEqual([[first, second, third]])
  })
})

story("the query of a payment that loses coins to a reorg goes up to the common ancestor", [alice], function* (model) {
  model.mine([inside(alice, 5n, [alice])])
  yield* round(depsOf(model.client), model.head)
  model.mine([inside(alice, 7n, [alice])])
  yield* owe(bob)
  yield* round(depsOf(model.client), model.head)
  const orphaned = (ancestor: number) => reading((reader) => Balances.orphanedQueries(reader, network, ancestor))
  const [lost, ...others] = yield* orphaned(1)
  expect(others).toEqual([])
  expect(lost).toMatchObject({ address: alice, own: true, known: { number: 1, balance: 5n }, credits: [] })
  yield* change("DELETE FROM balances")
  expect(yield* orphaned(1)).toMatchObject([{ known: { number: 0, assumed: true }, credits: [{ amount: 5n }] }])
  // A payment that was made in a block which is gone counts from the ancestor.
  yield* change("UPDATE payments SET created_head = 2")
  expect(yield* orphaned(1)).toMatchObject([{ known: { number: 1, assumed: true } }])
  expect(yield* orphaned(2)).toEqual([])
  yield* reorgTo({ number: 1, hash: "0x", time: 10 })
  expect(yield* orphaned(1)).toEqual([])
})

story("a token's receipt does not count towards the native balance", [alice], function* (model) {
  const { hash, number, time } = model.mine([inside(alice, 5n, [alice])])
  yield* scanTo(model.head)
  const token = {
    ...{ blockNumber: number, blockHash: hash, blockTime: time, txHash: "0xtoken", position: "log:0" },
    ...{ address: alice, currency: "USDC", amount: 5n }
  }
  yield* write(Ledger.keepReceipts(network, [token], true))
  yield* look(depsOf(model.client), model.head, yield* wanted(model.head))
  expect(yield* ledgerLinesByAny(alice)).toEqual(["1 call:? 5", "1 log:0 5"])
  // Nor after it has lost money to a reorg.
  yield* change("DELETE FROM receipts WHERE position <> 'log:0'")
  expect(yield* reading((reader) => Balances.orphanedQueries(reader, network, 0))).toEqual([])
})
