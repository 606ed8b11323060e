import { expect } from "@effect/vitest"
import { Duration, Effect, Layer, TestClock } from "effect"
import * as Balances from "../../src/Chains/balances/BalancesRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { EventKind, StatusEventKind } from "../../src/Domain/Event.ts"
import { eventId } from "../../src/Domain/Ids.ts"
import { iso } from "../../src/lib/moment.ts"
import * as Story from "../../src/Payments/paymentHistory.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { type Db, Reader, Tx } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testSettings, testSettingsLayer } from "../lib/settings.ts"
import { execute, inTransaction, refusingWriter, rows } from "../lib/store.ts"
import {
  after,
  afterScan,
  alarms,
  block,
  confirmations,
  createdAt,
  crowd,
  kindsOf,
  lastOnTime,
  loggedTransitions,
  look,
  network,
  scanTo,
  shows,
  start,
  startWith,
  stateOf,
  test,
  tick,
  transfer,
  untilExpired,
  withChains,
  withSettings
} from "./settling.ts"

/** The first head at which a payment is over. */
const end = lastOnTime + confirmations

test("a payment without money expires with the first scan in which a block past the deadline has the confirmations", function* () {
  const payment = yield* start
  expect(yield* afterScan(payment, end - 1)).toBe("pending")
  expect(yield* afterScan(payment, end)).toBe("expired")
  expect(yield* kindsOf(payment)).toEqual(["expired"])
  expect((yield* look(payment)).transitions).toEqual([{ to_status: "expired", at: end * 1000 }])
})

const tolerance = { ...testSettings("").payments, clockTolerance: Duration.minutes(15) }
const testOfClock = scopedTest(withSettings({ payments: tolerance }))
testOfClock("no payment ends while the clock is behind the chain's", function* () {
  const payment = yield* start
  expect(yield* after(payment, { head: end })).toBe("pending")
  expect(yield* afterScan(payment, end)).toBe("expired")
})

test("no scan, no decision, however long the clock runs", function* () {
  const payment = yield* start
  yield* scanTo(150)
  yield* TestClock.adjust("10 days")
  yield* untilExpired
  expect(yield* stateOf(payment)).toBe("pending")
  // The chain is read again, and the money that came in time is found in time.
  expect(yield* afterScan(payment, lastOnTime + 500, transfer(lastOnTime, 1000n))).toBe("confirmed")
})

test("one scan that finds deep money detects and confirms in one transaction, each event with its own state", function* () {
  const payment = yield* start
  yield* scanTo(130, transfer(120, 1000n))
  const bodies = (yield* look(payment)).events.map((event) => JSON.parse(event.body))
  expect(bodies.map((body) => [body.event, body.data.status])).toEqual([
    ["payment.detecting", "detecting"],
    ["payment.confirmed", "confirmed"]
  ])
  expect(bodies[0].data.confirmedAt).toBeUndefined()
  expect(bodies[1].data).toMatchObject({ txHash: "0xt120", confirmedAt: iso(130_000) })
  expect(yield* Story.transitionsOf(yield* Reader, payment.id)).toEqual([
    { from: "pending", to: "detecting", at: 130_000 },
    { from: "detecting", to: "confirmed", at: 130_000 }
  ])
})

test("each change of a status is one line with the payment, its chain and mode, and both statuses", function* () {
  const payment = yield* start
  const at = createdAt / 1000 + 10
  yield* scanTo(at, transfer(at, payment.amount))
  yield* scanTo(at + 1)
  yield* scanTo(at + 20)
  yield* Effect.yieldNow()
  const about = { service: "payments", payment: payment.id, chain: payment.chain, mode: payment.mode }
  expect(loggedTransitions).toEqual([
    { ...about, from: "pending", to: "detecting" },
    { ...about, from: "detecting", to: "confirmed" }
  ])
  expect(alarms).toEqual([])
})

test("a reorg makes a detected payment pending without an event, and the next detection is a new event", function* () {
  const payment = yield* start
  yield* scanTo(120, transfer(120, 1000n))
  expect(yield* after(payment, { head: 120, ancestor: 119 })).toBe("pending")
  yield* scanTo(121, transfer(121, 1000n))
  expect(yield* kindsOf(payment)).toEqual(["detecting", "detecting"])
  const { events } = yield* look(payment)
  expect(new Set(events.map((event) => JSON.parse(event.body).id)).size).toBe(2)
})

/** A scan to the end of payments, as the watcher commits it. */
const scanned = ({ settle }: Pick<Settlement["Type"], "settle">) =>
  Effect.gen(function* () {
    yield* LedgerRepo.keepBlocks(network, [block(lastOnTime + 1), block(end)])
    yield* LedgerRepo.moveScan(network, block(end))
    yield* Balances.moveChecked(network, block(end))
    yield* settle({ network, head: block(end) }, [])
  })

test("a commit of the watcher ends no payment that got too little: only the expiry worker does", function* () {
  yield* start
  const transfers = (yield* crowd(250)).map((one) => transfer(120, 1n, { address: one.address.toLowerCase() }))
  yield* scanTo(130, ...transfers)
  const failed = (db: Db) => db.all("SELECT 1 FROM payments WHERE status = 'failed'")
  expect(yield* inTransaction(Effect.zipRight(scanned(yield* Settlement), Effect.flatMap(Tx, failed)))).toHaveLength(0)
  yield* untilExpired
  expect(yield* failed(yield* Reader)).toHaveLength(250)
})

test("nothing ends on a chain without a block that has the confirmations, or without a balance reconciliation", function* () {
  const payment = yield* start
  const settlement = yield* Settlement
  const head = block(lastOnTime + 1000)
  const settled = <E>(change: Effect.Effect<unknown, E, Tx>) =>
    inTransaction(Effect.zipRight(change, settlement.settle({ network, head }, [payment.id])))
  yield* settled(LedgerRepo.moveScan(network, head))
  yield* settled(Balances.moveChecked(network, head))
  expect(yield* stateOf(payment)).toBe("pending")
  yield* settled(LedgerRepo.keepBlocks(network, [block(lastOnTime + 900)]))
  yield* untilExpired
  expect(yield* stateOf(payment)).toBe("expired")
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
  yield* scanTo(lastOnTime + 500, transfer(120, 1000n, { position: "unattributed", txHash: undefined }))
  yield* shows(payment, "detecting", "open unattributed 1000 undefined")
  // A node reports it: the row is replaced in one transaction.
  yield* execute("DELETE FROM receipts")
  yield* tick({ head: lastOnTime + 501, transfers: [{ ...transfer(120, 1000n), position: "call:0xt120" }] })
  yield* shows(payment, "confirmed", "gone unattributed 1000 undefined")
})

for (const [what, status, { require, usdValue, ...tags }] of [
  ["worth more than the policy's value", "detecting", { usdValue: "100.5", require: "finalized", finalized: 119 }],
  ["of unknown worth", "detecting", { usdValue: undefined, require: "finalized", finalized: 119 }],
  ["worth less", "confirmed", { usdValue: "99", require: "finalized", finalized: 119 }],
  ["that needs a safe block only", "detecting", { usdValue: "100.5", require: "safe", safe: 119, finalized: 110 }]
] as const) {
  const testOfPolicy = scopedTest(withChains({ policies: [{ aboveUsd: "100", require }] }))
  testOfPolicy(`a policy: below its tag a payment ${what} is ${status}`, function* () {
    const payment = yield* startWith({ usdValue })
    expect(yield* after(payment, { head: 150, ...tags, transfers: [transfer(120, 1000n)] })).toBe(status)
    expect(yield* after(payment, { head: 151, ...tags, [require]: 120 })).toBe("confirmed")
  })
}

test("payments that are over while the store is full end a second after it has room again", function* () {
  const payment = yield* start
  let isFull = true
  const settlement = yield* Effect.provide(Settlement, Layer.fresh(settlementLayer)).pipe(
    Effect.provide(Layer.merge(Layer.fresh(refusingWriter(() => isFull)), testSettingsLayer("")))
  )
  yield* Effect.forkScoped(settlement.expire)
  yield* inTransaction(scanned(settlement))
  yield* untilExpired
  expect(yield* stateOf(payment)).toBe("pending")
  isFull = false
  yield* TestClock.adjust("1 second")
  yield* untilExpired
  expect(yield* stateOf(payment)).toBe("expired")
})

const own = "https://shop.example/own"

const register = (id: string, events: ReadonlyArray<EventKind>, url: string) =>
  execute(
    `INSERT INTO endpoints (id, account_id, mode, url, events, secret, created_at)
     VALUES (?, 'default', 'test', ?, ?, randomblob(1), 0)`,
    [id, url, JSON.stringify(events)]
  )

/** A payment with a URL of its own, an endpoint that names every kind, and one that names those of the statuses. */
const shop = Effect.gen(function* () {
  const payment = yield* startWith({ webhookUrl: own })
  yield* register("wh_every", EventKind.literals, "https://shop.example/every")
  yield* register("wh_status", StatusEventKind.literals, "https://shop.example/status")
  return payment
})

/** The kinds that each receiver gets, in their order; `own` is the payment's URL. */
const received = Effect.map(
  rows<{ kind: string; receiver: string }>(
    `SELECT e.kind, coalesce(d.endpoint_id, 'own') AS receiver FROM deliveries AS d JOIN events AS e ON e.id = d.event_id
     ORDER BY d.sequence`
  ),
  (all) =>
    Object.fromEntries(
      ["own", "wh_every", "wh_status"].map((name) => [
        name,
        all.filter(({ receiver }) => receiver === name).map(({ kind }) => kind.replace("payment.", ""))
      ])
    )
)

/** The bodies of the events of its status. */
const bodiesOf = (payment: Parameters<typeof look>[0]) =>
  Effect.map(look(payment), ({ events }) => events.map(({ body }) => JSON.parse(body)))

test("a further part is an event for the endpoints that name it, and for no one else", function* () {
  const payment = yield* shop
  yield* scanTo(110, transfer(110, 400n))
  yield* scanTo(111, transfer(111, 300n))
  const withoutUpdate = ["detecting"]
  expect(yield* received).toEqual({ own: withoutUpdate, wh_every: ["detecting", "updated"], wh_status: withoutUpdate })
  const [, updated] = yield* bodiesOf(payment)
  expect(updated).toMatchObject({
    event: "payment.updated",
    data: { status: "detecting", amountReceived: "700", amountRemaining: "300" }
  })
  expect(updated.data.paymentUri).toMatch(/[?]value=300$/)
})

test("an endpoint at the payment's own URL gets the updates that it names", function* () {
  yield* shop
  yield* register("wh_own", ["payment.updated"], own)
  yield* scanTo(110, transfer(110, 400n))
  yield* scanTo(111, transfer(111, 300n))
  const sent = yield* rows<{ own_url: number; kind: string }>(
    `SELECT d.own_url, e.kind FROM deliveries AS d JOIN events AS e ON e.id = d.event_id WHERE d.endpoint_id = 'wh_own'
     ORDER BY d.sequence`
  )
  expect(sent.map(({ kind, own_url }) => [kind, own_url])).toEqual([
    ["payment.detecting", 1],
    ["payment.updated", 0]
  ])
})

test("a reorg that changes what remains is an update, each with an id of its own that a restored copy repeats", function* () {
  const payment = yield* shop
  yield* scanTo(110, transfer(110, 400n))
  yield* scanTo(111, transfer(111, 300n))
  yield* tick({ head: 111, ancestor: 110 })
  yield* scanTo(112, transfer(112, 300n))
  const bodies = yield* bodiesOf(payment)
  expect(bodies.map(({ data }) => data.amountReceived)).toEqual(["400", "700", "400", "700"])
  expect(bodies.slice(1).map(({ id }) => id)).toEqual(
    [1, 2, 3].map((ordinal) => eventId(payment.id, "payment.updated", ordinal))
  )
})

test("small transfers are reported with the next event, in its sum", function* () {
  const payment = yield* shop
  yield* scanTo(110, transfer(110, 400n))
  for (const block of [111, 112, 113]) yield* scanTo(block, transfer(block, 9n))
  yield* scanTo(114, transfer(114, 100n))
  expect((yield* bodiesOf(payment)).map(({ data }) => data.amountReceived)).toEqual(["400", "527"])
})
