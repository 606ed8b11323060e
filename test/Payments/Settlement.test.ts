import { expect, it } from "@effect/vitest"
import { Clock, Effect, TestClock } from "effect"
import * as Balances from "../../src/Chains/balances/BalancesRepo.ts"
import * as CorroborationRepo from "../../src/Chains/corroboration/CorroborationRepo.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { iso } from "../../src/Domain/Timestamp.ts"
import * as Story from "../../src/Payments/PaymentHistoryRepo.ts"
import { type Db, Reader, Tx, Writer } from "../../src/Sql.ts"
import {
  address,
  block,
  confirmations,
  crowd,
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
  untilExpired,
  withChains
} from "./settling.ts"

it.scoped(
  "a payment without money expires with the first scan in which a block past the deadline has the confirmations",
  () =>
    Effect.gen(function* () {
      const payment = yield* start
      const first = lastOnTime + 1
      yield* scanTo(first + confirmations - 2)
      expect((yield* look(payment)).payment?.status).toBe("pending")
      yield* scanTo(first + confirmations - 1)
      const after = yield* look(payment)
      expect(after.payment?.status).toBe("expired")
      expect(after.events.map((event) => event.kind)).toEqual(["payment.expired"])
      expect(after.transitions).toEqual([{ to_status: "expired", at: (first + confirmations - 1) * 1000 }])
    }).pipe(Effect.provide(layer))
)

it.scoped("a payment with too little money fails with that scan, not before", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(150, transfer(120, 999n))
    expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 999n })
    yield* scanTo(lastOnTime + confirmations - 1)
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* scanTo(lastOnTime + confirmations)
    const after = yield* look(payment)
    expect(after.payment).toMatchObject({
      status: "failed",
      failureReason: "insufficient_amount",
      amountReceived: 999n
    })
    expect(after.events.map((event) => event.kind)).toEqual(["payment.detecting", "payment.failed"])
  }).pipe(Effect.provide(layer))
)

it.scoped("no scan, no decision, however long the clock runs", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(150)
    yield* TestClock.adjust("10 days")
    const writer = yield* Writer
    yield* Effect.repeatN(writer.write(Effect.void), 5)
    expect((yield* look(payment)).payment?.status).toBe("pending")
    // The chain is read again, and the money that came in time is found in time.
    yield* scanTo(lastOnTime + 500, transfer(lastOnTime, 1000n))
    expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: `0xt${lastOnTime}` })
  }).pipe(Effect.provide(layer))
)

it.scoped("one scan that finds deep money detects and confirms in one transaction, each event with its own state", () =>
  Effect.gen(function* () {
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
  }).pipe(Effect.provide(layer))
)

it.scoped("detected money confirms the payment once the head has advanced far enough", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(120, transfer(120, 1000n))
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* scanTo(121)
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* scanTo(122)
    expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", confirmedAt: 122_000 })
  }).pipe(Effect.provide(layer))
)

it.scoped("a reorg makes a detected payment pending without an event, and the next detection is a new event", () =>
  Effect.gen(function* () {
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
  }).pipe(Effect.provide(layer))
)

it.scoped("many payments that are over at once end in several commits", () =>
  Effect.gen(function* () {
    yield* start
    const reader = yield* Reader
    yield* crowd(250)
    yield* scanTo(lastOnTime + confirmations)
    const [row] = yield* reader.all<{ n: number }>("SELECT count(*) AS n FROM payments WHERE status = 'expired'")
    expect(row?.n).toBe(251)
    expect(yield* Clock.currentTimeMillis).toBe((lastOnTime + confirmations) * 1000)
  }).pipe(Effect.provide(layer))
)

it.scoped("a commit of the watcher ends no payment that got too little: only the expiry worker does", () =>
  Effect.gen(function* () {
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
  }).pipe(Effect.provide(layer))
)

it.scoped("a transaction on both branches of a reorg causes no transition", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(120, transfer(120, 1000n))
    yield* tick({
      head: 122,
      ancestor: 119,
      transfers: [{ ...transfer(121, 1000n), txHash: "0xt120", position: "tx:4" }]
    })
    const { events, transitions } = yield* look(payment)
    expect(events).toHaveLength(1)
    expect(transitions).toHaveLength(1)
  }).pipe(Effect.provide(layer))
)

it.scoped(
  "nothing ends on a chain without a block that has the confirmations, or without a balance reconciliation",
  () =>
    Effect.gen(function* () {
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
    }).pipe(Effect.provide(layer))
)

it.scoped("nothing ends before a balance reconciliation past the deadline", () =>
  Effect.gen(function* () {
    const payment = yield* start
    const head = lastOnTime + 50
    yield* TestClock.setTime(head * 1000)
    yield* tick({ head, checked: lastOnTime })
    expect((yield* look(payment)).payment?.status).toBe("pending")
    yield* tick({ head, checked: lastOnTime + 1 })
    expect((yield* look(payment)).payment?.status).toBe("expired")
  }).pipe(Effect.provide(layer))
)

it.scoped(
  "enough only with money that nobody can attribute: stays detecting, with an exception, until attributed",
  () =>
    Effect.gen(function* () {
      const payment = yield* start
      const untold: DatedTransfer = { ...transfer(120, 1000n), position: "unattributed", txHash: undefined }
      yield* scanTo(lastOnTime + 500, untold)
      expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
      expect(yield* exceptions(payment)).toEqual(["open unattributed 1000 undefined"])
      // A node tells: the row is replaced in one transaction.
      const writer = yield* Writer
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts")))
      yield* tick({ head: lastOnTime + 501, transfers: [{ ...transfer(120, 1000n), position: "call:0xt120" }] })
      expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: "0xt120" })
      expect(yield* exceptions(payment)).toEqual(["gone unattributed 1000 undefined"])
    }).pipe(Effect.provide(layer))
)

it.scoped("uncorroborated money neither confirms nor fails a payment, and confirms it once it is corroborated", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* TestClock.setTime((lastOnTime + 500) * 1000)
    yield* tick({ head: lastOnTime + 500, transfers: [transfer(120, 1000n)], corroborated: false })
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    const writer = yield* Writer
    yield* writer.write(
      CorroborationRepo.setCorroborated(network, {
        address: address.toLowerCase(),
        blockHash: "0x120",
        position: "tx:0"
      })
    )
    yield* tick({ head: lastOnTime + 501 })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
  }).pipe(Effect.provide(layer))
)

const policy = withChains({ policies: [{ aboveUsd: "100", require: "finalized" }] })

it.scoped.each([
  ["above the policy", "100.5", "detecting"],
  ["of unknown worth", undefined, "detecting"],
  ["below it", "99", "confirmed"]
] as const)("a payment %s", ([, usdValue, status]) =>
  Effect.gen(function* () {
    const payment = yield* startWith({ usdValue })
    yield* tick({ head: 150, finalized: 119, transfers: [transfer(120, 1000n)] })
    expect((yield* look(payment)).payment?.status).toBe(status)
    yield* tick({ head: 151, finalized: 120 })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
  }).pipe(Effect.provide(policy))
)

it.scoped("a payment that asks for a safe block does not wait for it to be final", () =>
  Effect.gen(function* () {
    const payment = yield* startWith({ usdValue: "100.5" })
    yield* tick({ head: 150, safe: 119, finalized: 110, transfers: [transfer(120, 1000n)] })
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* tick({ head: 151, safe: 120, finalized: 111 })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
  }).pipe(Effect.provide(withChains({ policies: [{ aboveUsd: "100", require: "safe" }] })))
)
