import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Balances from "../../../src/Chains/balances/BalancesRepo.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { commitReading, commitStart, type TickReading } from "../../../src/Chains/watcher/tick.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { Reader } from "../../../src/Sql.ts"
import { change, write } from "../../lib/rows.ts"
import { inWorld } from "../around.ts"
import { ledger, pay, paymentById, scanned } from "../world.ts"

const network: Network = { chain: "ethereum", mode: "test" }
const alice = "0x00000000000000000000000000000000000A11cE"
const block = (number: number, branch = "a"): BlockRef => ({ number, hash: `0x${branch}${number}`, time: number })
const receipt = (at: BlockRef, to = alice) => ({
  blockNumber: at.number,
  blockHash: at.hash,
  blockTime: at.time,
  txHash: "0x1",
  position: "tx:0",
  address: to.toLowerCase(),
  currency: "ETH",
  amount: 10n ** 30n
})

const begin = write(commitStart(network, block(10), block(10), undefined))
const commit = (reading: Pick<TickReading, "from" | "end"> & Partial<TickReading>) =>
  Effect.gen(function* () {
    const whole = { network, ancestor: undefined, corroborated: true, unwatched: false, transfers: [], ...reading }
    return yield* write(commitReading(yield* Settlement, whole))
  })

it.scoped("a commit stores a reading whole, or not at all if the scan has moved since it began", () =>
  Effect.gen(function* () {
    const { id } = yield* pay(alice)
    const reading = (from: BlockRef) => ({ from, end: block(11), transfers: [receipt(block(11))] })
    expect(yield* commit(reading(block(10)))).toBe(false)
    yield* begin
    expect(yield* commit(reading(block(9)))).toBe(false)
    expect(yield* commit(reading(block(10, "b")))).toBe(false)
    expect(yield* ledger).toEqual([])
    expect(yield* commit(reading(block(10)))).toBe(true)
    expect(yield* scanned).toEqual({ start_number: 11, head_number: 11, head_hash: "0xa11" })
    const reader = yield* Reader
    expect(yield* reader.all("SELECT amount, payment_id FROM receipts")).toEqual([
      { amount: (10n ** 30n).toString(), payment_id: id }
    ])
    // A second start changes nothing.
    yield* write(commitStart(network, block(3), block(3), undefined))
    expect(yield* scanned).toMatchObject({ start_number: 11, head_number: 11 })
    expect((yield* paymentById(id))?.createdHead).toBe(10)
  }).pipe(inWorld)
)

it.scoped("a chain's first head dates skipped addresses of its mode, unless they are newer", () =>
  Effect.gen(function* () {
    yield* change("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 9)")
    const skipped =
      "INSERT INTO gap_addresses (address, mode, wallet, wallet_index, created_at) VALUES (?, ?, 'w', ?, ?)"
    yield* change(skipped, "0xa", "test", 1, 10_000)
    yield* change(skipped, "0xb", "test", 2, 90_000)
    yield* change(skipped, "0xc", "live", 3, 10_000)
    yield* write(commitStart(network, block(3), block(60), undefined))
    const dates = yield* (yield* Reader).all("SELECT created_at FROM gap_addresses ORDER BY wallet_index")
    expect(dates).toEqual([60_000, 90_000, 10_000].map((created_at) => ({ created_at })))
  }).pipe(inWorld)
)

it.scoped("a commit stores the blocks that later reorgs are compared with, newest first", () =>
  Effect.gen(function* () {
    const reader = yield* Reader
    yield* pay(alice)
    yield* begin
    const transfers = [receipt(block(12)), { ...receipt(block(12)), position: "tx:1" }, receipt(block(14))]
    yield* commit({ from: block(10), end: block(20), transfers })
    const stored = (below: number, limit: number) => Ledger.blocksBelow(reader, network, below, limit)
    expect(yield* stored(100, 10)).toEqual([20, 14, 12, 10].map((number) => block(number)))
    expect(yield* stored(20, 2)).toEqual([14, 12].map((number) => block(number)))
  }).pipe(inWorld)
)

it.scoped("a reorg lowers every number of the scan that was above the common ancestor, and none below it", () =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const marks = Effect.map(Ledger.scan(reader, network), (scan) => [
      scan?.checked?.number,
      scan?.checked?.time,
      scan?.verified,
      scan?.safe,
      scan?.finalized
    ])
    yield* begin
    yield* write(
      Effect.gen(function* () {
        yield* Ledger.moveScan(network, block(30))
        yield* Ledger.moveVerified(network, 21)
        yield* Ledger.setTags(network, { safe: 25, finalized: 22 })
        yield* Balances.moveChecked(network, block(29))
      })
    )
    yield* write(Ledger.orphanAbove(network, block(29)))
    expect(yield* marks).toEqual([29, 29, 21, 25, 22])
    yield* write(Ledger.orphanAbove(network, block(20)))
    expect(yield* marks).toEqual([20, 20, 20, 20, 20])
    // A lagging node does not lower them.
    yield* write(Ledger.setTags(network, { safe: 12, finalized: undefined }))
    yield* write(Ledger.setTags(network, { safe: undefined, finalized: 11 }))
    expect(yield* marks).toEqual([20, 20, 20, 20, 20])
  }).pipe(inWorld)
)

it.scoped(
  "a verification pass has nothing to read below the start, nor in blocks read while no address was watched",
  () =>
    Effect.gen(function* () {
      const verified = Effect.map(Ledger.scan(yield* Reader, network), (scan) => scan?.verified)
      yield* begin
      expect(yield* verified).toBe(10)
      yield* commit({ from: block(10), end: block(12), unwatched: true })
      expect(yield* verified).toBe(12)
      yield* commit({ from: block(12), end: block(14) })
      expect(yield* verified).toBe(12)
    }).pipe(inWorld)
)

it.scoped("a reorg below all stored blocks stores the chain's block there, to compare the next reorg with", () =>
  Effect.gen(function* () {
    yield* begin
    const ancestor = { ...block(10, "b"), time: 9 }
    yield* commit({ from: block(10), ancestor, end: block(12, "b") })
    expect(yield* Ledger.blocksBelow(yield* Reader, network, 100, 10)).toEqual([block(12, "b"), ancestor])
  }).pipe(inWorld)
)

it.scoped("a reorg lets a payment of the old branch count from the common ancestor", () =>
  Effect.gen(function* () {
    yield* begin
    yield* commit({ from: block(10), end: block(12) })
    const { createdHead, id } = yield* pay(alice)
    expect(createdHead).toBe(12)
    yield* commit({ from: block(12), ancestor: block(10), end: block(13, "b") })
    expect((yield* paymentById(id))?.createdHead).toBe(10)
  }).pipe(inWorld)
)
