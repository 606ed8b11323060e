import { expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import * as Balances from "../../src/Chains/balances/BalancesRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import {
  after,
  alarmedAbout,
  alarms,
  block,
  confirmations,
  confirmedOnce,
  createdAt,
  exceptions,
  look,
  network,
  test,
  tick,
  transfer,
  untilExpired
} from "./settling.ts"

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
  expect(ended.events.map((event) => event.kind)).toEqual(["payment.detecting", "payment.confirmed", "payment.failed"])
  expect(JSON.parse(ended.events.at(-1)?.body ?? "").data).toMatchObject({
    failureReason: "reorged",
    txHash: "0xt120"
  })
  expect(alarms).toEqual([expect.stringContaining("undone by a reorg")])
  // It comes back: money that was on time and was missing when the payment ended.
  yield* TestClock.setTime(140_000)
  expect(yield* after(payment, { head: 140, ancestor: 119, transfers: [transfer(120, 1000n)] })).toBe("failed: reorged")
  expect(yield* exceptions(payment)).toEqual(["gone reorged 1000 0xt120", "open found_late 1000 0xt120"])
  expect(alarms).toHaveLength(2)
})

test("without a finalized tag an undo takes four times the confirmations; money that is mined again undoes nothing", function* () {
  const payment = yield* confirmedOnce
  yield* tick({ head: 121, ancestor: 119 })
  expect(yield* after(payment, { head: 120 + 4 * confirmations - 1 })).toBe("confirmed")
  yield* tick({ head: 140, ancestor: 119, transfers: [{ ...transfer(125, 1000n), txHash: "0xt120" }] })
  yield* tick({ head: 200 })
  const { events } = yield* look(payment)
  expect(events.map((event) => event.kind)).toEqual(["payment.detecting", "payment.confirmed"])
})

test("a payment that was undone while the daemon was down is found after a restart", function* () {
  const payment = yield* confirmedOnce
  const writer = yield* Writer
  yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE receipts SET canonical = 0")))
  const { settle } = yield* Effect.provide(Settlement, Layer.fresh(settlementLayer)).pipe(
    Effect.provide(testSettingsLayer(""))
  )
  yield* writer.write(
    Effect.gen(function* () {
      yield* LedgerRepo.moveScan(network, block(200))
      yield* Balances.moveChecked(network, block(200))
      yield* settle({ network, head: block(200) }, [])
    })
  )
  expect((yield* look(payment)).payment).toMatchObject({ status: "failed", failureReason: "reorged" })
})

test("a commit that fails raises no alarm, and its reorgs are checked again", function* () {
  const payment = yield* confirmedOnce
  yield* tick({ head: 132, ancestor: 119, finalized: 118 })
  const writer = yield* Writer
  const settlement = yield* Settlement
  const isFinal = Effect.gen(function* () {
    yield* LedgerRepo.setTags(network, { safe: undefined, finalized: 120 })
    yield* settlement.settle({ network, head: block(132) }, [])
  })
  yield* Effect.flip(writer.write(Effect.zipRight(isFinal, Effect.fail("refused"))))
  yield* untilExpired
  expect((yield* look(payment)).payment?.status).toBe("confirmed")
  expect(alarms).toEqual([])
  yield* writer.write(isFinal)
  yield* untilExpired
  expect((yield* look(payment)).payment).toMatchObject({ status: "failed", failureReason: "reorged" })
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
