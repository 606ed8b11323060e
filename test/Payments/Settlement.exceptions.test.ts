import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Receipts from "../../src/Payments/ReceiptsRepo.ts"
import { type Db, type Param, Reader, Tx, Writer } from "../../src/Sql.ts"
import {
  alarmedAbout,
  alarms,
  confirmations,
  confirmedOnce,
  exceptions,
  lastOnTime,
  layer,
  look,
  network,
  scanTo,
  start,
  startWith,
  tick,
  transfer,
  usdcElsewhere,
  wallet
} from "./settling.ts"

it.scoped(
  "money beyond the amount, paid again and late is an exception each and leaves a confirmed payment unchanged",
  () =>
    Effect.gen(function* () {
      const payment = yield* start
      yield* tick({ head: 130, transfers: [transfer(120, 1100n)] })
      expect(yield* exceptions(payment)).toEqual(["open overpaid 100 0xt120"])
      yield* TestClock.adjust("1 second")
      yield* tick({ head: 140, transfers: [transfer(135, 30n)] })
      yield* TestClock.adjust("1 second")
      yield* tick({ head: lastOnTime + 9, transfers: [transfer(lastOnTime + 5, 40n)] })
      expect(yield* exceptions(payment)).toEqual([
        "open overpaid 100 0xt120",
        "open paid_again 30 0xt135",
        `open late 40 0xt${lastOnTime + 5}`
      ])
      const after = yield* look(payment)
      expect(after.payment).toMatchObject({ status: "confirmed", amountReceived: 1100n, txHash: "0xt120" })
      expect(after.events).toHaveLength(2)
      expect(alarms).toEqual([])
    }).pipe(Effect.provide(layer))
)

it.scoped(
  "an overpayment becomes an exception when the payment is confirmed, also by a scan without new receipts",
  () =>
    Effect.gen(function* () {
      const payment = yield* start
      yield* tick({ head: 120, transfers: [transfer(120, 1100n)] })
      expect(yield* exceptions(payment)).toEqual([])
      yield* tick({ head: 122 })
      expect(yield* exceptions(payment)).toEqual(["open overpaid 100 0xt120"])
    }).pipe(Effect.provide(layer))
)

it.scoped(
  "late money for an expired payment is an exception, money found late also an alarm, and neither sends an event",
  () =>
    Effect.gen(function* () {
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
    }).pipe(Effect.provide(layer))
)

it.scoped("a wrong token leaves the payment open, and is an exception at once", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(130, usdcElsewhere(120, 5n))
    expect((yield* look(payment)).payment?.status).toBe("pending")
    expect(yield* exceptions(payment)).toEqual(["open wrong_token 5 0xt120"])
    yield* scanTo(140, transfer(131, 1000n))
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
  }).pipe(Effect.provide(layer))
)

it.scoped("native money at the address of an ended token payment is gas and no exception", () =>
  Effect.gen(function* () {
    const payment = yield* startWith({ currency: "USDC" })
    yield* scanTo(130, usdcElsewhere(120, 1000n))
    yield* scanTo(150, transfer(140, 5n))
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
    expect(yield* exceptions(payment)).toEqual([])
  }).pipe(Effect.provide(layer))
)

it.scoped(
  "an exception whose money is orphaned is gone and opens again with the money; a decided one stays decided",
  () =>
    Effect.gen(function* () {
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
    }).pipe(Effect.provide(layer))
)

it.scoped("money at the address of a lost payment is an exception without a payment, and gone after a reorg", () =>
  Effect.gen(function* () {
    yield* start
    const writer = yield* Writer
    const lost = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    yield* writer.write(
      Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO gap_addresses VALUES (?, 'test', ?, 7, 0)", [lost, wallet]))
    )
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
  }).pipe(Effect.provide(layer))
)

it.scoped("receipts of lost payments are found by an index", () =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const asked: Array<readonly [sql: string, params: ReadonlyArray<Param> | undefined]> = []
    const listening: Db = {
      ...reader,
      all: (sql, params) =>
        Effect.as(
          Effect.sync(() => asked.push([sql, params])),
          []
        )
    }
    yield* Receipts.lostAndUnsettled(listening, network)
    yield* Receipts.ofLost(listening, network, "0x1")
    yield* Exceptions.unknownAt(listening, network, "0x1")
    const plans = yield* Effect.forEach(
      asked,
      ([sql, params]) => reader.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params),
      { concurrency: 1 }
    )
    expect(plans.map(([step]) => step?.detail)).toEqual([
      "SEARCH receipts USING INDEX receipts_unsettled (payment_id=? AND chain=? AND mode=?)",
      "SEARCH receipts USING INDEX receipts_lost (address=? AND dust=? AND chain=? AND mode=?)",
      "SEARCH dust_sums USING PRIMARY KEY (address=? AND mode=?)",
      "SEARCH exceptions USING INDEX sqlite_autoindex_exceptions_2 (address=?)"
    ])
  }).pipe(Effect.provide(layer))
)
