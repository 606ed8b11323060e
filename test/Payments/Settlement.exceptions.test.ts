import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Receipts from "../../src/Payments/ReceiptsRepo.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"
import {
  alarmedAbout,
  alarms,
  confirmations,
  confirmedOnce,
  elsewhere,
  exceptions,
  lastOnTime,
  look,
  losePayment,
  lost,
  network,
  scanTo,
  start,
  startScans,
  startWith,
  test,
  tick,
  transfer,
  usdcElsewhere,
  withChains
} from "./settling.ts"

test("money beyond the amount, paid again and late is an exception each and leaves a confirmed payment unchanged", function* () {
  const payment = yield* start
  yield* tick({ head: 130, transfers: [transfer(120, 1100n)] })
  expect(yield* exceptions(payment)).toEqual(["open overpaid 100 0xt120"])
  yield* TestClock.adjust("1 second")
  yield* tick({ head: 140, transfers: [transfer(135, 30n)] })
  yield* TestClock.adjust("1 second")
  yield* tick({ head: lastOnTime + 9, transfers: [transfer(lastOnTime + 5, 40n)] })
  expect(yield* exceptions(payment)).toEqual([
    "open overpaid 100 0xt120",
    "open overpaid 30 0xt135",
    `open late 40 0xt${lastOnTime + 5}`
  ])
  const after = yield* look(payment)
  expect(after.payment).toMatchObject({ status: "confirmed", amountReceived: 1100n, txHash: "0xt120" })
  expect(after.events).toHaveLength(2)
  expect(alarms).toEqual([])
})

test("an overpayment becomes an exception when the payment is confirmed, also by a scan without new receipts", function* () {
  const payment = yield* start
  yield* tick({ head: 120, transfers: [transfer(120, 1100n)] })
  expect(yield* exceptions(payment)).toEqual([])
  yield* tick({ head: 122 })
  expect(yield* exceptions(payment)).toEqual(["open overpaid 100 0xt120"])
})

test("late money for an expired payment is an exception, money found late also an alarm, and neither changes its status", function* () {
  const payment = yield* start
  const end = lastOnTime + confirmations
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 1000n))
  expect(alarms).toEqual([])
  yield* scanTo(end + 19, transfer(200, 1000n))
  expect(yield* exceptions(payment)).toEqual([`open late 1000 0xt${end + 5}`, "open found_late 1000 0xt200"])
  expect(alarms).toEqual([expect.stringContaining("found after its payment had ended")])
  expect(alarmedAbout).toEqual([
    { service: "settlement", payment: payment.id, chain: "base", amount: "1000", currency: "ETH", txHash: "0xt200" }
  ])
  const after = yield* look(payment)
  expect(after.payment).toMatchObject({ status: "expired", amountReceived: undefined })
  expect(after.events.map((event) => event.kind)).toEqual(["payment.expired"])
})

test("an exception whose money is orphaned is gone and opens again with the money; a decided one stays decided", function* () {
  const payment = yield* confirmedOnce
  const late = transfer(lastOnTime + 5, 40n)
  yield* tick({ head: lastOnTime + 5, transfers: [late] })
  yield* tick({ head: lastOnTime + 6, ancestor: lastOnTime + 4 })
  expect(yield* exceptions(payment)).toEqual([`gone late 40 ${late.txHash}`])
  yield* tick({ head: lastOnTime + 7, transfers: [{ ...transfer(lastOnTime + 7, 40n), txHash: late.txHash }] })
  expect(yield* exceptions(payment)).toEqual([`open late 40 ${late.txHash}`])

  const stored = yield* Exceptions.ofPayment(yield* Reader, payment.id)
  const writer = yield* Writer
  yield* writer.write(Effect.forEach(stored, (one) => Exceptions.sendBack(one, one.amount, 1)))
  yield* tick({ head: lastOnTime + 8, ancestor: lastOnTime + 6 })
  yield* tick({ head: lastOnTime + 8, transfers: [{ ...transfer(lastOnTime + 8, 40n), txHash: late.txHash }] })
  expect(yield* exceptions(payment)).toEqual([`refunded late 40 ${late.txHash}`])
})

test("money at the address of a lost payment is an exception without a payment, and gone after a reorg", function* () {
  yield* start
  const writer = yield* Writer
  yield* losePayment()
  yield* tick({ head: 130, transfers: [{ ...transfer(120, 5n), address: lost.toLowerCase() }] })
  const unknown = Effect.flatMap(Reader, (reader) => Exceptions.unknownAt(reader, network, lost.toLowerCase()))
  expect(yield* unknown).toMatchObject([
    { kind: "unknown_payment", status: "open", amount: 5n, txHash: "0xt120", payment: undefined }
  ])
  expect(alarms).toEqual([expect.stringContaining("lost copy")])
  // A commit that touches nothing of it does not read it.
  yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE exceptions SET amount = '4'")))
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
  yield* Receipts.lostAndUnsettled(db, network)
  yield* Receipts.ofLost(db, network, "0x1")
  yield* Exceptions.unknownAt(db, network, "0x1")
  expect(steps.filter((step) => step.startsWith("SEARCH"))).toEqual([
    "SEARCH receipts USING INDEX receipts_unsettled (payment_id=? AND chain=? AND mode=?)",
    "SEARCH receipts USING INDEX receipts_lost (address=? AND dust=? AND chain=? AND mode=?)",
    "SEARCH dust_sums USING PRIMARY KEY (address=? AND mode=?)",
    "SEARCH exceptions USING INDEX sqlite_autoindex_exceptions_2 (address=?)",
    "SEARCH wallets USING PRIMARY KEY (fingerprint=?) LEFT-JOIN"
  ])
  expect(steps.filter((step) => step.startsWith("SCAN"))).toEqual([])
})

const live: Network = { chain: "base", mode: "live" }
const one = lost
const two = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
const ofLive = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"

const stored = Effect.flatMap(Reader, (reader) =>
  reader.all("SELECT address, chain, mode, amount, outcome FROM exceptions ORDER BY length(amount), amount")
)

scopedTest(withChains({}, elsewhere, live))(
  "money of lost payments is kept apart by address, chain and mode",
  function* () {
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
  }
)

const paidInUsdc = { currency: "USDC" } as const
const usdc = (number: number, amount: bigint, over: Partial<DatedTransfer> = {}) =>
  transfer(number, amount, { ...paidInUsdc, position: `log:${number}`, ...over })
const ended = lastOnTime + confirmations

test("coin stays an exception when a token follows it", function* () {
  const payment = yield* startWith(paidInUsdc)
  yield* scanTo(ended + 10)
  yield* scanTo(ended + 30, transfer(ended + 20, 10n))
  yield* scanTo(ended + 50, usdc(ended + 40, 1n))
  expect(yield* exceptions(payment)).toEqual([`open wrong_token 10 0xt${ended + 20}`, `open late 1 0xt${ended + 40}`])
})

test("coin that was seen while the payment was open stays an exception, though this machine's clock is behind", function* () {
  const payment = yield* startWith(paidInUsdc)
  const at = (number: number) => TestClock.setTime((number - 60) * 1000)
  yield* at(165)
  yield* tick({ head: 165, transfers: [usdc(163, 400n), transfer(164, 777n)] })
  yield* at(170)
  yield* tick({ head: 170, transfers: [usdc(168, 600n)] })
  expect(yield* exceptions(payment)).toEqual(["open wrong_token 777 0xt164"])
})

test("coin after a hundred small ones is an exception too", function* () {
  const payment = yield* startWith(paidInUsdc)
  yield* scanTo(ended + 10)
  for (let n = 1; n <= 100; n++) yield* scanTo(ended + 11 + n, transfer(ended + 10 + n, 1n))
  yield* scanTo(ended + 300, transfer(ended + 290, 10n ** 19n))
  expect(yield* exceptions(payment)).toContainEqual(expect.stringContaining(`wrong_token ${10n ** 19n}`))
})

test("coin that the wallet's own sponsor brings to the address of a lost payment is no exception, and a customer's is", function* () {
  yield* start
  yield* losePayment()
  const sponsor = `0x${"5".repeat(40)}`
  yield* execute("UPDATE wallets SET sponsor = ?", [sponsor])
  const to = { address: lost.toLowerCase() }
  const token = { ...to, currency: "USDC", position: "log:0", sender: sponsor } as const
  yield* scanTo(120, transfer(110, 5n, { ...to, sender: sponsor }), transfer(111, 6n, to), transfer(112, 7n, token))
  const unknown = yield* Exceptions.unknownAt(yield* Reader, network, to.address)
  expect(unknown.map(({ amount }) => amount)).toEqual([6n, 7n])
  expect(alarms).toHaveLength(2)
})

test("coin that the wallet's own sponsor brings to the address of an open payment pays nothing, and is no exception", function* () {
  const payment = yield* start
  const sponsor = `0x${"5".repeat(40)}`
  yield* execute("UPDATE wallets SET sponsor = ?", [sponsor])
  yield* scanTo(110, transfer(110, 1500n, { sender: sponsor }))
  yield* scanTo(130)
  const before = yield* look(payment)
  expect(before.payment).toMatchObject({ status: "pending", amountReceived: undefined })
  expect(before.events).toEqual([])
  // The customer's own still does.
  yield* scanTo(131, transfer(131, 1000n, { sender: `0x${"6".repeat(40)}` }))
  expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
  const reader = yield* Reader
  expect(yield* reader.all("SELECT id FROM exceptions")).toEqual([])
})
