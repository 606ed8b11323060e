import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as CorroborationRepo from "../../src/Chains/corroboration/CorroborationRepo.ts"
import * as SecondEvidenceRepo from "../../src/Chains/corroboration/SecondEvidenceRepo.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import * as Receipts from "../../src/Payments/ReceiptsRepo.ts"
import { refunded } from "../../src/Payments/refunds.ts"
import { type Db, type Param, Reader, Tx, Writer } from "../../src/Sql.ts"
import { besideNode } from "./deciding.ts"
import {
  alarms,
  block,
  confirmations,
  elsewhere,
  exceptions,
  lastOnTime,
  layer,
  look,
  network,
  startWith,
  tick,
  transfer,
  untilExpired,
  withChains
} from "./settling.ts"

/** A payment of so much that a thousandth of it is 1,000 units. */
const amount = 1_000_000n
const token = (number: number, units: bigint, over: Partial<DatedTransfer> = {}): DatedTransfer => ({
  ...transfer(number, units),
  currency: "USDC",
  position: "log:0",
  ...over
})
const begin = startWith({ currency: "USDC", amount })

/** So many transfers of a block, each with a transaction of its own. */
const dust = (number: number, count: number, units = 1n, over: Partial<DatedTransfer> = {}) =>
  Array.from({ length: count }, (_, i) =>
    token(number, units, { position: `log:${i + 1}`, txHash: `0xd${number}:${i}`, ...over })
  )

const sums = Effect.flatMap(Reader, (reader) =>
  reader.all<{ sum: string }>(
    `SELECT kind || ' ' || transfers || ' ' || amount || ' ' || currency || iif(corroborated, '', ' not corroborated') AS sum
     FROM dust_sums WHERE transfers > 0 ORDER BY kind, currency, corroborated, transfers`
  )
).pipe(Effect.map((rows) => rows.map(({ sum }) => sum)))

const received = (payment: Payment) =>
  Effect.map(look(payment), (found) => `${found.payment?.status} ${found.payment?.amountReceived ?? 0n}`)

/** What there is to be settled of it. */
const settled = (payment: Payment) =>
  Effect.map(
    Effect.flatMap(Reader, (reader) => Receipts.ofPayment(reader, payment.id)),
    (all) => all.length
  )

it.scoped("dust: a thousand transfers below the floor are one sum, and count", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* tick({ head: 110, transfers: dust(110, 1_000, 999n) })
    expect(yield* sums).toEqual(["paying 1000 999000 USDC"])
    expect(yield* settled(payment)).toBe(1)
    expect(yield* received(payment)).toBe("detecting 999000")
    // What is missing now is a thousandth: to bring that is no dust.
    yield* tick({ head: 120, transfers: [token(120, 999n)] })
    expect(yield* settled(payment)).toBe(2)
    yield* tick({ head: 121, transfers: dust(121, 1) })
    expect(yield* received(payment)).toBe("detecting 1000000")
    yield* tick({ head: 130 })
    const { payment: after } = yield* look(payment)
    expect(after?.status).toBe("confirmed")
    expect(after?.amountReceived).toBe(amount)
    expect(after?.txHash).toBe("0xd110:0")
  }).pipe(Effect.provide(layer))
)

it.scoped("dust: it confirms only once its newest is deep, and all is corroborated", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* tick({ head: 110, transfers: dust(110, 2_000, 500n), corroborated: false })
    yield* tick({ head: 120 })
    expect(yield* received(payment)).toBe("detecting 1000000")
    expect(yield* sums).toEqual(["paying 2000 1000000 USDC not corroborated"])
    const writer = yield* Writer
    const settlement = yield* Settlement
    const keys = dust(110, 2_000, 500n)
    const vouch = (part: ReadonlyArray<DatedTransfer>) =>
      writer.write(
        Effect.gen(function* () {
          const touched = yield* SecondEvidenceRepo.setPassCorroborated(network, part)
          expect(new Set(touched)).toEqual(new Set([payment.id]))
          yield* settlement.settle({ network, head: block(120) }, touched)
        })
      )
    yield* vouch(keys.slice(1))
    expect(yield* sums).toEqual(["paying 1 500 USDC not corroborated", "paying 1999 999500 USDC"])
    expect(yield* received(payment)).toBe("detecting 1000000")
    yield* vouch(keys)
    expect(yield* sums).toEqual(["paying 2000 1000000 USDC"])
    expect(yield* received(payment)).toBe("confirmed 1000000")
  }).pipe(Effect.provide(layer))
)

it.scoped("dust: a reorg takes orphaned receipts out of the sums, and adds those that are mined again", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* tick({ head: 110, transfers: dust(110, 10, 500n) })
    yield* tick({ head: 111, transfers: dust(111, 10, 500n) })
    yield* tick({ head: 111, ancestor: 110 })
    expect(yield* sums).toEqual(["paying 10 5000 USDC"])
    expect(yield* received(payment)).toBe("detecting 5000")
    const again = dust(111, 10, 500n).map((one) => ({ ...one, blockHash: "0xother" }))
    yield* tick({ head: 112, transfers: again })
    // Another look at the same blocks changes nothing.
    yield* tick({ head: 113, transfers: [...again, ...dust(110, 10, 500n)] })
    expect(yield* sums).toEqual(["paying 20 10000 USDC"])
    // The branch of before is back.
    yield* tick({ head: 114, ancestor: 110, transfers: dust(111, 10, 500n) })
    expect(yield* sums).toEqual(["paying 20 10000 USDC"])
    expect(yield* received(payment)).toBe("detecting 10000")
    yield* tick({ head: 115, ancestor: 100 })
    expect(yield* sums).toEqual([])
    expect(yield* received(payment)).toBe("pending 0")
  }).pipe(Effect.provide(layer))
)

it.scoped("dust: what was on time stays so when a reorg mines it again later", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* TestClock.setTime(lastOnTime * 1000)
    yield* tick({ head: lastOnTime, transfers: dust(lastOnTime, 10, 500n) })
    const later = dust(lastOnTime, 10, 500n).map((one) => ({ ...one, ...block(lastOnTime + 2), blockHash: "0xother" }))
    const mined = later.map((one) => ({ ...one, blockNumber: lastOnTime + 2, blockTime: lastOnTime + 2 }))
    yield* tick({ head: lastOnTime + 2, ancestor: lastOnTime - 1, transfers: mined })
    expect(yield* sums).toEqual(["paying 10 5000 USDC"])
    expect(yield* received(payment)).toBe("detecting 5000")
  }).pipe(Effect.provide(layer))
)

it.scoped("dust: what was late is on time where a reorg mines it again in time", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* TestClock.setTime(lastOnTime * 1000)
    yield* tick({ head: lastOnTime + 2, transfers: dust(lastOnTime + 2, 10, 500n) })
    expect(yield* sums).toEqual(["late 10 5000 USDC"])
    const sooner = dust(lastOnTime, 10, 500n).map((one) => ({ ...one, blockHash: "0xother" }))
    const earlier = dust(lastOnTime + 2, 10, 500n).map((one, i) => ({ ...one, ...sooner[i], txHash: one.txHash }))
    yield* tick({ head: lastOnTime + 2, ancestor: lastOnTime - 1, transfers: earlier })
    expect(yield* sums).toEqual(["paying 10 5000 USDC"])
    expect(yield* received(payment)).toBe("detecting 5000")
  }).pipe(Effect.provide(layer))
)

it.scoped("dust: what came beyond the amount, late, or as another token is one exception each", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* tick({ head: 130, transfers: [token(120, amount)] })
    yield* tick({ head: 140, transfers: dust(140, 200, 5n) })
    yield* tick({ head: 141, transfers: dust(141, 50, 5n) })
    expect(yield* exceptions(payment)).toEqual(["open paid_again 1250 undefined"])
    const late = lastOnTime + 1
    yield* tick({ head: late, transfers: dust(late, 30, 7n) })
    const stray = dust(late + 1, 150, 3n, { currency: "USDT" })
    yield* tick({ head: late + 1, transfers: stray })
    const all = yield* exceptions(payment)
    expect(all.filter((one) => one.endsWith("undefined")).sort()).toEqual([
      "open late 210 undefined",
      "open paid_again 1250 undefined",
      "open wrong_token 150 undefined"
    ])
    // The first hundred of another token are told one by one.
    expect(all.filter((one) => one.startsWith("open wrong_token 3 0xd"))).toHaveLength(100)
    expect(yield* received(payment)).toBe("confirmed 1000000")
  }).pipe(Effect.provide(layer))
)

it.scoped("dust: decided dust stays decided, and dust that came since is open", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* tick({ head: 130, transfers: [token(120, amount)] })
    yield* tick({ head: 140, transfers: dust(140, 20, 5n) })
    // It may grow at any time: how much was sent back has to be said.
    expect(yield* Effect.flip(refunded(payment.id, { exceptions: [], amount: undefined }))).toMatchObject({
      _tag: "RefundUnclear"
    })
    yield* tick({ head: 141, transfers: dust(141, 4, 5n) })
    yield* refunded(payment.id, { exceptions: [], amount: 100n })
    expect(yield* exceptions(payment)).toEqual(["open paid_again 20 undefined"])
    yield* refunded(payment.id, { exceptions: [], amount: 20n })
    expect(yield* exceptions(payment)).toEqual(["refunded paid_again 120 undefined"])
    yield* tick({ head: 142, transfers: dust(142, 1, 5n) })
    expect(yield* exceptions(payment)).toEqual(["open paid_again 5 undefined"])
    yield* accept(payment.id, undefined)
    expect(yield* exceptions(payment)).toEqual(["accepted paid_again 5 undefined"])
    yield* tick({ head: 143, transfers: dust(143, 2, 3n) })
    yield* tick({ head: 144, transfers: dust(144, 1, 3n) })
    const since = ["open paid_again 9 undefined", "accepted paid_again 5 undefined"]
    expect([...(yield* exceptions(payment))].sort()).toEqual([...since].sort())
    // A reorg that takes what is open leaves what was decided on.
    yield* tick({ head: 145, ancestor: 142 })
    expect((yield* exceptions(payment)).filter((one) => one.startsWith("open"))).toEqual([])
  }).pipe(Effect.provide(besideNode(layer)))
)

it.scoped("dust: on-time dust that is found after the end is one alarm, and never hides a found payment", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* tick({ head: 110, transfers: dust(110, 10, 500n) })
    const end = lastOnTime + confirmations + 1
    yield* TestClock.setTime(end * 1000)
    yield* tick({ head: end })
    yield* untilExpired
    expect(yield* received(payment)).toBe("failed 5000")
    yield* TestClock.setTime((end + 1) * 1000)
    yield* tick({ head: end + 1, transfers: [...dust(111, 500, 500n), token(112, 900_000n)] })
    yield* tick({ head: end + 2, transfers: dust(113, 500, 500n) })
    expect([...(yield* exceptions(payment))].sort()).toEqual([
      "open found_late 500000 undefined",
      "open found_late 900000 0xt112"
    ])
    expect(alarms).toHaveLength(2)
  }).pipe(Effect.provide(layer))
)

it.scoped("dust: a confirmed payment that a reorg takes dust from is undone once the new branch is final", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* tick({ head: 110, transfers: [token(105, 999_500n)] })
    yield* tick({ head: 120, transfers: [...dust(112, 50, 4n), ...dust(113, 75, 4n)] })
    expect(yield* received(payment)).toBe("confirmed 1000000")
    yield* tick({ head: 121, ancestor: 112 })
    expect(yield* received(payment)).toBe("confirmed 1000000")
    // A deeper one takes the rest, and what the first one took has no final block in its place yet.
    yield* tick({ head: 122, ancestor: 111 })
    yield* tick({ head: 112 + 4 * confirmations })
    expect(yield* received(payment)).toBe("confirmed 1000000")
    yield* tick({ head: 113 + 4 * confirmations })
    expect(yield* received(payment)).toBe("failed 999500")
    expect(yield* exceptions(payment)).toEqual(["open reorged 500 0xd112:0"])
  }).pipe(Effect.provide(layer))
)

it.scoped("dust: on another chain and at a lost address it is summed up from the hundredth on", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    const writer = yield* Writer
    const lost = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 7, 0)", [lost])
        yield* LedgerRepo.startScan(elsewhere, block(100), undefined)
      })
    )
    yield* tick({ on: elsewhere, head: 110, transfers: dust(110, 120, 5n) })
    const there = dust(110, 130, 5n, { address: lost.toLowerCase() })
    yield* tick({ head: 110, transfers: there })
    yield* tick({ head: 111, transfers: dust(111, 5, 5n, { address: lost.toLowerCase() }) })
    expect(yield* sums).toEqual(["stray 20 100 USDC", "stray 35 175 USDC"])
    expect((yield* exceptions(payment)).filter((one) => one.endsWith("undefined"))).toEqual([
      "open wrong_chain 100 undefined"
    ])
    const reader = yield* Reader
    const unknown = reader.all(
      "SELECT kind, amount FROM exceptions WHERE payment_id IS NULL AND tx_hash IS NULL AND closed_at IS NULL"
    )
    expect(yield* unknown).toEqual([{ kind: "unknown_payment", amount: "175" }])
    expect(alarms).toHaveLength(101)
  }).pipe(Effect.provide(withChains({}, { chain: "optimism" })))
)

it.scoped("dust: a payment is settled by reading its own rows alone, however much dust there is", () =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* tick({ head: 110, transfers: [token(110, 500_000n), ...dust(110, 3_000)] })
    const reader = yield* Reader
    const plans: Array<string> = []
    const rows: Array<number> = []
    const planned = (sql: string, params: ReadonlyArray<Param> = []) =>
      Effect.map(reader.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params), (steps) => {
        plans.push(...steps.map(({ detail }) => detail))
      })
    const listening: Db = {
      ...reader,
      all: <Row extends object>(sql: string, params?: ReadonlyArray<Param>) =>
        Effect.zipRight(
          planned(sql, params),
          Effect.tap(reader.all<Row>(sql, params), (found) => Effect.sync(() => rows.push(found.length)))
        )
    }
    yield* Receipts.unsettledOfOwner(listening, { payment: payment.id }, 10)
    yield* Receipts.ofPayment(listening, payment.id)
    yield* CorroborationRepo.uncorroborated(listening, network, 1_000_000, 10)
    expect(rows).toEqual([0, 1, 1, 0])
    expect(plans.filter((plan) => plan.includes("SCAN"))).toEqual([])
    expect(plans.filter((plan) => plan.includes(" receipts "))).toEqual([
      "SEARCH receipts USING INDEX receipts_unsettled (payment_id=?)",
      "SEARCH receipts USING INDEX receipts_payment (payment_id=? AND dust=?)",
      expect.stringContaining("SEARCH receipts USING INDEX receipts_uncorroborated")
    ])
  }).pipe(Effect.provide(layer))
)
