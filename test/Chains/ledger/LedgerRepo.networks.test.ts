import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Balances from "../../../src/Chains/balances/BalancesRepo.ts"
import * as LedgerRepo from "../../../src/Chains/ledger/LedgerRepo.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import * as Repo from "../../../src/Payments/PaymentsRepo.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { someNewPayment } from "../../lib/payments.ts"
import { tempStore } from "../../lib/store.ts"

const own: Network = { chain: "base", mode: "test" }
const sameChain: Network = { chain: "base", mode: "live" }
const sameMode: Network = { chain: "optimism", mode: "test" }
const lost = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
const lostLive = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
const paidLive = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"

const block = (number: number) => ({ number, hash: `0x${number}`, time: number })
const receipt = { blockHash: "0x103", address: lost.toLowerCase(), position: "tx:0" }
const transfer: LedgerRepo.DatedTransfer = {
  ...receipt,
  amount: 5n,
  blockNumber: 103,
  blockTime: 103,
  currency: "ETH",
  txHash: "0xt"
}

/** The same of every network: its head is block 104, which is final, and money came in block 103. */
const fill = Effect.gen(function* () {
  const tx = yield* Tx
  yield* tx.run("INSERT INTO accounts VALUES ('default', 'default', 0)")
  yield* tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 10)")
  yield* tx.run("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 1, 0), (?, 'live', 'w', 2, 0)", [lost, lostLive])
  yield* Repo.insert(tx, someNewPayment({ mode: "live", address: paidLive }), { wallet: "w", index: 3 })
  for (const network of [sameChain, own, sameMode]) {
    yield* LedgerRepo.startScan(network, block(100), `genesis of ${network.chain} ${network.mode}`)
    yield* LedgerRepo.keepBlocks(network, [101, 102, 103, 104].map(block))
    yield* LedgerRepo.moveScan(network, block(104))
    yield* LedgerRepo.moveVerified(network, 104)
    yield* LedgerRepo.setTags(network, { safe: 104, finalized: 104 })
    yield* Balances.moveChecked(network, block(104))
    yield* Balances.keepRows(network, [{ address: receipt.address, number: 103, balance: 5n, nonce: 0 }])
    yield* tx.run(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
         amount, payment_id, canonical, corroborated, seen_at)
       VALUES (?, ?, ?, ?, ?, 103, 103, '0xt', 'ETH', '5', NULL, 1, 1, 0)`,
      [network.chain, network.mode, receipt.blockHash, receipt.address, receipt.position]
    )
  }
})

/** All that is stored of a network. */
const storedOf = ({ chain, mode }: Network) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    return yield* Effect.forEach(
      ["scans", "blocks", "balances", "receipts"],
      (table) => tx.all(`SELECT * FROM ${table} WHERE chain = ? AND mode = ? ORDER BY 3, 4`, [chain, mode]),
      { concurrency: 1 }
    )
  })

const written = <A>(test: Effect.Effect<A, unknown, Tx>) =>
  Effect.flatMap(Writer, (writer) => writer.write(Effect.zipRight(fill, test))).pipe(Effect.provide(tempStore))

it.scoped.each<[string, Effect.Effect<unknown, unknown, Tx>]>([
  ["the next head", LedgerRepo.moveScan(own, block(105))],
  ["a reorg", LedgerRepo.orphanAbove(own, block(101))],
  ["blocks that nobody needs", LedgerRepo.dropBlocks(own, [101, 102])],
  ["the second pass", LedgerRepo.moveVerified(own, 105)],
  ["the tags", LedgerRepo.setTags(own, { safe: 106, finalized: 105 })],
  ["a comparison of balances", Balances.moveChecked(own, block(105))]
])("%s of a network is stored, and changes nothing of the chain's other mode, nor of another chain", ([, change]) =>
  written(
    Effect.gen(function* () {
      const all = Effect.all([storedOf(own), storedOf(sameChain), storedOf(sameMode)], { concurrency: 1 })
      const before = yield* all
      yield* change
      const after = yield* all
      expect(after[0]).not.toEqual(before[0])
      expect(after.slice(1)).toEqual(before.slice(1))
    })
  )
)

it.scoped("what is read of a network is its own", () =>
  written(
    Effect.gen(function* () {
      const tx = yield* Tx
      yield* LedgerRepo.dropBlocks(sameMode, [101])
      yield* LedgerRepo.orphanAbove(own, block(101))
      yield* LedgerRepo.moveScan(own, block(102))
      expect(yield* LedgerRepo.scan(tx, own)).toMatchObject({
        head: block(102),
        checked: { number: 101, time: 101 },
        safe: 101,
        finalized: 101,
        verified: 101
      })
      const read = (network: Network) =>
        Effect.gen(function* () {
          const scan = yield* LedgerRepo.scan(tx, network)
          const newest = yield* LedgerRepo.newestBlockAt(tx, network, 103)
          const below = yield* LedgerRepo.blocksBelow(tx, network, 103, 10)
          const { unneeded } = yield* LedgerRepo.oldBlocks(tx, network, 0, 200, 10)
          return {
            genesis: yield* LedgerRepo.genesisHash(tx, network),
            head: scan?.head.number,
            newest: newest?.number,
            below: below.map(({ number }) => number),
            unneeded,
            counted: (yield* LedgerRepo.countedKeys(tx, network, [receipt])).size
          }
        })
      const full = { head: 104, newest: 103, below: [102, 101], unneeded: [101, 102, 104], counted: 1 }
      expect(yield* read(sameChain)).toEqual({ ...full, genesis: "genesis of base live" })
      expect(yield* read(sameMode)).toEqual({
        ...full,
        genesis: "genesis of optimism test",
        below: [102],
        unneeded: [102, 104]
      })
      expect(yield* read(own)).toEqual({
        genesis: "genesis of base test",
        head: 102,
        newest: 101,
        below: [101],
        unneeded: [101],
        counted: 0
      })
    })
  )
)

it.scoped(
  "a transfer to an address of the other mode has no payment, and a receipt that is back after a reorg counts again, once",
  () =>
    written(
      Effect.gen(function* () {
        const strangers = [lostLive, paidLive].map((address) => ({ ...transfer, address: address.toLowerCase() }))
        expect(yield* LedgerRepo.keepReceipts(own, strangers, true)).toEqual([])
        const before = yield* storedOf(own)
        expect(yield* LedgerRepo.orphanAbove(own, block(103))).toEqual([])
        expect(yield* LedgerRepo.orphanAbove(own, block(102))).toEqual([undefined])
        // What was taken back once is not taken back again.
        expect(yield* LedgerRepo.orphanAbove(own, block(102))).toEqual([])
        expect(yield* LedgerRepo.keepReceipts(own, [transfer], false)).toEqual([undefined])
        expect((yield* storedOf(own)).at(-1)).toEqual(before.at(-1))
      })
    )
)
