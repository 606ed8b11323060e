import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Balances from "../../../src/Chains/balances/BalancesRepo.ts"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { BalanceModel, direct, inside, spends } from "./BalanceModel.ts"
import {
  alice,
  bob,
  confirmedAndReorged,
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

const carol = `0x${"c3".repeat(20)}`

const isDue = (model: BalanceModel) =>
  Effect.flatMap(Reader, (reader) => Balances.due(reader, network, model.head, 60_000))

const rows = Effect.flatMap(Reader, (reader) =>
  reader.all<{ readonly address: string }>(
    "SELECT address, number, balance, nonce FROM balances ORDER BY address, number"
  )
)

describe("a reconciliation covers", () => {
  it.scoped("every payment of the mode at its deadline, once; on another chain only the amount of income", () =>
    Effect.gen(function* () {
      const model = yield* owing("deadline")
      yield* owe(alice, { chain: "ethereum", currency: "USDC", expiresAt: 100 })
      yield* owe(bob, { currency: "USDC", expiresAt: 100 })
      model.mine([direct(alice, 2n), inside(bob, 5n, [bob])])
      model.mine([direct(alice, 1n)], 160)
      yield* round(depsOf(model.client), model.head)
      expect(yield* isDue(model)).toBe(false)
      expect(yield* receipts).toEqual([])
      model.mine([], 161)
      expect(yield* isDue(model)).toBe(true)
      yield* round(depsOf(model.client), model.head)
      expect(yield* isDue(model)).toBe(false)
      expect(yield* told(alice)).toEqual(["3 unattributed 3"])
      expect(yield* toldOfAny(bob)).toEqual(["1 call:? 5"])
      model.mine([], 200)
      expect(yield* wanted(model.head)).toEqual([])
      // A reorg takes back what was compared above it, and the payments are due again.
      const writer = yield* Writer
      yield* writer.write(Ledger.orphanAbove(network, { number: 2, hash: "0x", time: 160 }))
      expect(yield* isDue(model)).toBe(true)
      expect((yield* wanted(model.head)).map(({ address, own }) => [address, own])).toEqual([
        [bob, true],
        [alice, false]
      ])
    }).pipe(inStore)
  )

  it.effect("a payment of another chain, without a receipt where its balance is the same or lower", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("less")
      model.mine([direct(alice, 9n), direct(bob, 9n), direct(carol, 9n)])
      model.mine([spends(alice, 4n), direct(carol, 1n)])
      const known = { number: 1, balance: 9n, nonce: 0, assumed: false }
      const elsewhere = [alice, bob, carol].map((address) => ({
        ...firstAsked(address),
        own: false,
        withNonce: true,
        known
      }))
      const { rows, transfers } = yield* reconcileBalances(depsOf(model.client), model.head, elsewhere)
      expect(transfers).toMatchObject([{ address: carol, amount: 1n }])
      expect(rows.map(({ address, balance }) => [address, balance])).toEqual([
        [alice, 3n],
        [bob, 9n],
        [carol, 10n]
      ])
    })
  )

  it.scoped("another chain without coins from before the payment, where the state of that time is known", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("before")
      model.mine([direct(alice, 40n), direct(bob, 50n)])
      yield* scanTo(model.head)
      model.mine([])
      const created = model.head
      yield* scanTo(created)
      const createdAt = created.time * 1000 + 999
      yield* owe(alice, { chain: "ethereum", currency: "USDC", expiresAt: 100, createdAt })
      yield* owe(bob, { chain: "ethereum", currency: "USDC", expiresAt: 200, createdAt })
      yield* owe(carol, { chain: "ethereum", currency: "USDC", expiresAt: 100, createdAt: 0 })
      model.mine([direct(alice, 3n), direct(carol, 4n)])
      yield* scanTo(model.head)
      expect(
        (yield* wanted({ ...model.head, time: 161 })).map(({ address, known }) => [address, known.number])
      ).toEqual([
        [alice, created.number],
        [carol, 0]
      ])
      model.mine([], 161)
      yield* round(depsOf(model.client), model.head)
      expect((yield* told(alice)).map((line) => line.slice(2))).toEqual(["unattributed 3"])
      // Seen, and not asked about again.
      expect((yield* rows).map(({ address }) => address).sort()).toEqual([alice, carol].sort())
      model.states = 0
      model.mine([], 261)
      yield* round(depsOf(model.client), model.head)
      expect((yield* told(bob)).map((line) => line.slice(2))).toEqual(["unattributed 50"])
    }).pipe(inStore)
  )

  it.scoped("ended payments and skipped addresses, a page at a time, without moving `checked`", () =>
    Effect.gen(function* () {
      const model = yield* owing("ended")
      const address = (n: number) => `0x${n.toString(16).padStart(40, "0")}`
      yield* owe(address(1), { endedAt: 1000 })
      for (const n of [2, 3, 4]) yield* owe(address(n), { endedAt: 2000, ...(n === 3 ? { chain: "polygon" } : {}) })
      const writer = yield* Writer
      yield* writer.write(
        Effect.flatMap(Tx, (tx) =>
          tx.run(
            "INSERT INTO gap_addresses (address, mode, wallet, wallet_index, created_at) VALUES (?, 'test', 'w', 1000, 0)",
            [address(5)]
          )
        )
      )
      model.mine([2, 3, 4, 5].map((n) => direct(address(n), BigInt(n))))
      model.mine([])
      yield* scanTo(model.head)
      const reader = yield* Reader
      const deps = depsOf(model.client)
      const pages: Array<ReadonlyArray<string>> = []
      let cursor: Balances.Cursor | undefined
      do {
        const page = yield* Balances.endedPage(reader, network, 1001, cursor, 2)
        pages.push(page.asked.map((one) => one.address))
        yield* look(deps, model.head, page.asked, { of: "page" })
        cursor = page.next
      } while (cursor !== undefined)
      expect(pages).toEqual([[address(2), address(3)], [address(4)]])
      const gap = yield* Balances.skippedPage(reader, network, undefined, 10)
      expect(gap.next).toBeUndefined()
      yield* look(deps, model.head, gap.asked, { of: "page" })
      expect((yield* receipts).map((row) => [row.address, row.position, row.amount])).toEqual([
        [address(2), "tx:0", "2"],
        [address(4), "tx:2", "4"],
        [address(3), "unattributed", "3"],
        [address(5), "unattributed", "5"]
      ])
      expect((yield* scan)?.checked).toBeUndefined()
      // Seen once, known from then on.
      const again = yield* Balances.endedPage(reader, network, 0, undefined, 10)
      expect((yield* reconcileBalances(deps, model.head, again.asked)).transfers).toEqual([])
    }).pipe(inStore)
  )

  it.scoped("each skipped address once, in pages that end with the last", () =>
    Effect.gen(function* () {
      yield* scanTo(new BalanceModel("gaps").head)
      const handedOut = [6, 7, 8, 9].map((n) => `0x${String(n).padStart(40, "0")}`)
      const writer = yield* Writer
      yield* writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 0)")
          for (const [i, address] of handedOut.entries()) {
            yield* tx.run("INSERT INTO gap_addresses VALUES (?, ?, 'w', ?, 0)", [address, i < 3 ? "test" : "live", i])
          }
        })
      )
      const reader = yield* Reader
      const pagesOf = Effect.fnUntraced(function* (limit: number) {
        const pages: Array<ReadonlyArray<string>> = []
        let after: string | undefined
        do {
          const page = yield* Balances.skippedPage(reader, network, after, limit)
          pages.push(page.asked.map(({ address }) => address))
          after = page.next
        } while (after !== undefined)
        return pages
      })
      const [first, second, third] = handedOut
      expect(yield* pagesOf(2)).toEqual([[first, second], [third]])
      // Whether more follow than a full page is known by the next one.
      expect(yield* pagesOf(3)).toEqual([[first, second, third], []])
      expect(yield* pagesOf(4)).toEqual([[first, second, third]])
    }).pipe(inStore)
  )

  it.scoped("confirmed payments that lost coins to a reorg, until the new blocks are final", () =>
    Effect.gen(function* () {
      const model = yield* owing("undone")
      const confirmed = yield* owe(alice)
      yield* owe(bob, { currency: "USDC" })
      model.mine([direct(alice, 9n), direct(bob, 9n)])
      yield* round(depsOf(model.client), model.head)
      yield* confirmedAndReorged
      model.rollback(1)
      model.mine([])
      model.mine([])
      const reader = yield* Reader
      const askedFor = (final: number) =>
        Effect.map(Balances.asked(reader, network, model.head, 60_000, final), (all) =>
          all.map(({ address, own }) => [address, own])
        )
      expect(yield* reader.all("SELECT payment_id FROM receipts WHERE canonical = 0")).toEqual([
        { payment_id: confirmed }
      ])
      // No round has covered its block since.
      expect(yield* askedFor(1)).toEqual([[alice, true]])
      yield* round(depsOf(model.client), model.head)
      expect(yield* askedFor(0)).toEqual([[alice, true]])
      expect(yield* askedFor(1)).toEqual([])
    }).pipe(inStore)
  )

  it.scoped("an address that was compared before from its last balance on", () =>
    Effect.gen(function* () {
      const model = yield* owing("rows", alice)
      model.mine([direct(alice, 9n)])
      model.mine([spends(alice, 1n)])
      yield* round(depsOf(model.client), model.head)
      expect(yield* rows).toEqual([
        { address: alice, number: 0, balance: "0", nonce: 0 },
        { address: alice, number: 1, balance: "9", nonce: 0 },
        { address: alice, number: 2, balance: "6", nonce: 1 }
      ])
      const [asked] = yield* wanted(model.head)
      expect(asked?.known).toEqual({ number: 2, balance: 6n, nonce: 1, assumed: false })
    }).pipe(inStore)
  )
})
