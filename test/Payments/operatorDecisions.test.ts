import { expect } from "@effect/vitest"
import { Effect } from "effect"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { startAt } from "../../src/Chains/ledger/WatchedAddressesRepo.ts"
import type { PaymentId } from "../../src/Domain/Ids.ts"
import { abandon, accept } from "../../src/Payments/operatorDecisions.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { asked, end, hash, look, mined, refunded, start, test, testOfTwo, unattributed } from "./deciding.ts"
import {
  block,
  crowd,
  elsewhere,
  exceptions,
  lastOnTime,
  network,
  payAgain,
  scanTo,
  startScans,
  startWith,
  tick,
  transfer,
  usdcElsewhere
} from "./settling.ts"

test("accept: an expired payment whose money came late becomes confirmed by it, with its event, once", function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 1000n))
  const first = yield* accept(id, undefined)
  expect(first).toMatchObject({ payment: { status: "confirmed" }, exceptions: [{ status: "accepted" }] })
  expect(yield* accept(id, undefined)).toEqual(first)
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 5}`, confirmedAt: (end + 9) * 1000 })
  expect(after.events).toEqual(["payment.expired", "payment.confirmed"])
  // What is settled later leaves the decision alone.
  yield* scanTo(end + 30, transfer(end + 5, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["accepted late 1000"])
})

test("accept: a failed payment that got too little, by its first transaction", function* () {
  const { id } = yield* start
  yield* scanTo(end, transfer(120, 400n), transfer(121, 300n))
  expect((yield* look(id)).payment?.status).toBe("failed")
  yield* accept(id, undefined)
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ status: "confirmed", txHash: "0xt120", amountReceived: 700n })
  expect(after.payment?.failureReason).toBeUndefined()
  expect(after.events).toEqual(["payment.detecting", "payment.failed", "payment.confirmed"])
  expect(after.exceptions.toSorted()).toEqual(["accepted underpaid 300", "accepted underpaid 400"])
})

test("accept: with what was found late, by the transaction that crosses; its surplus is accepted with it", function* () {
  const { id } = yield* start
  yield* scanTo(end, transfer(120, 400n))
  yield* scanTo(end + 9, transfer(121, 900n))
  yield* accept(id, undefined)
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ status: "confirmed", txHash: "0xt121", amountReceived: 1300n })
  expect(after.exceptions.toSorted()).toEqual([
    "accepted found_late 900",
    "accepted overpaid 300",
    "accepted underpaid 400"
  ])
})

test("accept: closes what is open of a confirmed payment and changes nothing else", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 1500n))
  const before = yield* look(id)
  expect(before.exceptions).toEqual(["open overpaid 500"])
  yield* accept(id, undefined)
  expect(yield* look(id)).toEqual({ ...before, exceptions: ["accepted overpaid 500"] })
})

test("accept: unattributed money needs a named transaction that the chain has, deep enough and not failed", function* () {
  const { id } = yield* start
  yield* scanTo(end, transfer(120, 1000n, unattributed))
  const refusal = (tx: string | undefined) => Effect.map(Effect.flip(accept(id, tx)), ({ message }) => message)
  expect(yield* refusal(undefined)).toContain("--tx")
  expect(yield* refusal(hash("1"))).toContain("no transaction")
  mined.set(hash("1"), { blockNumber: 199, status: "0x1" })
  expect(yield* refusal(hash("1"))).toContain("2 of the 3 confirmations")
  mined.set(hash("1"), { blockNumber: 198, status: "0x0" })
  expect(yield* refusal(hash("1"))).toContain("failed in block 198")
  mined.set(hash("1"), { blockNumber: 0, status: "0x1" })
  expect(yield* refusal(hash("1"))).toContain("could not be asked")
  expect((yield* look(id)).payment?.status).toBe("detecting")
  mined.set(hash("1"), { blockNumber: 198, status: "0x1" })
  yield* accept(id, hash("1"))
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ status: "confirmed", txHash: hash("1"), amountReceived: 1000n })
  expect(after.exceptions).toEqual(["accepted unattributed 1000"])
})

testOfTwo("accept: the transaction named for unattributed money is proven on the chain of that money", function* () {
  const { id } = yield* start
  yield* startScans(7, elsewhere)
  yield* tick({ head: 300, on: elsewhere, transfers: [transfer(250, 7n, { ...unattributed, currency: "ETH" })] })
  expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 7"])
  mined.set(hash("1"), { blockNumber: 198, status: "0x1" })
  yield* accept(id, hash("1"))
  expect(asked).toEqual(["optimism.test"])
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: hash("1") })
})

test("accept: no provider is asked about a transaction that the ledger has", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 1n), transfer(121, 2n))
  yield* accept(id, "0xt121")
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt121", amountReceived: 3n })
})

test("accept: fails where no money came, and returns nothing for an unknown payment", function* () {
  const { id } = yield* start
  yield* scanTo(130)
  expect(yield* Effect.flip(accept(id, undefined))).toMatchObject({ _tag: "NothingToDecide" })
  expect((yield* look(id)).payment?.status).toBe("pending")
  expect(yield* accept("pay_none", undefined)).toBeUndefined()
})

test("abandon: every open payment of the chain fails, with its event; others and ended ones stay", function* () {
  const { id } = yield* start
  yield* crowd(230)
  const other = yield* payAgain(999, { chain: "polygon", currency: "USDC", address: "0x999" })
  const live = yield* payAgain(1000, { mode: "live", address: "0x1000" })
  yield* scanTo(130, transfer(120, 1000n))
  expect(yield* abandon(network)).toEqual({ abandoned: 230, givenUp: 0 })
  expect(yield* abandon(network)).toEqual({ abandoned: 0, givenUp: 0 })
  expect((yield* look(id)).payment?.status).toBe("confirmed")
  expect((yield* look(other.id)).payment?.status).toBe("pending")
  expect((yield* look(live.id)).payment?.status).toBe("pending")
  const reader = yield* Reader
  const failed = yield* reader.all<{ id: PaymentId }>(
    "SELECT id FROM payments WHERE status = 'failed' AND failure_reason = 'abandoned'"
  )
  expect(failed).toHaveLength(230)
  const { events } = yield* look(failed[0]?.id ?? id)
  expect(events).toEqual(["payment.failed"])
})

test("abandon: a payment that has got some of its money fails too, and keeps what it has got", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 400n))
  expect(yield* abandon(network)).toEqual({ abandoned: 1, givenUp: 0 })
  const after = yield* look(id)
  expect(after.payment).toMatchObject({
    status: "failed",
    failureReason: "abandoned",
    amountReceived: 400n,
    endedAt: 130_000
  })
  expect([after.events, after.exceptions]).toEqual([["payment.detecting", "payment.failed"], ["open underpaid 400"]])
  yield* scanTo(140, transfer(131, 600n))
  expect((yield* look(id)).exceptions).toEqual(["open underpaid 400", "open found_late 600"])
})

testOfTwo(
  "abandon: works before a chain's first head; money on another chain, and later on this one, is an exception",
  function* () {
    const { id } = yield* startWith({ currency: "USDC" })
    const writer = yield* Writer
    const run = (sql: string) => writer.write(Effect.flatMap(Tx, (tx) => tx.run(sql)))
    yield* run("UPDATE payments SET created_head = NULL")
    yield* run("DELETE FROM scans")
    yield* startScans(7, elsewhere)
    yield* tick({ head: 300, on: elsewhere, transfers: [usdcElsewhere(250, 1000n)] })
    expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 1000"])
    yield* abandon(network)
    expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 1000"])
    yield* writer.write(Effect.zipRight(LedgerRepo.startScan(network, block(290), undefined), startAt(network, 290)))
    yield* scanTo(310, usdcElsewhere(305, 5n))
    expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 1000", "open found_late 5"])
    yield* accept(id, undefined)
    expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt305", amountReceived: 5n })
  }
)

/** A payment that one per cent less is enough for. */
const startTolerant = startWith({ toleranceBps: 100 })

test("what may be missing is what the payment was made with, and one unit less is too little", function* () {
  const payment = yield* startTolerant
  yield* scanTo(130, transfer(120, 989n))
  expect((yield* look(payment.id)).payment?.status).toBe("detecting")
  yield* scanTo(140, transfer(131, 1n))
  expect((yield* look(payment.id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt131" })
})

test("accept: by the transaction that reaches the tolerated amount", function* () {
  const payment = yield* startTolerant
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(120, 400n), transfer(121, 595n), transfer(122, 1n))
  yield* accept(payment.id, undefined)
  expect((yield* look(payment.id)).payment).toMatchObject({
    status: "confirmed",
    txHash: "0xt121",
    amountReceived: 996n
  })
})

test("where the payment's transaction is orphaned, another that brings enough completes it", function* () {
  const payment = yield* startTolerant
  yield* scanTo(130, transfer(120, 1000n))
  yield* tick({ head: 131, ancestor: 119, transfers: [transfer(121, 995n), transfer(125, 300n)] })
  expect(yield* exceptions(payment)).toEqual(["open overpaid 295 0xt125"])
})

test("accept: money within the minute of grace was on time", function* () {
  const payment = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(lastOnTime, 700n), transfer(lastOnTime + 1, 300n))
  expect((yield* accept(payment.id, undefined))?.payment).toMatchObject({ status: "confirmed", amountReceived: 700n })
})

test("accept: never by the gas for a token, also when the token was sent back", function* () {
  const { id } = yield* startWith({ currency: "USDC" })
  yield* scanTo(end)
  const late = { currency: "USDC", position: "log:1" } as const
  yield* scanTo(end + 9, transfer(end + 5, 1000n, late), transfer(end + 6, 5n))
  yield* refunded(id)
  yield* scanTo(end + 20, transfer(end + 12, 6n))
  expect((yield* look(id)).exceptions).toEqual(["refunded late 1000"])
  yield* Effect.flip(accept(id, undefined))
  expect((yield* look(id)).payment?.status).toBe("expired")
})
