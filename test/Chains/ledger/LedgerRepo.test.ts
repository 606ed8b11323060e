import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Balances from "../../../src/Chains/balances/BalancesRepo.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import * as Watched from "../../../src/Chains/ledger/WatchedAddressesRepo.ts"
import { type Network, networkKey } from "../../../src/Domain/Chain.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { Reader, Tx } from "../../../src/Sql.ts"
import { change, write } from "../../lib/rows.ts"
import { address, inWorld } from "../around.ts"
import { end, pay } from "../world.ts"

const own: Network = { chain: "ethereum", mode: "test" }
const others: ReadonlyArray<Network> = [
  { chain: "ethereum", mode: "live" },
  { chain: "base", mode: "test" }
]
const networks = [own, ...others]

const block = (network: Network, number: number): BlockRef => ({
  number,
  hash: `${networkKey(network)} ${number}`,
  time: number * 10
})

/** A receipt of no payment, at a block of the network. */
const receipt = ({ chain, mode }: Network, number: number, { hash = "0xb", position = "tx:0", canonical = 1 } = {}) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
         amount, canonical, corroborated, seen_at) VALUES (?, ?, ?, '0xa', ?, ?, ?, '0x1', 'ETH', '5', ?, 1, 0)`,
      [chain, mode, hash, position, number, number * 10, canonical]
    )
  )

/**
 * Each network at block 30, with blocks, receipts, balances and two payments: of block 30, which has been searched up to
 * block 20, and of none yet.
 */
const filled = Effect.gen(function* () {
  for (const [i, network] of networks.entries()) {
    const { chain, mode } = network
    const { id } = yield* pay(address(2 * i + 1), network)
    yield* pay(address(2 * i + 2), network)
    yield* write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* Ledger.startScan(network, block(network, 8), `first of ${networkKey(network)}`)
        yield* Ledger.keepBlocks(
          network,
          [10, 20, 30].map((number) => block(network, number))
        )
        yield* tx.run(
          `UPDATE scans SET head_number = 30, verified_number = 25, safe_number = 24, finalized_number = 23,
             checked_number = 26, checked_time = 260 WHERE chain = ? AND mode = ?`,
          [chain, mode]
        )
        for (const number of [10, 20]) yield* receipt(network, number, { hash: `0x${number}` })
        yield* tx.run("INSERT INTO balances VALUES (?, ?, '0xa', 20, '5', 0)", [chain, mode])
        yield* tx.run("UPDATE payments SET created_head = 30 WHERE id = ?", [id])
        yield* tx.run("INSERT INTO searches (payment_id, chain, mode, number) VALUES (?, ?, ?, 20)", [id, chain, mode])
      })
    )
  }
})

/** Everything that is stored of a network. */
const stored = ({ chain, mode }: Network) =>
  Effect.flatMap(Reader, (reader) =>
    Effect.forEach(
      ["scans", "blocks", "receipts", "balances", "searches", "payments"],
      (table) => reader.all(`SELECT * FROM ${table} WHERE chain = ? AND mode = ?`, [chain, mode]),
      { concurrency: 1 }
    )
  )

describe("the stored data of a network", () => {
  it.scoped.each([
    ["its head", Ledger.moveScan(own, block(own, 31))],
    ["its verification pass", Ledger.moveVerified(own, 29)],
    ["its tags", Ledger.setTags(own, { safe: 29, finalized: 28 })],
    ["a comparison of balances", Balances.moveChecked(own, block(own, 29))],
    ["a reorg", Ledger.orphanAbove(own, block(own, 15))],
    ["a reorg below its payments", Watched.lowerTo(own, 15)],
    ["its start", Watched.startAt(own, 8)],
    ["the blocks that it no longer needs", Ledger.dropBlocks(own, [10, 20])]
  ] as const)("changes with %s, and nothing of another chain or of the other mode does", ([, change]) =>
    Effect.gen(function* () {
      yield* filled
      const all = Effect.forEach(networks, stored, { concurrency: 1 })
      const [before, ...beside] = yield* all
      yield* write(change)
      const [after, ...besideAfter] = yield* all
      expect(after).not.toEqual(before)
      expect(besideAfter).toEqual(beside)
    }).pipe(inWorld)
  )

  it.scoped("is found by its chain and mode", () =>
    Effect.gen(function* () {
      yield* filled
      const reader = yield* Reader
      for (const network of networks) {
        expect(yield* Ledger.scan(reader, network)).toMatchObject(network)
        expect(yield* Ledger.genesisHash(reader, network)).toBe(`first of ${networkKey(network)}`)
        expect(yield* Ledger.blocksBelow(reader, network, 30, 5)).toEqual([block(network, 20), block(network, 10)])
        expect(yield* Ledger.newestBlockAt(reader, network, 20)).toEqual(block(network, 20))
        expect(yield* Ledger.newestBlockAt(reader, network, 19)).toEqual(block(network, 10))
      }
    }).pipe(inWorld)
  )
})

it.scoped("another time of a stored block is the head's too where it is that block, and of no other hash's", () =>
  Effect.gen(function* () {
    yield* filled
    const reader = yield* Reader
    yield* Effect.forEach(networks, (network) => write(Ledger.moveScan(network, block(network, 30))))
    const times = (network: Network) =>
      Effect.gen(function* () {
        const blocks = yield* Ledger.blocksBelow(reader, network, 31, 2)
        return [(yield* Ledger.scan(reader, network))?.head.time, ...blocks.map(({ time }) => time)]
      })
    yield* write(Ledger.setBlockTime(own, { ...block(own, 20), time: 201 }))
    expect(yield* times(own)).toEqual([300, 300, 201])
    yield* write(Ledger.setBlockTime(own, { ...block(own, 30), time: 301 }))
    yield* write(Ledger.setBlockTime(own, { ...block(own, 30), hash: "0xother", time: 302 }))
    expect(yield* times(own)).toEqual([301, 301, 201])
    for (const network of others) expect(yield* times(network)).toEqual([300, 300, 200])
  }).pipe(inWorld)
)

it.scoped("a reorg removes what is above the common ancestor: blocks, receipts, balances and searches", () =>
  Effect.gen(function* () {
    yield* filled
    const reader = yield* Reader
    const where = "WHERE chain = 'ethereum' AND mode = 'test'"
    const left = (columns: string, table: string) =>
      Effect.map(reader.all(`SELECT ${columns} FROM ${table} ${where} ORDER BY 1`), (rows) =>
        rows.map((row) => Object.values(row as object))
      )
    yield* write(Ledger.orphanAbove(own, block(own, 20)))
    expect(yield* left("number", "blocks")).toEqual([[10], [20]])
    expect(yield* left("block_number, canonical", "receipts")).toEqual([
      [10, 1],
      [20, 1]
    ])
    for (const table of ["balances", "searches"]) expect(yield* left("number", table)).toEqual([[20]])
    expect(yield* write(Ledger.orphanAbove(own, block(own, 19)))).toEqual(["0xa"])
    expect(yield* left("number", "blocks")).toEqual([[10]])
    expect(yield* left("block_number, canonical", "receipts")).toEqual([
      [10, 1],
      [20, 0]
    ])
    for (const table of ["balances", "searches"]) expect(yield* left("number", table)).toEqual([])
  }).pipe(inWorld)
)

it.scoped("a reorg of money without a transaction removes the balances since the first block that it may be from", () =>
  Effect.gen(function* () {
    const { id } = yield* pay(address(1))
    const to = address(1).toLowerCase()
    const money = reported(address(1), { position: "unattributed", txHash: undefined, since: 6 })
    const point = (number: number, of = to) => ({ number, balance: 1n, nonce: 0, address: of })
    const left = Effect.map(
      (yield* Reader).all<{ number: number }>("SELECT number FROM balances ORDER BY number, address"),
      (rows) => rows.map(({ number }) => number)
    )
    yield* write(Balances.keepRows(own, [point(5), point(6), point(8), point(8, "0xother"), point(10)]))
    yield* write(Ledger.keepReceipts(own, [reported(address(1)), money], true))
    yield* write(Ledger.orphanAbove(own, block(own, 10)))
    expect(yield* left).toEqual([5, 6, 8, 8, 10])
    expect(yield* write(Ledger.orphanAbove(own, block(own, 9)))).toEqual([id, id])
    expect(yield* left).toEqual([5, 8])
  }).pipe(inWorld)
)

it.scoped("a receipt is counted that counts in this network, by block, address and position", () =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const key = { blockHash: "0xb", address: "0xa", position: "tx:0" }
    const counted = Effect.map(Ledger.countedKeys(reader, own, [key]), ({ size }) => size)
    yield* write(
      Effect.gen(function* () {
        for (const network of others) yield* receipt(network, 10)
        yield* receipt(own, 10, { hash: "0xc" })
        yield* receipt(own, 10, { position: "log:0" })
        yield* receipt(own, 10, { canonical: 0 })
      })
    )
    expect(yield* counted).toBe(0)
    yield* change("UPDATE receipts SET canonical = 1")
    expect(yield* counted).toBe(1)
  }).pipe(inWorld)
)

it.scoped("an old block is needed by a receipt in it, or an open payment that counts from it, of its own network", () =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const madeAt = Effect.fnUntraced(function* (head: number, network: Network) {
      const { id } = yield* pay(address(head), network)
      yield* change("UPDATE payments SET created_head = ? WHERE id = ?", head, id)
      return id
    })
    yield* madeAt(1, own)
    const detecting = yield* madeAt(2, own)
    yield* change("UPDATE payments SET status = 'detecting' WHERE id = ?", detecting)
    yield* end(yield* madeAt(3, own), 0)
    for (const [i, network] of others.entries()) yield* madeAt(4 + i, network)
    yield* write(
      Effect.gen(function* () {
        yield* Ledger.keepBlocks(
          own,
          [1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => block(own, number))
        )
        yield* receipt(own, 6, { canonical: 0 })
        for (const [i, network] of others.entries()) yield* receipt(network, 7 + i)
      })
    )
    const old = (after: number, before: number, limit: number) => Ledger.oldBlocks(reader, own, after, before, limit)
    expect(yield* old(0, 10, 100)).toEqual({ last: undefined, unneeded: [3, 4, 5, 7, 8, 9] })
    expect(yield* old(3, 8, 100)).toEqual({ last: undefined, unneeded: [4, 5, 7] })
    expect(yield* old(0, 10, 4)).toEqual({ last: 4, unneeded: [3, 4] })
    expect(yield* old(4, 10, 5)).toEqual({ last: 9, unneeded: [5, 7, 8, 9] })
  }).pipe(inWorld)
)

/** A transfer in block 10, as it is reported. */
const reported = (to: string, over: Partial<Ledger.DatedTransfer> = {}): Ledger.DatedTransfer => ({
  ...{ blockNumber: 10, blockHash: "0xb", blockTime: 100, txHash: "0x1", position: "tx:0" },
  ...{ address: to.toLowerCase(), currency: "ETH", amount: 5n },
  ...over
})

it.scoped("a receipt that is back after a reorg counts again, once, unless it was refuted", () =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const { id } = yield* pay(address(1))
    const keep = write(Ledger.keepReceipts(own, [reported(address(1))], true))
    const canonical = reader.all("SELECT canonical FROM receipts")
    expect(yield* keep).toEqual([id])
    expect(yield* write(Ledger.orphanAbove(own, block(own, 10)))).toEqual([])
    expect(yield* write(Ledger.orphanAbove(own, block(own, 9)))).toEqual([id])
    expect(yield* write(Ledger.orphanAbove(own, block(own, 9)))).toEqual([])
    expect(yield* canonical).toEqual([{ canonical: 0 }])
    expect(yield* keep).toEqual([id])
    expect(yield* canonical).toEqual([{ canonical: 1 }])
    yield* change("UPDATE receipts SET canonical = 0, refuted = 1")
    yield* keep
    expect(yield* canonical).toEqual([{ canonical: 0 }])
  }).pipe(inWorld)
)

it.scoped("a skipped address has no payment in its own mode, and is unknown in the other", () =>
  Effect.gen(function* () {
    const reader = yield* Reader
    yield* pay(address(1))
    const transfers = [2, 3].map((n) => reported(address(n)))
    yield* change("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 2, 0)", address(2))
    yield* change("INSERT INTO gap_addresses VALUES (?, 'live', 'w', 3, 0)", address(3))
    expect(yield* write(Ledger.keepReceipts(own, transfers, true))).toEqual([address(2).toLowerCase()])
    expect(yield* reader.all("SELECT address, payment_id, block_time FROM receipts")).toEqual([
      { address: address(2).toLowerCase(), payment_id: null, block_time: 100 }
    ])
  }).pipe(inWorld)
)

describe("a transfer that is reported again with another amount, in the same block and transaction", () => {
  it.scoped.each<[string, string, boolean, { readonly amount: string; readonly canonical: number }]>([
    [
      "from inside a contract: the last word counts, though the first was refuted",
      "call:0x1",
      false,
      { amount: "7", canonical: 1 }
    ],
    ["by its value: so it is", "tx:0", false, { amount: "7", canonical: 1 }],
    ["by a log: that is another one", "log:0x1:USDC:5:0", false, { amount: "5", canonical: 0 }],
    ["from inside a contract, and two providers have it: it stays", "call:0x1", true, { amount: "5", canonical: 1 }]
  ])("%s", ([, position, corroborated, expected]) =>
    Effect.gen(function* () {
      const reader = yield* Reader
      yield* pay(address(1))
      const report = (amount: bigint, reportedBy: string) => reported(address(1), { amount, position, reportedBy })
      yield* write(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* Ledger.keepReceipts(own, [report(5n, "liar")], corroborated)
          if (!corroborated) yield* tx.run("UPDATE receipts SET canonical = 0, refuted = 1, denied_by = 'other'")
          yield* Ledger.keepReceipts(own, [report(7n, "honest")], false)
        })
      )
      const isRetold = expected.amount === "7"
      expect(yield* reader.all("SELECT amount, canonical, refuted, denied_by, reported_by FROM receipts")).toEqual([
        {
          ...expected,
          refuted: 1 - expected.canonical,
          denied_by: isRetold || corroborated ? null : "other",
          reported_by: isRetold ? "honest" : "liar"
        }
      ])
    }).pipe(inWorld)
  )
})
