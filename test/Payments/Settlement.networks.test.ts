import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { type Network, networkKey } from "../../src/Domain/Chain.ts"
import { Reader } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import {
  after,
  afterScan,
  confirmations,
  confirmedOnce,
  crowd,
  elsewhere,
  exceptions,
  lastOnTime,
  look,
  lost,
  payAgain,
  scanTo,
  start,
  startScans,
  testOfTwo,
  tick,
  transfer,
  twoChains,
  usdcElsewhere,
  withChains
} from "./settling.ts"

const live: Network = { chain: "base", mode: "live" }
const others = [elsewhere, live] as const
/** The head at which an unpaid payment ends. */
const end = lastOnTime + confirmations

/** A chain in both modes, which ask for different confirmations, and another chain. */
const test = scopedTest(withChains({}, elsewhere, { ...live, confirmations: 6 }))

test("each mode of a chain has its own confirmations, and its own head when a payment is made", function* () {
  yield* start
  yield* startScans(110, ...others)
  const payment = yield* payAgain(1, { mode: "live", address: lost })
  expect([payment.createdHead, (yield* payAgain(2, {})).createdHead]).toEqual([110, 100])
  const money = transfer(120, 1000n, { address: lost.toLowerCase() })
  expect(yield* after(payment, { head: 124, on: live, transfers: [money] })).toBe("detecting")
  expect(yield* after(payment, { head: 125, on: live })).toBe("confirmed")
})

for (const other of others) {
  test(`the head of ${networkKey(other)} confirms and ends nothing of another network`, function* () {
    const payment = yield* start
    yield* startScans(100, ...others)
    yield* tick({ head: 121, transfers: [transfer(120, 999n)] })
    yield* TestClock.setTime((lastOnTime + 500) * 1000)
    // The second time a block before it is known that has the confirmations.
    for (const head of [lastOnTime + 490, lastOnTime + 500]) yield* tick({ head, on: other })
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* tick({ head: 121, transfers: [transfer(121, 1n)] })
    expect(yield* after(payment, { head: lastOnTime + 501, on: other })).toBe("detecting")
    yield* tick({ head: 123 })
    expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: "0xt121" })
  })

  test(`what is final on ${networkKey(other)} says nothing of a reorg on another network`, function* () {
    const payment = yield* confirmedOnce
    yield* startScans(100, ...others)
    yield* tick({ head: 131, ancestor: 119, finalized: 118 })
    expect(yield* after(payment, { head: 400, on: other, finalized: 300 })).toBe("confirmed")
    expect(yield* after(payment, { head: 132, finalized: 120 })).toBe("failed: reorged")
  })

  test(`a reorg of ${networkKey(other)} removes nothing of another network`, function* () {
    const payment = yield* confirmedOnce
    yield* startScans(100, ...others)
    yield* tick({ head: 131, on: other })
    yield* tick({ head: 132, on: other, ancestor: 101, finalized: 131 })
    expect(yield* after(payment, { head: 160, finalized: 150 })).toBe("confirmed")
  })
}

test("a final reorg of stray money on another chain does not settle a reorg on the payment's own chain", function* () {
  const payment = yield* confirmedOnce
  yield* startScans(100, elsewhere)
  yield* tick({ head: 200, on: elsewhere, finalized: 140, transfers: [usdcElsewhere(150, 5n)] })
  yield* tick({ head: 131, ancestor: 119, finalized: 118 })
  yield* tick({ head: 201, on: elsewhere, finalized: 140, ancestor: 149 })
  expect(yield* after(payment, { head: 400, on: elsewhere, finalized: 300 })).toBe("confirmed")
  expect(yield* after(payment, { head: 132, finalized: 120 })).toBe("failed: reorged")
})

const elsewhereLive: Network = { chain: "optimism", mode: "live" }
scopedTest(withChains({}, elsewhereLive))("no payment waits for the scan of another mode", function* () {
  const payment = yield* start
  yield* startScans(100, elsewhereLive)
  yield* TestClock.setTime(end * 1000)
  yield* tick({ head: end, on: elsewhereLive, checked: 300 })
  expect(yield* after(payment, { head: end })).toBe("expired")
})

test("money on another chain, and its reorg, do not change what a payment got on its own chain", function* () {
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

testOfTwo(
  "money on another chain only is an exception at once, and fails the payment as wrong_chain at the deadline",
  function* () {
    const payment = yield* start
    yield* startScans(7, elsewhere)
    expect(yield* after(payment, { head: 300, on: elsewhere, transfers: [usdcElsewhere(300, 5n)] })).toBe("pending")
    expect(yield* exceptions(payment)).toEqual(["open wrong_chain 5 0xt300"])
    expect(yield* afterScan(payment, lastOnTime + confirmations)).toBe("failed: wrong_chain")
  }
)

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
  const last = (yield* crowd(250)).at(-1)
  if (last === undefined) return yield* Effect.dieMessage("not inserted")
  yield* startScans(7, elsewhere)
  yield* TestClock.setTime(end * 1000)
  const astray = { ...usdcElsewhere(300, 5n), address: last.address.toLowerCase() }
  yield* tick({ head: end, on: elsewhere, checked: lastOnTime, transfers: [astray] })
  yield* tick({ head: end })
  const reader = yield* Reader
  expect(yield* reader.all("SELECT status, count(*) AS n FROM payments GROUP BY status ORDER BY status")).toEqual([
    { status: "failed", n: 1 },
    { status: "pending", n: 250 }
  ])
  expect((yield* look(last)).payment).toMatchObject({ status: "failed", failureReason: "wrong_chain" })
})

it.scoped.each([
  ["that was never read", "expired", { now: end }],
  ["that is reconciled up to the deadline", "pending", { now: end, head: end, checked: lastOnTime }],
  ["that is reconciled past the deadline", "expired", { now: end, head: end, checked: lastOnTime + 1 }],
  ["whose head is two minutes old", "pending", { now: end, head: end - 120, checked: 300 }],
  ["whose head is older than that: it is unreachable", "expired", { now: end, head: end - 121, checked: 300 }],
  ["two minutes after the deadline", "pending", { now: lastOnTime + 120, head: end, checked: 300 }],
  ["more than two minutes after the deadline", "expired", { now: lastOnTime + 121, head: end, checked: 300 }]
] as const)("beside a chain %s, an unpaid payment whose time is over is %s", ([, status, { now, ...other }]) =>
  Effect.gen(function* () {
    const payment = yield* start
    if ("head" in other) {
      yield* startScans(7, elsewhere)
      yield* tick({ ...other, on: elsewhere })
    }
    yield* scanTo(now)
    expect((yield* look(payment)).payment?.status).toBe(status)
  }).pipe(Effect.provide(twoChains))
)
