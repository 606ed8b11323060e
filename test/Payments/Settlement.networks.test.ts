import { expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import * as Balances from "../../src/Chains/balances/BalancesRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { type Network, networkKey } from "../../src/Domain/Chain.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"
import {
  after,
  afterScan,
  alarmedAbout,
  alarms,
  block,
  confirmations,
  confirmedOnce,
  createdAt,
  crowd,
  elsewhere,
  exceptions,
  kindsOf,
  lastOnTime,
  look,
  lost,
  network,
  payAgain,
  shows,
  start,
  startScans,
  stateOf,
  test,
  testOfTwo,
  tick,
  transfer,
  untilExpired,
  usdcElsewhere,
  withChains
} from "./settling.ts"

const live: Network = { chain: "base", mode: "live" }
const others = [elsewhere, live] as const
/** The head at which an unpaid payment ends. */
const end = lastOnTime + confirmations

/** A chain in both modes, which ask for different confirmations, and another chain. */
const testOfModes = scopedTest(withChains({}, elsewhere, { ...live, confirmations: 6 }))

testOfModes("each mode of a chain has its own confirmations, and its own head when a payment is made", function* () {
  yield* start
  yield* startScans(110, ...others)
  const payment = yield* payAgain(1, { mode: "live", address: lost })
  expect([payment.createdHead, (yield* payAgain(2, {})).createdHead]).toEqual([110, 100])
  const money = transfer(120, 1000n, { address: lost.toLowerCase() })
  expect(yield* after(payment, { head: 124, on: live, transfers: [money] })).toBe("detecting")
  expect(yield* after(payment, { head: 125, on: live })).toBe("confirmed")
})

for (const other of others) {
  testOfModes(`the head of ${networkKey(other)} confirms and ends nothing of another network`, function* () {
    const payment = yield* start
    yield* startScans(100, ...others)
    yield* tick({ head: 121, transfers: [transfer(120, 999n)] })
    yield* TestClock.setTime((lastOnTime + 500) * 1000)
    // The second time a block before it is known that has the confirmations.
    for (const head of [lastOnTime + 490, lastOnTime + 500]) yield* tick({ head, on: other })
    expect(yield* stateOf(payment)).toBe("detecting")
    yield* tick({ head: 121, transfers: [transfer(121, 1n)] })
    expect(yield* after(payment, { head: lastOnTime + 501, on: other })).toBe("detecting")
    yield* tick({ head: 123 })
    expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: "0xt121" })
  })

  testOfModes(`what is final on ${networkKey(other)} says nothing of a reorg on another network`, function* () {
    const payment = yield* confirmedOnce
    yield* startScans(100, ...others)
    yield* tick({ head: 131, ancestor: 119, finalized: 118 })
    expect(yield* after(payment, { head: 400, on: other, finalized: 300 })).toBe("confirmed")
    expect(yield* after(payment, { head: 132, finalized: 120 })).toBe("failed: reorged")
  })

  testOfModes(`a reorg of ${networkKey(other)} removes nothing of another network`, function* () {
    const payment = yield* confirmedOnce
    yield* startScans(100, ...others)
    yield* tick({ head: 131, on: other })
    yield* tick({ head: 132, on: other, ancestor: 101, finalized: 131 })
    expect(yield* after(payment, { head: 160, finalized: 150 })).toBe("confirmed")
  })
}

testOfModes(
  "a final reorg of stray money on another chain does not settle a reorg on the payment's own chain",
  function* () {
    const payment = yield* confirmedOnce
    yield* startScans(100, elsewhere)
    yield* tick({ head: 200, on: elsewhere, finalized: 140, transfers: [usdcElsewhere(150, 5n)] })
    yield* tick({ head: 131, ancestor: 119, finalized: 118 })
    yield* tick({ head: 201, on: elsewhere, finalized: 140, ancestor: 149 })
    expect(yield* after(payment, { head: 400, on: elsewhere, finalized: 300 })).toBe("confirmed")
    expect(yield* after(payment, { head: 132, finalized: 120 })).toBe("failed: reorged")
  }
)

const elsewhereLive: Network = { chain: "optimism", mode: "live" }
scopedTest(withChains({}, elsewhereLive))("no payment waits for the scan of another mode", function* () {
  const payment = yield* start
  yield* startScans(100, elsewhereLive)
  yield* TestClock.setTime(end * 1000)
  yield* tick({ head: end, on: elsewhereLive, checked: 300 })
  expect(yield* after(payment, { head: end })).toBe("expired")
})

testOfModes("money on another chain, and its reorg, do not change what a payment got on its own chain", function* () {
  const payment = yield* start
  yield* startScans(100, elsewhere)
  yield* tick({ head: 121, transfers: [transfer(120, 1000n)] })
  yield* tick({ head: 200, on: elsewhere, finalized: 190, transfers: [usdcElsewhere(120, 5n)] })
  expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
  yield* tick({ head: 201, on: elsewhere, ancestor: 119 })
  expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
  expect(yield* exceptions(payment)).toEqual(["gone wrong_chain 5 0xt120"])
  expect(yield* after(payment, { head: 122 })).toBe("confirmed")
})

testOfTwo("a payment waits for the balances of another reachable chain, and ends by what they show", function* () {
  const payment = yield* start
  yield* startScans(7, elsewhere)
  yield* TestClock.setTime(end * 1000)
  yield* tick({ head: end, on: elsewhere, checked: lastOnTime })
  expect(yield* after(payment, { head: end })).toBe("pending")
  // Its balances are compared: this alone must wake the one that waits.
  expect(yield* after(payment, { head: end, on: elsewhere, checked: end, transfers: [usdcElsewhere(end, 5n)] })).toBe(
    "failed: wrong_chain"
  )
})

testOfTwo("payments that wait for another chain do not delay later ones, however many wait", function* () {
  yield* start
  // More than one commit ends.
  const last = (yield* crowd(250)).at(-1) ?? expect.unreachable()
  yield* startScans(7, elsewhere)
  yield* TestClock.setTime(end * 1000)
  const astray = { ...usdcElsewhere(300, 5n), address: last.address.toLowerCase() }
  yield* tick({ head: end, on: elsewhere, checked: lastOnTime, transfers: [astray] })
  yield* tick({ head: end })
  expect(yield* rows("SELECT status, count(*) AS n FROM payments GROUP BY status ORDER BY status")).toEqual([
    { status: "failed", n: 1 },
    { status: "pending", n: 250 }
  ])
  expect(yield* stateOf(last)).toBe("failed: wrong_chain")
})

for (const [other, status, { now, ...read }] of [
  ["that was never read", "expired", { now: end }],
  ["that is reconciled up to the deadline", "pending", { now: end, head: end, checked: lastOnTime }],
  ["that is reconciled past the deadline", "expired", { now: end, head: end, checked: lastOnTime + 1 }],
  ["whose head is two minutes old", "pending", { now: end, head: end - 120, checked: 300 }],
  ["whose head is older than that: it is unreachable", "expired", { now: end, head: end - 121, checked: 300 }],
  ["two minutes after the deadline", "pending", { now: lastOnTime + 120, head: end, checked: 300 }],
  ["more than two minutes after the deadline", "expired", { now: lastOnTime + 121, head: end, checked: 300 }]
] as const) {
  testOfTwo(`beside a chain ${other}, an unpaid payment whose time is over is ${status}`, function* () {
    const payment = yield* start
    if ("head" in read) {
      yield* startScans(7, elsewhere)
      yield* tick({ ...read, on: elsewhere })
    }
    expect(yield* afterScan(payment, now)).toBe(status)
  })
}

test("a confirmed payment whose money is permanently orphaned fails as reorged, with its event and an alarm", function* () {
  const payment = yield* confirmedOnce
  expect(yield* after(payment, { head: 131, ancestor: 119, finalized: 118 })).toBe("confirmed")
  expect(yield* after(payment, { head: 132, finalized: 119 })).toBe("confirmed")
  yield* tick({ head: 133, finalized: 120 })
  const ended = yield* look(payment)
  expect(ended.payment).toMatchObject({
    status: "failed",
    failureReason: "reorged",
    confirmedAt: createdAt,
    amountReceived: undefined
  })
  expect(yield* kindsOf(payment)).toEqual(["detecting", "confirmed", "failed"])
  expect(JSON.parse(ended.events.at(-1)?.body ?? "").data).toMatchObject({
    failureReason: "reorged",
    txHash: "0xt120"
  })
  expect(alarms).toEqual([expect.stringContaining("undone by a reorg")])
  // It comes back: money that was on time and was missing when the payment ended.
  yield* TestClock.setTime(140_000)
  yield* tick({ head: 140, ancestor: 119, transfers: [transfer(120, 1000n)] })
  yield* shows(payment, "failed: reorged", "gone reorged 1000 0xt120", "open found_late 1000 0xt120")
  expect(alarms).toHaveLength(2)
})

test("a payment that was undone while the daemon was down is found after a restart", function* () {
  const payment = yield* confirmedOnce
  yield* execute("UPDATE receipts SET canonical = 0")
  const { settle } = yield* Effect.provide(Settlement, Layer.fresh(settlementLayer)).pipe(
    Effect.provide(testSettingsLayer(""))
  )
  yield* inTransaction(
    Effect.gen(function* () {
      yield* LedgerRepo.moveScan(network, block(200))
      yield* Balances.moveChecked(network, block(200))
      yield* settle({ network, head: block(200) }, [])
    })
  )
  expect(yield* stateOf(payment)).toBe("failed: reorged")
})

test("a commit that fails raises no alarm, and its reorgs are checked again", function* () {
  const payment = yield* confirmedOnce
  yield* tick({ head: 132, ancestor: 119, finalized: 118 })
  const settlement = yield* Settlement
  const isFinal = Effect.gen(function* () {
    yield* LedgerRepo.setTags(network, { safe: undefined, finalized: 120 })
    yield* settlement.settle({ network, head: block(132) }, [])
  })
  yield* Effect.flip(inTransaction(Effect.zipRight(isFinal, Effect.fail("refused"))))
  yield* untilExpired
  expect([yield* stateOf(payment), alarms]).toEqual(["confirmed", []])
  yield* inTransaction(isFinal)
  yield* untilExpired
  expect(yield* stateOf(payment)).toBe("failed: reorged")
  expect(alarmedAbout).toEqual([
    { service: "settlement", payment: payment.id, chain: "base", mode: "test", txHash: "0xt120" }
  ])
})

test("after a reorg of finalized blocks a payment is undone only once the new blocks are final", function* () {
  const payment = yield* confirmedOnce
  yield* tick({ head: 131, finalized: 125 })
  expect(yield* after(payment, { head: 132, ancestor: 119 })).toBe("confirmed")
  expect(yield* after(payment, { head: 133, finalized: 120 })).toBe("failed: reorged")
})

test("native payments are checked again when the balance reconciliation comes after finality", function* () {
  const payment = yield* confirmedOnce
  yield* tick({ head: 131, ancestor: 119, finalized: 118, checked: 119 })
  expect(yield* after(payment, { head: 133, finalized: 120, checked: 119 })).toBe("confirmed")
  expect(yield* after(payment, { head: 134, finalized: 121 })).toBe("failed: reorged")
  expect(alarms).toEqual([expect.stringContaining("undone by a reorg")])
})
