import { expect, it } from "@effect/vitest"
import { Duration, Effect, Layer, TestClock } from "effect"
import * as Balances from "../../src/Chains/balances/BalancesRepo.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { FinalityTag } from "../../src/Domain/Receipt.ts"
import { iso } from "../../src/lib/moment.ts"
import * as Story from "../../src/Payments/PaymentHistoryRepo.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { type Db, Reader, StoreUnavailable, Tx, Writer } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testSettings, testSettingsLayer } from "../lib/settings.ts"
import {
  after,
  afterScan,
  block,
  confirmations,
  crowd,
  exceptions,
  lastOnTime,
  look,
  network,
  scanTo,
  start,
  startWith,
  test,
  tick,
  transfer,
  untilExpired,
  withChains,
  withSettings
} from "./settling.ts"

test("a payment without money expires with the first scan in which a block past the deadline has the confirmations", function* () {
  const payment = yield* start
  const first = lastOnTime + 1
  expect(yield* afterScan(payment, first + confirmations - 2)).toBe("pending")
  yield* scanTo(first + confirmations - 1)
  const ended = yield* look(payment)
  expect(ended.payment?.status).toBe("expired")
  expect(ended.events.map((event) => event.kind)).toEqual(["payment.expired"])
  expect(ended.transitions).toEqual([{ to_status: "expired", at: (first + confirmations - 1) * 1000 }])
})

const tolerance = { ...testSettings("").payments, clockTolerance: Duration.minutes(15) }
scopedTest(withSettings({ payments: tolerance }))(
  "no payment ends while the clock is behind the chain's",
  function* () {
    const payment = yield* start
    const end = lastOnTime + confirmations
    expect(yield* after(payment, { head: end })).toBe("pending")
    expect(yield* afterScan(payment, end)).toBe("expired")
  }
)

test("a payment with too little money fails with that scan, not before", function* () {
  const payment = yield* start
  yield* scanTo(150, transfer(120, 999n))
  expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 999n })
  expect(yield* afterScan(payment, lastOnTime + confirmations - 1)).toBe("detecting")
  yield* scanTo(lastOnTime + confirmations)
  const ended = yield* look(payment)
  expect(ended.payment).toMatchObject({
    status: "failed",
    failureReason: "insufficient_amount",
    amountReceived: 999n
  })
  expect(ended.events.map((event) => event.kind)).toEqual(["payment.detecting", "payment.failed"])
})

test("no scan, no decision, however long the clock runs", function* () {
  const payment = yield* start
  yield* scanTo(150)
  yield* TestClock.adjust("10 days")
  const writer = yield* Writer
  yield* Effect.repeatN(writer.write(Effect.void), 5)
  expect((yield* look(payment)).payment?.status).toBe("pending")
  // The chain is read again, and the money that came in time is found in time.
  yield* scanTo(lastOnTime + 500, transfer(lastOnTime, 1000n))
  expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: `0xt${lastOnTime}` })
})

test("one scan that finds deep money detects and confirms in one transaction, each event with its own state", function* () {
  const payment = yield* start
  yield* scanTo(130, transfer(120, 1000n))
  const { events } = yield* look(payment)
  const bodies = events.map((event) => JSON.parse(event.body))
  expect(bodies.map((body) => [body.event, body.data.status])).toEqual([
    ["payment.detecting", "detecting"],
    ["payment.confirmed", "confirmed"]
  ])
  expect(bodies[0].data.confirmedAt).toBeUndefined()
  expect(bodies[1].data).toMatchObject({ txHash: "0xt120", confirmedAt: iso(130_000) })
  expect(yield* Story.transitions(yield* Reader, payment.id)).toEqual([
    { from: "pending", to: "detecting", at: 130_000 },
    { from: "detecting", to: "confirmed", at: 130_000 }
  ])
})

test("detected money confirms the payment once the head has advanced far enough", function* () {
  const payment = yield* start
  expect(yield* afterScan(payment, 120, transfer(120, 1000n))).toBe("detecting")
  expect(yield* afterScan(payment, 121)).toBe("detecting")
  yield* scanTo(122)
  expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", confirmedAt: 122_000 })
})

test("a reorg makes a detected payment pending without an event, and the next detection is a new event", function* () {
  const payment = yield* start
  yield* scanTo(120, transfer(120, 1000n))
  yield* tick({ head: 120, ancestor: 119 })
  expect((yield* look(payment)).payment).toMatchObject({
    status: "pending",
    txHash: undefined,
    amountReceived: undefined
  })
  yield* scanTo(121, transfer(121, 1000n))
  const { events } = yield* look(payment)
  expect(events.map((event) => event.kind)).toEqual(["payment.detecting", "payment.detecting"])
  expect(new Set(events.map((event) => JSON.parse(event.body).id)).size).toBe(2)
})

test("a commit of the watcher ends no payment that got too little: only the expiry worker does", function* () {
  yield* start
  const writer = yield* Writer
  const settlement = yield* Settlement
  const transfers = (yield* crowd(250)).map((one) => transfer(120, 1n, { address: one.address.toLowerCase() }))
  yield* scanTo(130, ...transfers)
  const end = block(lastOnTime + confirmations)
  const failed = (db: Db) =>
    Effect.map(db.all("SELECT 1 FROM payments WHERE status = 'failed'"), ({ length }) => length)
  const ended = yield* writer.write(
    Effect.gen(function* () {
      yield* LedgerRepo.keepBlocks(network, [block(lastOnTime + 1), end])
      yield* LedgerRepo.moveScan(network, end)
      yield* Balances.moveChecked(network, end)
      yield* settlement.settle({ network, head: end }, [])
      return yield* failed(yield* Tx)
    })
  )
  expect(ended).toBe(0)
  yield* untilExpired
  expect(yield* failed(yield* Reader)).toBe(250)
})

test("nothing ends on a chain without a block that has the confirmations, or without a balance reconciliation", function* () {
  const payment = yield* start
  const writer = yield* Writer
  const settlement = yield* Settlement
  const head = block(lastOnTime + 1000)
  const settled = <E>(change: Effect.Effect<unknown, E, Tx>) =>
    writer.write(Effect.zipRight(change, settlement.settle({ network, head }, [payment.id])))
  yield* settled(LedgerRepo.moveScan(network, head))
  yield* settled(Balances.moveChecked(network, head))
  expect((yield* look(payment)).payment?.status).toBe("pending")
  yield* settled(LedgerRepo.keepBlocks(network, [block(lastOnTime + 900)]))
  yield* untilExpired
  expect((yield* look(payment)).payment?.status).toBe("expired")
})

test("nothing ends before a balance reconciliation past the deadline", function* () {
  const payment = yield* start
  const head = lastOnTime + 50
  yield* TestClock.setTime(head * 1000)
  expect(yield* after(payment, { head, checked: lastOnTime })).toBe("pending")
  expect(yield* after(payment, { head, checked: lastOnTime + 1 })).toBe("expired")
})

test("enough only with unattributed money: stays detecting, with an exception, until attributed", function* () {
  const payment = yield* start
  const unattributed: DatedTransfer = { ...transfer(120, 1000n), position: "unattributed", txHash: undefined }
  yield* scanTo(lastOnTime + 500, unattributed)
  expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
  expect(yield* exceptions(payment)).toEqual(["open unattributed 1000 undefined"])
  // A node reports it: the row is replaced in one transaction.
  const writer = yield* Writer
  yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts")))
  yield* tick({ head: lastOnTime + 501, transfers: [{ ...transfer(120, 1000n), position: "call:0xt120" }] })
  expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: "0xt120" })
  expect(yield* exceptions(payment)).toEqual(["gone unattributed 1000 undefined"])
})

const policy = (require: FinalityTag) => withChains({ policies: [{ aboveUsd: "100", require }] })

it.scoped.each([
  ["worth more than the policy's value", "detecting", { usdValue: "100.5", require: "finalized", finalized: 119 }],
  ["of unknown worth", "detecting", { usdValue: undefined, require: "finalized", finalized: 119 }],
  ["worth less", "confirmed", { usdValue: "99", require: "finalized", finalized: 119 }],
  ["that needs a safe block only", "detecting", { usdValue: "100.5", require: "safe", safe: 119, finalized: 110 }]
] as const)("a policy: below its tag a payment %s is %s", ([, status, { require, usdValue, ...tags }]) =>
  Effect.gen(function* () {
    const payment = yield* startWith({ usdValue })
    yield* tick({ head: 150, ...tags, transfers: [transfer(120, 1000n)] })
    expect((yield* look(payment)).payment?.status).toBe(status)
    expect(yield* after(payment, { head: 151, ...tags, [require]: 120 })).toBe("confirmed")
  }).pipe(Effect.provide(policy(require)))
)

test("payments that are over while the store is full end a second after it has room again", function* () {
  const payment = yield* start
  const writer = yield* Writer
  let isFull = true
  const full = Layer.succeed(Writer, {
    write: <A, E>(command: Effect.Effect<A, E, Tx>) =>
      Effect.suspend(
        (): Effect.Effect<A, E | StoreUnavailable> =>
          isFull ? new StoreUnavailable({ code: "SQLITE_FULL", message: "full" }) : writer.write(command)
      )
  })
  const { expire, settle } = yield* Effect.provide(Settlement, Layer.fresh(settlementLayer)).pipe(
    Effect.provide(Layer.merge(full, testSettingsLayer("")))
  )
  yield* Effect.forkScoped(expire)
  const end = block(lastOnTime + confirmations)
  yield* writer.write(
    Effect.gen(function* () {
      yield* LedgerRepo.keepBlocks(network, [block(lastOnTime + 1), end])
      yield* LedgerRepo.moveScan(network, end)
      yield* Balances.moveChecked(network, end)
      yield* settle({ network, head: end }, [])
    })
  )
  yield* untilExpired
  expect((yield* look(payment)).payment?.status).toBe("pending")
  isFull = false
  yield* TestClock.adjust("1 second")
  yield* untilExpired
  expect((yield* look(payment)).payment?.status).toBe("expired")
})
