import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as CorroborationRepo from "../../src/Chains/corroboration/CorroborationRepo.ts"
import * as UnshownReceipts from "../../src/Chains/corroboration/UnshownReceiptsRepo.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { Reader, Writer } from "../../src/Sql.ts"
import {
  after,
  alarms,
  block,
  confirmations,
  confirmedOnce,
  elsewhere,
  exceptions,
  lastOnTime,
  layer,
  look,
  losePayment,
  lost,
  network,
  start,
  startScans,
  stateOf,
  test,
  testOfTwo,
  tick,
  transfer,
  untilExpired,
  usdcElsewhere
} from "./settling.ts"

// Money that one provider has reported and no other has corroborated.

/** A second provider corroborates these, with the chain read up to `head`. */
const corroborate = (head: number, transfers: ReadonlyArray<DatedTransfer>, on = network) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const settlement = yield* Settlement
    yield* writer.write(
      Effect.gen(function* () {
        const touched = yield* Effect.forEach(transfers, (one) => CorroborationRepo.setCorroborated(on, one), {
          concurrency: 1
        })
        yield* settlement.settle({ network: on, head: block(head) }, touched)
      })
    )
    yield* untilExpired
  })

it.scoped.each<[string, DatedTransfer, string]>([
  ["further money", transfer(135, 500n), "overpaid 500 0xt135"],
  ["late money", transfer(lastOnTime + 5, 40n), `late 40 0xt${lastOnTime + 5}`],
  ["a wrong token", usdcElsewhere(135, 5n), "wrong_token 5 0xt135"]
])("%s opens an exception when a second provider confirms it, not before", ([, money, exception]) =>
  Effect.gen(function* () {
    const payment = yield* confirmedOnce
    const head = money.blockNumber + confirmations
    yield* tick({ head, transfers: [money], corroborated: false })
    expect(yield* exceptions(payment)).toEqual([])
    yield* corroborate(head, [money])
    expect(yield* exceptions(payment)).toEqual([`open ${exception}`])
  }).pipe(Effect.provide(layer))
)

testOfTwo("money on another chain opens an exception when a second provider there confirms it", function* () {
  const payment = yield* start
  yield* startScans(7, elsewhere)
  const money = usdcElsewhere(250, 7n)
  yield* tick({ head: 252, on: elsewhere, transfers: [money], corroborated: false })
  expect(yield* exceptions(payment)).toEqual([])
  yield* corroborate(252, [money], elsewhere)
  expect(yield* exceptions(payment)).toEqual(["open wrong_chain 7 0xt250"])
})

test("an invented transfer before the one that completed the amount makes that one no overpayment, and is not received", function* () {
  const payment = yield* start
  yield* tick({ head: 120, transfers: [transfer(119, 500n)], corroborated: false })
  yield* tick({ head: 130, transfers: [transfer(120, 1000n)] })
  expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", amountReceived: 1000n })
  expect(yield* exceptions(payment)).toEqual([])
})

test("uncorroborated money keeps its payment open at the deadline, opens no exception, and confirms it once corroborated", function* () {
  const payment = yield* start
  const head = lastOnTime + confirmations + 50
  yield* tick({ head: 130, transfers: [transfer(120, 1000n)], corroborated: false })
  yield* TestClock.setTime(head * 1000)
  expect(yield* after(payment, { head })).toBe("detecting")
  expect(yield* exceptions(payment)).toEqual([])
  yield* corroborate(head, [transfer(120, 1000n)])
  expect(yield* stateOf(payment)).toBe("confirmed")
})

test("money found late alarms when a second provider confirms it, and once", function* () {
  const payment = yield* start
  const end = lastOnTime + confirmations
  yield* TestClock.setTime(end * 1000)
  expect(yield* after(payment, { head: end })).toBe("expired")
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
  const reader = yield* Reader
  yield* losePayment()
  const money = transfer(120, 5n, { address: lost.toLowerCase() })
  yield* tick({ head: 130, transfers: [money], corroborated: false })
  expect(yield* reader.all("SELECT kind FROM exceptions")).toEqual([])
  yield* corroborate(130, [money])
  expect(yield* reader.all("SELECT kind FROM exceptions")).toEqual([{ kind: "unknown_payment" }])
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
  const ended = yield* look(payment)
  expect(ended.payment).toMatchObject({ status: "failed", failureReason: "reorged", amountReceived: undefined })
  expect(yield* exceptions(payment)).toEqual(["open reorged 1000 0xt120"])
})

test("a transaction that a reorg mined again keeps its payment confirmed once a second provider confirms it", function* () {
  const payment = yield* confirmedOnce
  const again = transfer(125, 1000n, { txHash: "0xt120" })
  yield* tick({ head: 131, ancestor: 119, finalized: 118, transfers: [again], corroborated: false })
  yield* tick({ head: 132, finalized: 124 })
  yield* corroborate(132, [again])
  expect(yield* after(payment, { head: 150, finalized: 140 })).toBe("confirmed")
  expect(yield* exceptions(payment)).toEqual([])
})

test("unattributed coins that only one provider shows do not count at the end, even if two show them later", function* () {
  const payment = yield* start
  const unattributed = transfer(110, 300n, { position: "unattributed", txHash: undefined })
  yield* tick({ head: 120, transfers: [unattributed], corroborated: false })
  yield* tick({ head: 121, transfers: [transfer(119, 400n)] })
  expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 700n })
  yield* tick({ head: lastOnTime + confirmations })
  yield* untilExpired
  const ended = (yield* look(payment)).payment
  expect(ended).toMatchObject({ status: "failed", failureReason: "insufficient_amount", amountReceived: 400n })
  const open = ["open unattributed 300 undefined", "open underpaid 400 0xt119"]
  expect((yield* exceptions(payment)).toSorted()).toEqual(open)
  const writer = yield* Writer
  const settlement = yield* Settlement
  yield* writer.write(
    Effect.zipRight(
      UnshownReceipts.setShown(network, unattributed),
      settlement.settle({ network, head: block(lastOnTime + confirmations) }, [payment.id])
    )
  )
  expect((yield* exceptions(payment)).toSorted()).toEqual(open)
  expect((yield* look(payment)).payment).toEqual(ended)
})
