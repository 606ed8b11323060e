import { expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import * as WatchedRepo from "../../src/Chains/ledger/WatchedAddressesRepo.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import {
  asked,
  attributedBy,
  besideNode,
  end,
  hash,
  look,
  mined,
  refunded,
  start,
  test,
  testOfTwo,
  unattributed
} from "./deciding.ts"
import {
  block,
  crowd,
  elsewhere,
  network,
  scanTo,
  startScans,
  startWith,
  tick,
  transfer,
  usdcElsewhere,
  withChains
} from "./settling.ts"

test("accept: an orphaned transaction is proven like any that the ledger does not have", function* () {
  const { id } = yield* start
  yield* tick({ head: 121, transfers: [transfer(120, 400n)] })
  yield* tick({ head: 122, ancestor: 119, transfers: [transfer(121, 300n)] })
  expect((yield* Effect.flip(accept(id, "0xt120"))).message).toContain("no transaction")
  expect((yield* look(id)).payment?.status).toBe("detecting")
})

test("accept: a confirmed payment keeps its transaction, and no provider is asked about another", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 1500n))
  yield* accept(id, hash("1"))
  expect(asked).toEqual([])
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ status: "confirmed", txHash: "0xt120" })
  expect(after.exceptions).toEqual(["accepted overpaid 500"])
})

test("accept: a transaction that paid another payment is refused where all money has a known transaction", function* () {
  const { id } = yield* start
  const [other = expect.unreachable()] = yield* crowd(1)
  const paid = transfer(121, 1000n, { address: other.address.toLowerCase(), txHash: hash("1") })
  yield* scanTo(130, transfer(120, 400n), paid)
  mined.set(hash("1"), { blockNumber: 121, status: "0x1" })
  const refused = yield* Effect.flip(accept(id, hash("1")))
  expect(refused).toMatchObject({ _tag: "TransactionNotProven", message: expect.stringContaining(other.id) })
  expect((yield* look(id)).payment?.status).toBe("detecting")
  // Coins of which no transaction is known can have come by it, too.
  yield* scanTo(131, transfer(122, 600n, unattributed))
  expect((yield* accept(id, hash("1")))?.payment).toMatchObject({ status: "confirmed", txHash: hash("1") })
})

const live: Network = { chain: "base", mode: "live" }

scopedTest(besideNode(withChains({}, live)))(
  "accept: a transaction is proven by the providers of the payment's mode",
  function* () {
    mined.clear()
    asked.splice(0)
    const { id } = yield* startWith({ mode: "live" })
    const writer = yield* Writer
    yield* writer.write(
      Effect.zipRight(LedgerRepo.startScan(live, block(100), undefined), WatchedRepo.startAt(live, 100))
    )
    yield* tick({ head: 130, on: live, transfers: [transfer(120, 1000n, unattributed)] })
    mined.set(hash("1"), { blockNumber: 190, status: "0x1" })
    yield* accept(id, hash("1"))
    expect(asked).toEqual(["base.live"])
    expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: hash("1"), amountReceived: 1000n })
  }
)

test("an exception of a payment is decided on with its payment, and not by its own id", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 1500n))
  const [exception = expect.unreachable()] = yield* Exceptions.ofPayment(yield* Reader, id)
  expect(yield* accept(exception.id, undefined)).toBeUndefined()
  expect(yield* refunded(exception.id)).toBeUndefined()
  expect((yield* look(id)).exceptions).toEqual(["open overpaid 500"])
})

test("accept: the payment ended when it was accepted; on-time money that was known then is not paid again", function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 1000n), transfer(200, 100n))
  yield* TestClock.adjust("1 minute")
  yield* accept(id, `0xt${end + 5}`)
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ confirmedAt: (end + 69) * 1000, endedAt: (end + 69) * 1000 })
  expect(after.exceptions.toSorted()).toEqual(["accepted found_late 100", "accepted late 1000"])
  yield* scanTo(end + 90, transfer(201, 30n))
  expect((yield* look(id)).exceptions).toContain("open overpaid 30")
})

test("accept: a payment that a reorg undid is confirmed again, by the money that came back", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 1000n))
  yield* tick({ head: 131, ancestor: 119, finalized: 118 })
  yield* tick({ head: 132, finalized: 120 })
  expect((yield* look(id)).payment).toMatchObject({ failureReason: "reorged", confirmedAt: 130_000 })
  yield* scanTo(140, transfer(135, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["gone reorged 1000", "open found_late 1000"])
  yield* accept(id, undefined)
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ status: "confirmed", txHash: "0xt135", amountReceived: 1000n })
  expect(after.payment).toMatchObject({ failureReason: undefined, confirmedAt: 140_000, endedAt: 140_000 })
  expect(after.events.slice(2)).toEqual(["payment.failed", "payment.confirmed"])
  expect(after.exceptions).toEqual(["gone reorged 1000", "accepted found_late 1000"])
})

test("accept: a payment whose money a reorg removed permanently needs another transaction, and stays confirmed by it", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 1000n))
  yield* tick({ head: 131, ancestor: 119, finalized: 118 })
  yield* tick({ head: 132, finalized: 120 })
  const failed = yield* look(id)
  expect(failed.exceptions).toEqual(["open reorged 1000"])
  expect(yield* Effect.flip(accept(id, undefined))).toMatchObject({
    _tag: "TransactionNotProven",
    message: expect.stringContaining("--tx")
  })
  expect(yield* look(id)).toEqual(failed)
  mined.set(hash("1"), { blockNumber: 190, status: "0x1" })
  yield* accept(id, hash("1"))
  const restarted = yield* Effect.provide(Settlement, Layer.fresh(settlementLayer)).pipe(
    Effect.provide(testSettingsLayer(""))
  )
  const writer = yield* Writer
  yield* writer.write(restarted.settle({ network, head: block(132) }, []))
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ status: "confirmed", txHash: hash("1") })
  expect(after.events.slice(2)).toEqual(["payment.failed", "payment.confirmed"])
  expect(after.exceptions).toEqual(["accepted reorged 1000"])
})

test("accept: what comes after such a transaction is paid again", function* () {
  const { id } = yield* start
  yield* scanTo(121, transfer(119, 600n))
  mined.set(hash("1"), { blockNumber: 190, status: "0x1" })
  yield* accept(id, hash("1"))
  expect((yield* look(id)).exceptions).toEqual([])
  yield* scanTo(150, transfer(140, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["open overpaid 1000"])
})

test("accept: further money is paid again beside accepted unattributed money, whose own transaction is not", function* () {
  const { id } = yield* start
  mined.set(hash("1"), { blockNumber: 190, status: "0x1" })
  yield* scanTo(130, transfer(120, 1500n, unattributed))
  yield* accept(id, hash("1"))
  yield* scanTo(150, transfer(140, 1000n))
  const before = ["accepted unattributed 1500", "open overpaid 1000"]
  expect((yield* look(id)).exceptions).toEqual(before)
  yield* attributedBy(151, transfer(118, 1500n, { position: "call:0xa", txHash: hash("1") }))
  expect((yield* look(id)).exceptions).toEqual(before)
})

test("accept: unattributed money makes up for what the other transactions lacked", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(110, 300n), transfer(120, 700n, unattributed))
  expect((yield* accept(id, undefined))?.payment).toMatchObject({ txHash: "0xt110", amountReceived: 1000n })
  yield* scanTo(150, transfer(140, 500n))
  const before = ["accepted unattributed 700", "open overpaid 500"]
  expect((yield* look(id)).exceptions).toEqual(before)
  yield* attributedBy(151, transfer(118, 700n, { position: "call:0xa" }))
  expect((yield* look(id)).exceptions).toEqual(before)
})

testOfTwo("accept: unattributed money on another chain opens nothing new when its transaction is found", function* () {
  const { id } = yield* start
  const writer = yield* Writer
  yield* startScans(7, elsewhere)
  yield* tick({ head: 300, on: elsewhere, transfers: [transfer(250, 7n, unattributed)] })
  mined.set(hash("1"), { blockNumber: 198, status: "0x1" })
  yield* accept(id, hash("1"))
  yield* TestClock.setTime(301_000)
  yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts WHERE position = 'unattributed'")))
  yield* tick({ head: 301, on: elsewhere, transfers: [transfer(240, 7n, { position: "call:0xa" })] })
  expect((yield* look(id)).exceptions).toEqual(["accepted wrong_chain 7"])
  yield* scanTo(302, transfer(290, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["accepted wrong_chain 7", "open overpaid 1000"])
})

testOfTwo(
  "accept: money on another chain that a reorg there removed is reported, and counts as paid again if it comes back",
  function* () {
    const { id } = yield* start
    yield* startScans(7, elsewhere)
    yield* tick({ head: 252, on: elsewhere, transfers: [usdcElsewhere(250, 1000n)] })
    yield* accept(id, undefined)
    yield* tick({ head: 253, on: elsewhere, ancestor: 249 })
    const gone = yield* look(id)
    expect(gone.payment).toMatchObject({ status: "confirmed", txHash: "0xt250" })
    expect(gone.exceptions.toSorted()).toEqual(["accepted wrong_chain 1000", "open reorged 1000"])
    yield* tick({ head: 254, on: elsewhere, transfers: [{ ...usdcElsewhere(254, 1000n), txHash: "0xt250" }] })
    expect((yield* look(id)).exceptions.toSorted()).toEqual(["accepted wrong_chain 1000", "gone reorged 1000"])
  }
)
