import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"
import * as Watched from "../../../src/Chains/ledger/WatchedAddressesRepo.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { Reader } from "../../../src/Sql.ts"
import { change, write } from "../../lib/rows.ts"
import { address, inWorld } from "../around.ts"
import { end, pay } from "../world.ts"

const own: Network = { chain: "ethereum", mode: "test" }
const others: ReadonlyArray<Network> = [
  { chain: "ethereum", mode: "live" },
  { chain: "base", mode: "test" }
]

const detect = change("UPDATE payments SET status = 'detecting' WHERE ended_at IS NULL")
const at = (time: number): BlockRef => ({ number: time, hash: `0x${time}`, time })

it.scoped("the chains of open payments are those of the mode, pending or detecting, and not of ended ones", () =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const test = yield* pay(address(1))
    yield* pay(address(2), { chain: "base", mode: "live" })
    expect(yield* Watched.openChains(reader, "test")).toEqual(["ethereum"])
    expect(yield* Watched.openChains(reader, "live")).toEqual(["base"])
    yield* detect
    expect(yield* Watched.openChains(reader, "test")).toEqual(["ethereum"])
    yield* end(test.id, 0)
    expect(yield* Watched.openChains(reader, "test")).toEqual([])
    // Of an invoice for which another choice can be made, or was, its customer may pay the former one too.
    yield* change(`INSERT INTO invoices (id, checkout_token, account_id, mode, amount, currency, choices, status, created_at,
      expires_at, metadata) VALUES ('inv', 't', '${test.account}', 'test', '1', 'EUR', '', 'open', 0, 1, '{}')`)
    yield* change("UPDATE payments SET invoice_id = 'inv' WHERE mode = 'test'")
    expect(yield* Watched.openChains(reader, "test")).toEqual(["ethereum"])
    yield* change("UPDATE invoices SET status = 'cancelled'")
    expect(yield* Watched.openChains(reader, "test")).toEqual([])
  }).pipe(inWorld)
)

it.each([
  ["ethereum", "0xa", "USDC", "USDC"],
  ["ethereum", "0xb", "USDC", "0xb"],
  ["ethereum", "0xb", "DAI", "DAI"],
  ["ethereum", undefined, "ETH", "ETH"],
  // Another chain has contracts of its own, of which the payment's says nothing.
  ["base", "0xb", "USDC", "USDC"],
  ["base", "0xa", "0xa", "0xa"]
] as const)("on %s, the contract %s of %s is %s to a payment in USDC", (chain, contract, currency, is) => {
  const asks = { chain: "ethereum", currency: "USDC", contract: "0xa" } as const
  expect(Watched.currencyFor({ chain, mode: "test" }, { asks }, { contract, currency })).toBe(is)
})

describe("the time of a payment", () => {
  const anyOver = (after: number, until: number) =>
    Effect.flatMap(Reader, (reader) => Watched.anyOver(reader, own, at(after), at(until)))

  it.scoped("ends with its grace, after one block and before another", () =>
    Effect.gen(function* () {
      // It expires an hour later: with the grace, at 3,660 seconds.
      yield* pay(address(1))
      expect(yield* anyOver(3_600, 3_660)).toBe(false)
      expect(yield* anyOver(3_600, 3_661)).toBe(true)
      expect(yield* anyOver(3_660, 3_700)).toBe(true)
      expect(yield* anyOver(3_661, 3_700)).toBe(false)
      yield* detect
      expect(yield* anyOver(3_600, 3_700)).toBe(true)
    }).pipe(inWorld)
  )

  it.scoped("does not affect another chain, the other mode or the time after its end", () =>
    Effect.gen(function* () {
      for (const [i, network] of others.entries()) yield* pay(address(i + 1), network)
      yield* end((yield* pay(address(3))).id, 0)
      expect(yield* anyOver(0, 10_000)).toBe(false)
    }).pipe(inWorld)
  )
})

describe("a payment that was made before the chain's first head", () => {
  const oldest = Effect.flatMap(Reader, (reader) => Watched.oldestUnplaced(reader, own, new AddressSet()))
  const heads = Effect.flatMap(Reader, (reader) =>
    reader.all("SELECT chain, mode, created_head FROM payments ORDER BY sequence")
  )

  it.scoped("decides where reading starts while it is open, by the oldest of this chain in this mode", () =>
    Effect.gen(function* () {
      for (const [i, network] of others.entries()) yield* pay(address(i + 1), network)
      expect(yield* oldest).toBeUndefined()
      yield* TestClock.setTime(1_000)
      const ended = yield* pay(address(3))
      expect(yield* oldest).toBe(1_000)
      yield* end(ended.id, 2_000)
      expect(yield* oldest).toBeUndefined()
      for (const n of [4, 5, 6]) {
        yield* TestClock.setTime(n * 1_000)
        yield* pay(address(n))
      }
      yield* detect
      yield* change("UPDATE payments SET created_head = 7 WHERE address = ?", address(4))
      expect(yield* oldest).toBe(5_000)
    }).pipe(inWorld)
  )

  it.scoped("counts from there, and one that knows its head does not", () =>
    Effect.gen(function* () {
      for (const [i, network] of [own, own, ...others].entries()) yield* pay(address(i + 1), network)
      yield* change("UPDATE payments SET created_head = 7 WHERE address = ?", address(1))
      yield* write(Watched.startAt(own, 9))
      expect(yield* heads).toMatchObject([
        { ...own, created_head: 7 },
        { ...own, created_head: 9 },
        ...others.map((network) => ({ ...network, created_head: null }))
      ])
    }).pipe(inWorld)
  )

  it.scoped("or above what a reorg has left, counts from there, open or ended since", () =>
    Effect.gen(function* () {
      for (const [i, network] of [own, own, own, ...others, own].entries()) yield* pay(address(i + 1), network)
      yield* change("UPDATE payments SET created_head = 20")
      yield* change("UPDATE payments SET status = 'expired', ended_at = 9 WHERE address = ?", address(6))
      yield* change("UPDATE payments SET created_head = 5 WHERE address = ?", address(1))
      yield* change("UPDATE payments SET status = 'detecting' WHERE address = ?", address(2))
      yield* write(Watched.lowerTo(own, 9))
      expect(yield* heads).toMatchObject([5, 9, 9, 20, 20, 9].map((created_head) => ({ created_head })))
    }).pipe(inWorld)
  )
})

it.scoped(
  "payments that wait for a block to be deep are those that are detecting by a receipt there which counts",
  () =>
    Effect.gen(function* () {
      const reader = yield* Reader
      const values = (number: number, deep: number) => Watched.deepAbove(reader, own, number, deep)
      const paid = Effect.fnUntraced(function* (
        n: number,
        network: Network,
        over: { canonical?: number; chain?: string } = {}
      ) {
        const { id } = yield* pay(address(n), network)
        yield* change("UPDATE payments SET usd_value = ?, status = 'detecting' WHERE id = ?", String(n), id)
        yield* change(
          `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
             amount, payment_id, canonical, corroborated, seen_at)
           VALUES (?, ?, '0xb', ?, 'tx:0', 10, 100, '0x1', 'ETH', '5', ?, ?, 1, 0)`,
          ...[over.chain ?? network.chain, network.mode, address(n).toLowerCase(), id, over.canonical ?? 1]
        )
        return id
      })
      for (const [i, network] of others.entries()) yield* paid(i + 1, network)
      yield* paid(3, own, { canonical: 0 })
      yield* paid(4, own, { chain: "base" })
      yield* end(yield* paid(5, own), 0)
      expect(yield* values(0, 100)).toEqual([])
      yield* paid(6, own)
      expect(yield* values(9, 10)).toEqual(["6"])
      expect(yield* values(10, 20)).toEqual([])
      expect(yield* values(0, 9)).toEqual([])
    }).pipe(inWorld)
)
