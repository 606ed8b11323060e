import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Balances from "../../../src/Chains/balances/BalancesRepo.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { commitReading, commitStart } from "../../../src/Chains/watcher/commit.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { Reader, Writer } from "../../../src/Sql.ts"
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
const reading = { network, ancestor: undefined, corroborated: true, unwatched: false, transfers: [] }

it.scoped("a commit stores a reading whole, or not at all if the scan has moved since it began", () =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const settlement = yield* Settlement
    const { id } = yield* pay(alice)
    const commit = (from: BlockRef, end: BlockRef) =>
      writer.write(commitReading(settlement, { ...reading, from, end, transfers: [receipt(end)] }))
    expect(yield* commit(block(10), block(11))).toBe(false)
    yield* writer.write(commitStart(network, block(10), undefined))
    expect(yield* commit(block(9), block(11))).toBe(false)
    expect(yield* commit(block(10, "b"), block(11))).toBe(false)
    expect(yield* ledger).toEqual([])
    expect(yield* commit(block(10), block(11))).toBe(true)
    expect(yield* scanned).toEqual({ start_number: 11, head_number: 11, head_hash: "0xa11" })
    expect((yield* ledger).map(({ amount }) => amount)).toEqual([(10n ** 30n).toString()])
    const reader = yield* Reader
    expect(yield* reader.get("SELECT payment_id FROM receipts")).toEqual({ payment_id: id })
    // A second start changes nothing.
    yield* writer.write(commitStart(network, block(3), undefined))
    expect(yield* scanned).toMatchObject({ start_number: 11, head_number: 11 })
    expect((yield* paymentById(id))?.createdHead).toBe(10)
  }).pipe(inWorld)
)

it.scoped("a commit stores the blocks that later reorgs are compared with, newest first", () =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const settlement = yield* Settlement
    const reader = yield* Reader
    yield* pay(alice)
    yield* writer.write(commitStart(network, block(10), undefined))
    const transfers = [receipt(block(12)), { ...receipt(block(12)), position: "tx:1" }, receipt(block(14))]
    yield* writer.write(commitReading(settlement, { ...reading, from: block(10), end: block(20), transfers }))
    const stored = (below: number, limit: number) => Ledger.blocksBelow(reader, network, below, limit)
    expect(yield* stored(100, 10)).toEqual([20, 14, 12, 10].map((number) => block(number)))
    expect(yield* stored(20, 2)).toEqual([14, 12].map((number) => block(number)))
    expect(yield* Ledger.blocksBelow(reader, { chain: "base", mode: "test" }, 100, 10)).toEqual([])
  }).pipe(inWorld)
)

it.scoped("a reorg lowers every number of the scan that was above the common ancestor, and none below it", () =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const reader = yield* Reader
    const marks = Effect.map(Ledger.scan(reader, network), (scan) => [
      scan?.checked?.number,
      scan?.checked?.time,
      scan?.verified,
      scan?.safe,
      scan?.finalized
    ])
    yield* writer.write(
      Effect.gen(function* () {
        yield* commitStart(network, block(10), undefined)
        yield* Ledger.moveScan(network, block(30))
        yield* Ledger.moveVerified(network, 21)
        yield* Ledger.setTags(network, { safe: 25, finalized: 22 })
        yield* Balances.moveChecked(network, block(29))
      })
    )
    yield* writer.write(Ledger.orphanAbove(network, block(29)))
    expect(yield* marks).toEqual([29, 29, 21, 25, 22])
    yield* writer.write(Ledger.orphanAbove(network, block(20)))
    expect(yield* marks).toEqual([20, 20, 20, 20, 20])
    // A lagging node does not lower them.
    yield* writer.write(Ledger.setTags(network, { safe: 12, finalized: undefined }))
    yield* writer.write(Ledger.setTags(network, { safe: undefined, finalized: 11 }))
    expect(yield* marks).toEqual([20, 20, 20, 20, 20])
  }).pipe(inWorld)
)

it.scoped("a commit skips a watched address without a payment of the mode", () =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const settlement = yield* Settlement
    yield* pay(alice, { mode: "live" })
    yield* writer.write(commitStart(network, block(10), undefined))
    const transfers = [receipt(block(11)), receipt(block(11), `0x${"7".repeat(40)}`)]
    expect(
      yield* writer.write(commitReading(settlement, { ...reading, from: block(10), end: block(11), transfers }))
    ).toBe(true)
    expect(yield* ledger).toEqual([])
  }).pipe(inWorld)
)

it.scoped(
  "a verification pass has nothing to read below the start, nor in blocks read while no address was watched",
  () =>
    Effect.gen(function* () {
      const writer = yield* Writer
      const reader = yield* Reader
      const settlement = yield* Settlement
      const verified = Effect.map(Ledger.scan(reader, network), (scan) => scan?.verified)
      yield* writer.write(commitStart(network, block(10), undefined))
      expect(yield* verified).toBe(10)
      const nobody = { ...reading, from: block(10), end: block(12), unwatched: true }
      expect(yield* writer.write(commitReading(settlement, nobody))).toBe(true)
      expect(yield* verified).toBe(12)
      const somebody = { ...reading, from: block(12), end: block(14) }
      expect(yield* writer.write(commitReading(settlement, somebody))).toBe(true)
      expect(yield* verified).toBe(12)
    }).pipe(inWorld)
)

it.scoped("a reorg below all stored blocks stores the chain's block there, to compare the next reorg with", () =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const reader = yield* Reader
    const settlement = yield* Settlement
    yield* writer.write(commitStart(network, block(10), undefined))
    const ancestor = { ...block(10, "b"), time: 9 }
    const other = { ...reading, from: block(10), ancestor, end: block(12, "b") }
    expect(yield* writer.write(commitReading(settlement, other))).toBe(true)
    expect(yield* Ledger.blocksBelow(reader, network, 100, 10)).toEqual([block(12, "b"), ancestor])
  }).pipe(inWorld)
)
