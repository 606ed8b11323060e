import { expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { startAt } from "../../src/Chains/ledger/WatchedAddressesRepo.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import type { PaymentId } from "../../src/Domain/Ids.ts"
import { abandon } from "../../src/Payments/cancellation.ts"
import { accept } from "../../src/Payments/decisions/accept.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"
import {
  asked,
  attributedBy,
  besideNode,
  end,
  expiredWith,
  hash,
  look,
  mined,
  paidBy,
  refunded,
  refusal,
  stands,
  start,
  test,
  testOfTwo,
  unattributed,
  undone
} from "./deciding.ts"
import {
  block,
  crowd,
  elsewhere,
  lastOnTime,
  network,
  payAgain,
  scanTo,
  startScans,
  startWith,
  tick,
  transfer,
  usdcElsewhere,
  withChains
} from "./settling.ts"

/** The chain has that transaction, deep enough. */
const minedAt = (blockNumber: number) => mined.set(hash("1"), { blockNumber, status: "0x1" })
/** A payment that one per cent less is enough for. */
const startTolerant = startWith({ toleranceBps: 100 })

test("accept: an expired payment whose money came late becomes confirmed by it, with its event, once", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 1000n))
  const first = yield* accept(id, undefined, {})
  expect(first).toMatchObject({ payment: { status: "confirmed" }, exception: undefined })
  expect(yield* accept(id, undefined, {})).toEqual(first)
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ confirmedAt: (end + 9) * 1000 })
  expect(after.events).toEqual(["payment.expired", "payment.confirmed"])
  // What is settled later leaves the decision alone.
  yield* scanTo(end + 30, transfer(end + 5, 1000n))
  yield* stands(id, `confirmed 0xt${end + 5}`, "accepted late 1000")
})

test("accept: a failed payment that got too little, by its first transaction", function* () {
  const { id } = yield* paidBy(end, transfer(120, 400n), transfer(121, 300n))
  yield* accept(id, undefined, {})
  yield* stands(id, "confirmed 700 0xt120", "accepted underpaid 300", "accepted underpaid 400")
})

test("accept: with what was found late, by the transaction that crosses; its surplus is accepted with it", function* () {
  const { id } = yield* paidBy(end, transfer(120, 400n))
  yield* scanTo(end + 9, transfer(121, 900n))
  yield* accept(id, undefined, {})
  const accepted = ["accepted found_late 900", "accepted overpaid 300", "accepted underpaid 400"]
  yield* stands(id, "confirmed 1300 0xt121", ...accepted)
})

test("accept: by the transaction that reaches the tolerated amount", function* () {
  const { id } = yield* startTolerant
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(120, 400n), transfer(121, 595n), transfer(122, 1n))
  expect((yield* accept(id, undefined, {}))?.payment).toMatchObject({ txHash: "0xt121", amountReceived: 996n })
})

test("accept: money within the minute of grace was on time", function* () {
  const { id } = yield* expiredWith(transfer(lastOnTime, 700n), transfer(lastOnTime + 1, 300n))
  expect((yield* accept(id, undefined, {}))?.payment).toMatchObject({ status: "confirmed", amountReceived: 700n })
})

test("accept: closes what is open of a confirmed payment, which keeps its transaction, and asks no provider", function* () {
  const { id } = yield* paidBy(130, transfer(120, 1500n))
  const before = yield* look(id)
  expect(before.exceptions).toEqual(["open overpaid 500"])
  yield* accept(id, undefined, { txHash: hash("1") })
  expect(yield* look(id)).toEqual({ ...before, exceptions: ["accepted overpaid 500"] })
  expect(asked).toEqual([])
})

test("accept: unattributed money needs a named transaction that the chain has, deep enough and not failed", function* () {
  const { id } = yield* paidBy(end, transfer(120, 1000n, unattributed))
  expect(yield* refusal(accept(id, undefined, {}))).toContain("--tx")
  for (const [why, known] of [
    ["no transaction", undefined],
    ["2 of the 3 confirmations", { blockNumber: 199, status: "0x1" }],
    ["failed in block 198", { blockNumber: 198, status: "0x0" }],
    ["could not be asked", { blockNumber: 0, status: "0x1" }]
  ] as const) {
    if (known) mined.set(hash("1"), known)
    expect(yield* refusal(accept(id, undefined, { txHash: hash("1") }))).toContain(why)
  }
  yield* stands(id, "detecting 1000", "open unattributed 1000")
  minedAt(198)
  yield* accept(id, undefined, { txHash: hash("1") })
  yield* stands(id, `confirmed 1000 ${hash("1")}`, "accepted unattributed 1000")
})

test("accept: no provider is asked about a transaction that the ledger has, unless a reorg has orphaned it", function* () {
  const { id } = yield* start
  yield* tick({ head: 121, transfers: [transfer(120, 400n)] })
  yield* tick({ head: 130, ancestor: 119, transfers: [transfer(121, 1n), transfer(122, 2n)] })
  expect(yield* refusal(accept(id, undefined, { txHash: "0xt120" }))).toContain("no transaction")
  yield* stands(id, "detecting 3 0xt121")
  yield* accept(id, undefined, { txHash: "0xt122" })
  yield* stands(id, "confirmed 3 0xt122")
})

test("accept: fails where no money came, and returns nothing for an unknown payment", function* () {
  const { id } = yield* paidBy(130)
  expect(yield* Effect.flip(accept(id, undefined, {}))).toMatchObject({ _tag: "NothingToDecide" })
  yield* stands(id, "pending")
  expect(yield* accept("pay_none", undefined, {})).toBeUndefined()
})

test("accept: never by the gas for a token, also when the token was sent back", function* () {
  const { id } = yield* startWith({ currency: "USDC" })
  yield* scanTo(end)
  const late = { currency: "USDC", position: "log:1" } as const
  yield* scanTo(end + 9, transfer(end + 5, 1000n, late), transfer(end + 6, 5n))
  yield* refunded(id)
  yield* scanTo(end + 20, transfer(end + 12, 6n))
  yield* Effect.flip(accept(id, undefined, {}))
  yield* stands(id, "expired", "refunded late 1000")
})

test("where the payment's transaction is orphaned, another that brings enough completes it", function* () {
  const { id } = yield* startTolerant
  yield* scanTo(130, transfer(120, 1000n))
  yield* tick({ head: 131, ancestor: 119, transfers: [transfer(121, 995n), transfer(125, 300n)] })
  expect((yield* look(id)).exceptions).toEqual(["open overpaid 295"])
})

test("accept: a transaction that paid another payment is refused where all money has a known transaction", function* () {
  const { id } = yield* start
  const [other = expect.unreachable()] = yield* crowd(1)
  const paid = transfer(121, 1000n, { address: other.address.toLowerCase(), txHash: hash("1") })
  yield* scanTo(130, transfer(120, 400n), paid)
  minedAt(121)
  expect(yield* Effect.flip(accept(id, undefined, { txHash: hash("1") }))).toMatchObject({
    _tag: "TransactionNotProven",
    message: expect.stringContaining(other.id)
  })
  // Coins of which no transaction is known can have come by it, too.
  yield* scanTo(131, transfer(122, 600n, unattributed))
  expect((yield* accept(id, undefined, { txHash: hash("1") }))?.payment).toMatchObject({
    status: "confirmed",
    txHash: hash("1")
  })
})

const live: Network = { chain: "base", mode: "live" }

const testOfModes = scopedTest(besideNode(withChains({}, live)))
testOfModes("accept: a transaction is proven by the providers of the payment's mode", function* () {
  mined.clear()
  asked.splice(0)
  const { id } = yield* startWith({ mode: "live" })
  yield* inTransaction(Effect.zipRight(LedgerRepo.startScan(live, block(100), undefined), startAt(live, 100)))
  yield* tick({ head: 130, on: live, transfers: [transfer(120, 1000n, unattributed)] })
  minedAt(190)
  yield* accept(id, undefined, { txHash: hash("1") })
  expect(asked).toEqual(["base.live"])
  yield* stands(id, `confirmed 1000 ${hash("1")}`, "accepted unattributed 1000")
})

test("accept: the payment ended when it was accepted; on-time money that was known then is not paid again", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 1000n), transfer(200, 100n))
  yield* TestClock.adjust("1 minute")
  yield* accept(id, undefined, { txHash: `0xt${end + 5}` })
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ confirmedAt: (end + 69) * 1000, endedAt: (end + 69) * 1000 })
  expect(after.exceptions.toSorted()).toEqual(["accepted found_late 100", "accepted late 1000"])
  yield* scanTo(end + 90, transfer(201, 30n))
  expect((yield* look(id)).exceptions).toContain("open overpaid 30")
})

test("accept: a payment that a reorg undid is confirmed again, by the money that came back", function* () {
  const { id } = yield* undone
  expect((yield* look(id)).payment).toMatchObject({ failureReason: "reorged", confirmedAt: 130_000 })
  yield* scanTo(140, transfer(135, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["gone reorged 1000", "open found_late 1000"])
  yield* accept(id, undefined, {})
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ confirmedAt: 140_000, endedAt: 140_000 })
  expect(after.events.slice(2)).toEqual(["payment.failed", "payment.confirmed"])
  yield* stands(id, "confirmed 1000 0xt135", "gone reorged 1000", "accepted found_late 1000")
})

test("accept: a payment whose money a reorg removed permanently needs another transaction, and stays confirmed by it", function* () {
  const { id } = yield* undone
  const failed = yield* look(id)
  expect(failed.exceptions).toEqual(["open reorged 1000"])
  expect(yield* Effect.flip(accept(id, undefined, {}))).toMatchObject({
    _tag: "TransactionNotProven",
    message: expect.stringContaining("--tx")
  })
  expect(yield* look(id)).toEqual(failed)
  minedAt(190)
  yield* accept(id, undefined, { txHash: hash("1") })
  const restarted = yield* Effect.provide(Settlement, Layer.fresh(settlementLayer)).pipe(
    Effect.provide(testSettingsLayer(""))
  )
  yield* inTransaction(restarted.settle({ network, head: block(132) }, []))
  expect((yield* look(id)).events.slice(2)).toEqual(["payment.failed", "payment.confirmed"])
  yield* stands(id, `confirmed ${hash("1")}`, "accepted reorged 1000")
})

test("accept: what comes after such a transaction is paid again", function* () {
  const { id } = yield* paidBy(121, transfer(119, 600n))
  minedAt(190)
  yield* accept(id, undefined, { txHash: hash("1") })
  expect((yield* look(id)).exceptions).toEqual([])
  yield* scanTo(150, transfer(140, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["open overpaid 1000"])
})

test("accept: further money is paid again beside accepted unattributed money, whose own transaction is not", function* () {
  const { id } = yield* paidBy(130, transfer(120, 1500n, unattributed))
  minedAt(190)
  yield* accept(id, undefined, { txHash: hash("1") })
  yield* scanTo(150, transfer(140, 1000n))
  const before = ["accepted unattributed 1500", "open overpaid 1000"]
  expect((yield* look(id)).exceptions).toEqual(before)
  yield* attributedBy(151, transfer(118, 1500n, { position: "call:0xa", txHash: hash("1") }))
  expect((yield* look(id)).exceptions).toEqual(before)
})

test("accept: unattributed money makes up for what the other transactions lacked", function* () {
  const { id } = yield* paidBy(130, transfer(110, 300n), transfer(120, 700n, unattributed))
  expect((yield* accept(id, undefined, {}))?.payment).toMatchObject({ txHash: "0xt110", amountReceived: 1000n })
  yield* scanTo(150, transfer(140, 500n))
  const before = ["accepted unattributed 700", "open overpaid 500"]
  expect((yield* look(id)).exceptions).toEqual(before)
  yield* attributedBy(151, transfer(118, 700n, { position: "call:0xa" }))
  expect((yield* look(id)).exceptions).toEqual(before)
})

testOfTwo("accept: unattributed money of another chain is proven there, and found opens nothing new", function* () {
  const { id } = yield* start
  yield* startScans(7, elsewhere)
  yield* tick({ head: 300, on: elsewhere, transfers: [transfer(250, 7n, unattributed)] })
  yield* stands(id, "pending", "open wrong_chain 7")
  minedAt(198)
  yield* accept(id, undefined, { txHash: hash("1") })
  expect(asked).toEqual(["optimism.test"])
  yield* stands(id, `confirmed ${hash("1")}`, "accepted wrong_chain 7")
  yield* TestClock.setTime(301_000)
  yield* execute("DELETE FROM receipts WHERE position = 'unattributed'")
  yield* tick({ head: 301, on: elsewhere, transfers: [transfer(240, 7n, { position: "call:0xa" })] })
  expect((yield* look(id)).exceptions).toEqual(["accepted wrong_chain 7"])
  yield* scanTo(302, transfer(290, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["accepted wrong_chain 7", "open overpaid 1000"])
})

testOfTwo("accept: money on another chain that a reorg there removed is reported until it is back", function* () {
  const { id } = yield* start
  yield* startScans(7, elsewhere)
  yield* tick({ head: 252, on: elsewhere, transfers: [usdcElsewhere(250, 1000n)] })
  yield* accept(id, undefined, {})
  yield* tick({ head: 253, on: elsewhere, ancestor: 249 })
  yield* stands(id, "confirmed 0xt250", "accepted wrong_chain 1000", "open reorged 1000")
  yield* tick({ head: 254, on: elsewhere, transfers: [{ ...usdcElsewhere(254, 1000n), txHash: "0xt250" }] })
  yield* stands(id, "confirmed 0xt250", "accepted wrong_chain 1000", "gone reorged 1000")
})

test("abandon: every open payment of the chain fails, with its event; others and ended ones stay", function* () {
  const { id } = yield* start
  yield* crowd(230)
  const other = yield* payAgain(999, { chain: "polygon", currency: "USDC", address: "0x999" })
  const ofLive = yield* payAgain(1000, { mode: "live", address: "0x1000" })
  yield* scanTo(130, transfer(120, 1000n))
  expect(yield* abandon(network)).toEqual({ abandoned: 230, givenUp: 0 })
  expect(yield* abandon(network)).toEqual({ abandoned: 0, givenUp: 0 })
  expect((yield* look(id)).payment?.status).toBe("confirmed")
  for (const one of [other, ofLive]) yield* stands(one.id, "pending")
  const failed = yield* rows<{ id: PaymentId }>(
    "SELECT id FROM payments WHERE status = 'failed' AND failure_reason = 'abandoned'"
  )
  expect(failed).toHaveLength(230)
  expect((yield* look(failed[0]?.id ?? id)).events).toEqual(["payment.failed"])
})

test("abandon: a payment that has got some of its money fails too, and keeps what it has got", function* () {
  const { id } = yield* paidBy(130, transfer(120, 400n))
  expect(yield* abandon(network)).toEqual({ abandoned: 1, givenUp: 0 })
  const after = yield* look(id)
  expect([after.payment?.endedAt, after.events]).toEqual([130_000, ["payment.detecting", "payment.failed"]])
  yield* stands(id, "failed: abandoned 400 0xt120", "open underpaid 400")
  yield* scanTo(140, transfer(131, 600n))
  expect((yield* look(id)).exceptions).toEqual(["open underpaid 400", "open found_late 600"])
})

testOfTwo("abandon: works before a chain's first head; money on any chain is an exception", function* () {
  const { id } = yield* startWith({ currency: "USDC" })
  yield* execute("UPDATE payments SET created_head = NULL")
  yield* execute("DELETE FROM scans")
  yield* startScans(7, elsewhere)
  yield* tick({ head: 300, on: elsewhere, transfers: [usdcElsewhere(250, 1000n)] })
  expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 1000"])
  yield* abandon(network)
  expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 1000"])
  yield* inTransaction(Effect.zipRight(LedgerRepo.startScan(network, block(290), undefined), startAt(network, 290)))
  yield* scanTo(310, usdcElsewhere(305, 5n))
  expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 1000", "open found_late 5"])
  yield* accept(id, undefined, {})
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt305", amountReceived: 5n })
})
