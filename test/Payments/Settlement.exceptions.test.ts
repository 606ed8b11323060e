import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as UnshownReceipts from "../../src/Chains/corroboration/UnshownReceiptsRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Receipts from "../../src/Payments/ReceiptsRepo.ts"
import { Reader } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"
import {
  after,
  afterScan,
  alarmedAbout,
  alarms,
  block,
  confirmations,
  confirmedOnce,
  corroborate,
  elsewhere,
  exceptions,
  kindsOf,
  lastOnTime,
  look,
  losePayment,
  lost,
  network,
  scanTo,
  shows,
  start,
  startScans,
  test,
  tick,
  transfer,
  usdcElsewhere,
  withChains
} from "./settling.ts"

const end = lastOnTime + confirmations

test("what is beyond the amount, paid again and late is an exception each from the confirmation on, and changes no payment", function* () {
  const payment = yield* start
  yield* tick({ head: 120, transfers: [transfer(120, 1100n)] })
  yield* shows(payment, "detecting")
  yield* tick({ head: 122 })
  yield* tick({ head: 140, transfers: [transfer(135, 30n)] })
  yield* tick({ head: lastOnTime + 9, transfers: [transfer(lastOnTime + 5, 40n)] })
  const further = ["open overpaid 30 0xt135", `open late 40 0xt${lastOnTime + 5}`]
  yield* shows(payment, "confirmed", "open overpaid 100 0xt120", ...further)
  expect((yield* look(payment)).payment).toMatchObject({ amountReceived: 1100n, txHash: "0xt120" })
  expect([yield* kindsOf(payment), alarms]).toEqual([["detecting", "confirmed"], []])
})

test("late money for an expired payment is an exception, money found late also an alarm, and neither changes its status", function* () {
  const payment = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 1000n))
  expect(alarms).toEqual([])
  yield* scanTo(end + 19, transfer(200, 1000n))
  yield* shows(payment, "expired", `open late 1000 0xt${end + 5}`, "open found_late 1000 0xt200")
  expect(alarms).toEqual([expect.stringContaining("found after its payment had ended")])
  expect(alarmedAbout).toEqual([
    { service: "settlement", payment: payment.id, chain: "base", amount: "1000", currency: "ETH", txHash: "0xt200" }
  ])
  expect((yield* look(payment)).payment?.amountReceived).toBeUndefined()
  expect(yield* kindsOf(payment)).toEqual(["expired"])
})

test("money at the address of a lost payment is an exception without a payment, and gone after a reorg", function* () {
  yield* start
  yield* losePayment()
  yield* tick({ head: 130, transfers: [{ ...transfer(120, 5n), address: lost.toLowerCase() }] })
  const unknown = Effect.flatMap(Reader, (reader) => Exceptions.unknownAt(reader, network, lost.toLowerCase()))
  expect(yield* unknown).toMatchObject([
    { kind: "unknown_payment", status: "open", amount: 5n, txHash: "0xt120", payment: undefined }
  ])
  expect(alarms).toEqual([expect.stringContaining("lost copy")])
  // A commit that touches nothing of it does not read it.
  yield* execute("UPDATE exceptions SET amount = '4'")
  yield* tick({ head: 131 })
  expect(alarms).toHaveLength(1)
  expect(yield* unknown).toMatchObject([{ status: "open", amount: 4n }])
  yield* tick({ head: 132, ancestor: 119 })
  expect(yield* unknown).toMatchObject([{ status: "gone" }])
})

test("receipts of lost payments are found by an index", function* () {
  const reader = yield* Reader
  const steps: Array<string> = []
  const db = explained(reader, reader, steps)
  yield* Receipts.ofLost(db, network, "0x1")
  yield* Exceptions.unknownAt(db, network, "0x1")
  expect(steps.filter((step) => step.startsWith("SEARCH"))).toEqual([
    "SEARCH receipts USING INDEX receipts_lost (address=? AND chain=? AND mode=? AND canonical=?)",
    "SEARCH exceptions USING INDEX sqlite_autoindex_exceptions_2 (address=?)",
    "SEARCH wallets USING PRIMARY KEY (fingerprint=?) LEFT-JOIN",
    "SEARCH p USING INDEX refund_parts_exception (exception_id=?)",
    "SEARCH r USING INDEX sqlite_autoindex_refunds_1 (id=?)",
    "SEARCH payments USING INDEX sqlite_autoindex_payments_1 (id=?)"
  ])
  expect(steps.filter((step) => step.startsWith("SCAN"))).toEqual([])
})

const live: Network = { chain: "base", mode: "live" }
const one = lost
const two = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
const ofLive = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"

const stored = rows("SELECT address, chain, mode, amount, outcome FROM exceptions ORDER BY length(amount), amount")

const testOfNetworks = scopedTest(withChains({}, elsewhere, live))
testOfNetworks("money of lost payments is kept apart by address, chain and mode", function* () {
  yield* start
  yield* losePayment(one, "test", 7)
  yield* losePayment(two, "test", 8)
  yield* losePayment(ofLive, "live", 9)
  yield* startScans(100, elsewhere, live)
  const to = (address: string) => ({ address: address.toLowerCase() })
  yield* tick({ head: 130, on: live, transfers: [transfer(120, 8n, to(ofLive))] })
  yield* tick({ head: 130, on: elsewhere, transfers: [{ ...usdcElsewhere(120, 7n), ...to(one) }] })
  yield* tick({ head: 130, transfers: [transfer(120, 5n, to(one)), transfer(125, 6n, to(two))] })
  yield* tick({ head: 131, ancestor: 124 })
  expect(yield* stored).toEqual([
    { ...to(one), chain: "base", mode: "test", amount: "5", outcome: null },
    { ...to(two), chain: "base", mode: "test", amount: "6", outcome: "gone" },
    { ...to(one), chain: "optimism", mode: "test", amount: "7", outcome: null },
    { ...to(ofLive), chain: "base", mode: "live", amount: "8", outcome: null }
  ])
  const about = { service: "settlement", chain: "base", mode: "test", currency: "ETH" }
  expect(alarmedAbout).toEqual([
    { ...about, mode: "live", ...to(ofLive), amount: "8", txHash: "0xt120" },
    { ...about, chain: "optimism", ...to(one), amount: "7", currency: "USDC", txHash: "0xt120" },
    { ...about, ...to(one), amount: "5", txHash: "0xt120" },
    { ...about, ...to(two), amount: "6", txHash: "0xt125" }
  ])
})

const sponsor = `0x${"5".repeat(40)}`
const storeSponsor = execute("UPDATE wallets SET sponsor = ?", [sponsor])

test("coin that the wallet's own sponsor brings to the address of a lost payment is no exception, and a customer's is", function* () {
  yield* start
  yield* losePayment()
  yield* storeSponsor
  const to = { address: lost.toLowerCase() }
  const token = { ...to, currency: "USDC", position: "log:0", sender: sponsor } as const
  yield* scanTo(120, transfer(110, 5n, { ...to, sender: sponsor }), transfer(111, 6n, to), transfer(112, 7n, token))
  const unknown = yield* Exceptions.unknownAt(yield* Reader, network, to.address)
  expect(unknown.map(({ amount }) => amount)).toEqual([6n, 7n])
  expect(alarms).toHaveLength(2)
})

test("coin that the wallet's own sponsor brings to the address of an open payment pays nothing, and is no exception", function* () {
  const payment = yield* start
  yield* storeSponsor
  yield* scanTo(110, transfer(110, 1500n, { sender: sponsor }))
  expect(yield* afterScan(payment, 130)).toBe("pending")
  expect(yield* kindsOf(payment)).toEqual([])
  // The customer's own still does.
  yield* scanTo(131, transfer(131, 1000n, { sender: `0x${"6".repeat(40)}` }))
  expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
  expect(yield* rows("SELECT id FROM exceptions")).toEqual([])
})

// Money that one provider has reported and no other has corroborated.

for (const [what, money, exception] of [
  ["further money", transfer(135, 500n), "overpaid 500 0xt135"],
  ["late money", transfer(lastOnTime + 5, 40n), `late 40 0xt${lastOnTime + 5}`],
  ["a wrong token", usdcElsewhere(135, 5n), "wrong_token 5 0xt135"]
] as const) {
  test(`${what} opens an exception when a second provider confirms it, not before`, function* () {
    const payment = yield* confirmedOnce
    const head = money.blockNumber + confirmations
    yield* tick({ head, transfers: [money], corroborated: false })
    expect(yield* exceptions(payment)).toEqual([])
    yield* corroborate(head, [money])
    expect(yield* exceptions(payment)).toEqual([`open ${exception}`])
  })
}

test("an invented transfer before the one that completed the amount makes that one no overpayment, and is not received", function* () {
  const payment = yield* start
  yield* tick({ head: 120, transfers: [transfer(119, 500n)], corroborated: false })
  yield* tick({ head: 130, transfers: [transfer(120, 1000n)] })
  yield* shows(payment, "confirmed")
  expect((yield* look(payment)).payment?.amountReceived).toBe(1000n)
})

test("money found late alarms when a second provider confirms it, and once", function* () {
  const payment = yield* start
  expect(yield* afterScan(payment, end)).toBe("expired")
  yield* TestClock.adjust("1 second")
  yield* tick({ head: end + 1, transfers: [transfer(200, 1000n)], corroborated: false })
  expect([yield* exceptions(payment), alarms]).toEqual([[], []])
  yield* corroborate(end + 1, [transfer(200, 1000n)])
  yield* corroborate(end + 1, [transfer(200, 1000n)])
  expect(yield* exceptions(payment)).toEqual(["open found_late 1000 0xt200"])
  expect(alarms).toEqual([expect.stringContaining("found after its payment had ended")])
})

test("money of a lost payment becomes an exception, with its alarm, when a second provider confirms it", function* () {
  yield* start
  yield* losePayment()
  const money = transfer(120, 5n, { address: lost.toLowerCase() })
  yield* tick({ head: 130, transfers: [money], corroborated: false })
  expect(yield* rows("SELECT kind FROM exceptions")).toEqual([])
  yield* corroborate(130, [money])
  expect(yield* rows("SELECT kind FROM exceptions")).toEqual([{ kind: "unknown_payment" }])
  expect(alarms).toEqual([expect.stringContaining("lost copy")])
})

test("a reorg that mines its money again neither closes an exception, nor lets it grow on one provider's word", function* () {
  const payment = yield* confirmedOnce
  yield* tick({ head: 136, transfers: [transfer(135, 500n)] })
  const open = ["open overpaid 500 0xt135"]
  const again = (number: number, amount: bigint) => transfer(number, amount, { txHash: "0xt135" })
  yield* tick({ head: 138, ancestor: 134, transfers: [again(136, 500n)], corroborated: false })
  expect(yield* exceptions(payment)).toEqual(open)
  yield* tick({ head: 140, ancestor: 135, transfers: [again(137, 900n)], corroborated: false })
  expect(yield* exceptions(payment)).toEqual(open)
  yield* corroborate(140, [again(137, 900n)])
  expect(yield* exceptions(payment)).toEqual(["open overpaid 900 0xt135"])
  yield* tick({ head: 141, ancestor: 136 })
  expect(yield* exceptions(payment)).toEqual(["gone overpaid 900 0xt135"])
  // A removed exception is opened again only by what would open a new one.
  yield* tick({ head: 142, transfers: [again(142, 900n)], corroborated: false })
  expect(yield* exceptions(payment)).toEqual(["gone overpaid 900 0xt135"])
})

test("an invented transfer does not keep a payment confirmed whose money is orphaned", function* () {
  const payment = yield* confirmedOnce
  yield* tick({ head: 131, ancestor: 119, finalized: 118, transfers: [transfer(125, 1000n)], corroborated: false })
  // The transaction may be confirmed until its block is final, too.
  expect(yield* after(payment, { head: 136, finalized: 124 })).toBe("confirmed")
  yield* tick({ head: 137, finalized: 125 })
  yield* shows(payment, "failed: reorged", "open reorged 1000 0xt120")
  expect((yield* look(payment)).payment?.amountReceived).toBeUndefined()
})

test("a transaction that a reorg mined again keeps its payment confirmed once a second provider confirms it", function* () {
  const payment = yield* confirmedOnce
  const again = transfer(125, 1000n, { txHash: "0xt120" })
  yield* tick({ head: 131, ancestor: 119, finalized: 118, transfers: [again], corroborated: false })
  yield* tick({ head: 132, finalized: 124 })
  yield* corroborate(132, [again])
  yield* tick({ head: 150, finalized: 140 })
  yield* shows(payment, "confirmed")
})

test("unattributed coins that only one provider shows do not count at the end, even if two show them later", function* () {
  const payment = yield* start
  const unattributed = transfer(110, 300n, { position: "unattributed", txHash: undefined })
  yield* tick({ head: 120, transfers: [unattributed], corroborated: false })
  yield* tick({ head: 121, transfers: [transfer(119, 400n)] })
  expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 700n })
  yield* tick({ head: end })
  const ended = (yield* look(payment)).payment
  expect([ended?.amountReceived, ended?.received]).toEqual([400n, 400n])
  const open = ["open unattributed 300 undefined", "open underpaid 400 0xt119"]
  yield* shows(payment, "failed: insufficient_amount", ...open)
  const settlement = yield* Settlement
  yield* inTransaction(
    Effect.zipRight(
      UnshownReceipts.setShown(network, unattributed),
      settlement.settle({ network, head: block(end) }, [payment.id])
    )
  )
  yield* shows(payment, "failed: insufficient_amount", ...open)
  expect((yield* look(payment)).payment).toEqual(ended)
})
