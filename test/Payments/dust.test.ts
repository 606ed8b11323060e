import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as CorroborationRepo from "../../src/Chains/corroboration/CorroborationRepo.ts"
import * as SecondEvidenceRepo from "../../src/Chains/corroboration/SecondEvidenceRepo.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import * as Receipts from "../../src/Payments/ReceiptsRepo.ts"
import { refunded } from "../../src/Payments/refunds.ts"
import { Reader, Writer } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"
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
  losePayment,
  lost,
  network,
  startScans,
  startWith,
  test,
  testOfTwo,
  tick,
  transfer,
  untilExpired
} from "./settling.ts"

/** A payment of so much that a thousandth of it, its floor of dust, is 1,000 units. */
const amount = 1_000_000n
const token = (number: number, units: bigint, over: Partial<DatedTransfer> = {}): DatedTransfer => ({
  ...transfer(number, units),
  currency: "USDC",
  position: "log:0",
  ...over
})
const begin = startWith({ currency: "USDC", amount })
/** The same payment, worth so little that a hundredth of it is the floor. */
const beginSmall = startWith({ currency: "USDC", amount, usdValue: "1" })

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

test("dust: a hundred transfers below the floor are one sum, and count", function* () {
  const payment = yield* beginSmall
  yield* tick({ head: 110, transfers: dust(110, 100, 9_990n) })
  expect(yield* sums).toEqual(["paying 100 999000 USDC"])
  expect(yield* settled(payment)).toBe(1)
  expect(yield* received(payment)).toBe("detecting 999000")
  // What is missing now is a thousandth: to bring that is not dust.
  yield* tick({ head: 120, transfers: [token(120, 999n)] })
  expect(yield* settled(payment)).toBe(2)
  yield* tick({ head: 121, transfers: dust(121, 1) })
  expect(yield* received(payment)).toBe("detecting 1000000")
  yield* tick({ head: 130 })
  const { payment: after } = yield* look(payment)
  expect(after?.status).toBe("confirmed")
  expect(after?.amountReceived).toBe(amount)
  expect(after?.txHash).toBe("0xd110:0")
})

test("dust: it confirms only once its newest is deep, and all is corroborated", function* () {
  const payment = yield* beginSmall
  yield* tick({ head: 110, transfers: dust(110, 125, 8_000n), corroborated: false })
  yield* tick({ head: 120 })
  expect(yield* received(payment)).toBe("detecting 1000000")
  expect(yield* sums).toEqual(["paying 125 1000000 USDC not corroborated"])
  const writer = yield* Writer
  const settlement = yield* Settlement
  const keys = dust(110, 125, 8_000n)
  const corroborate = (part: ReadonlyArray<DatedTransfer>) =>
    writer.write(
      Effect.gen(function* () {
        const touched = yield* SecondEvidenceRepo.setPassCorroborated(network, part)
        expect(new Set(touched)).toEqual(new Set([payment.id]))
        yield* settlement.settle({ network, head: block(120) }, touched)
      })
    )
  yield* corroborate(keys.slice(1))
  expect(yield* sums).toEqual(["paying 1 8000 USDC not corroborated", "paying 124 992000 USDC"])
  expect(yield* received(payment)).toBe("detecting 1000000")
  yield* corroborate(keys)
  expect(yield* sums).toEqual(["paying 125 1000000 USDC"])
  expect(yield* received(payment)).toBe("confirmed 1000000")
})

test("dust: a reorg removes orphaned receipts from the sums, and adds those that are mined again", function* () {
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
})

test("dust: what came beyond the amount, late, or as another token is one exception each", function* () {
  const payment = yield* begin
  yield* tick({ head: 130, transfers: [token(120, amount)] })
  yield* tick({ head: 140, transfers: dust(140, 20, 5n) })
  yield* tick({ head: 141, transfers: dust(141, 5, 5n) })
  expect(yield* exceptions(payment)).toEqual(["open overpaid 125 undefined"])
  const late = lastOnTime + 1
  yield* tick({ head: late, transfers: dust(late, 30, 7n) })
  const stray = dust(late + 1, 102, 3n, { currency: "USDT" })
  yield* tick({ head: late + 1, transfers: stray })
  const all = yield* exceptions(payment)
  expect(all.filter((one) => one.endsWith("undefined")).sort()).toEqual([
    "open late 210 undefined",
    "open overpaid 125 undefined",
    "open wrong_token 6 undefined"
  ])
  // The first hundred of another token are reported one by one.
  expect(all.filter((one) => one.startsWith("open wrong_token 3 0xd"))).toHaveLength(100)
  expect(yield* received(payment)).toBe("confirmed 1000000")
})

test("dust: coin that the wallet's own sponsor brings is none, and a customer's is", function* () {
  const payment = yield* startWith({ amount })
  const sponsor = `0x${"5".repeat(40)}`
  yield* execute("UPDATE wallets SET sponsor = ?", [sponsor])
  const gas = (number: number) => transfer(number, 500n, { sender: sponsor })
  yield* tick({ head: 110, transfers: [gas(110), transfer(109, amount)] })
  yield* tick({ head: 130 })
  expect(yield* received(payment)).toBe("confirmed 1000000")
  const late = lastOnTime + 1
  yield* tick({ head: late + 2, transfers: [gas(140), gas(late), gas(late + 1), transfer(late + 2, 300n)] })
  expect(yield* sums).toEqual(["late 1 300 ETH"])
  expect(yield* exceptions(payment)).toEqual(["open late 300 undefined"])
})

scopedTest(besideNode(layer))("dust: decided dust stays decided, and dust that came since is open", function* () {
  const payment = yield* begin
  yield* tick({ head: 130, transfers: [token(120, amount)] })
  yield* tick({ head: 140, transfers: dust(140, 20, 5n) })
  // It may grow at any time: how much was sent back has to be said.
  expect(yield* Effect.flip(refunded(payment.id, { exceptions: [], amount: undefined }))).toMatchObject({
    _tag: "RefundUnclear"
  })
  yield* tick({ head: 141, transfers: dust(141, 4, 5n) })
  yield* tick({ head: 143 })
  yield* refunded(payment.id, { exceptions: [], amount: 100n })
  expect(yield* exceptions(payment)).toEqual(["open overpaid 20 undefined"])
  yield* refunded(payment.id, { exceptions: [], amount: 20n })
  expect(yield* exceptions(payment)).toEqual(["refunded overpaid 120 undefined"])
  yield* tick({ head: 144, transfers: dust(144, 1, 5n) })
  expect(yield* exceptions(payment)).toEqual(["open overpaid 5 undefined"])
  yield* tick({ head: 146 })
  yield* accept(payment.id, undefined)
  expect(yield* exceptions(payment)).toEqual(["accepted overpaid 5 undefined"])
  yield* tick({ head: 147, transfers: dust(147, 2, 3n) })
  yield* tick({ head: 148, transfers: dust(148, 1, 3n) })
  const since = ["open overpaid 9 undefined", "accepted overpaid 5 undefined"]
  expect([...(yield* exceptions(payment))].sort()).toEqual([...since].sort())
  // A reorg that takes what is open leaves what was decided on.
  yield* tick({ head: 149, ancestor: 146 })
  expect((yield* exceptions(payment)).filter((one) => one.startsWith("open"))).toEqual([])
})

test("dust: on-time dust that is found after the end is one alarm, and never hides a found payment", function* () {
  const payment = yield* begin
  yield* tick({ head: 110, transfers: dust(110, 10, 500n) })
  const end = lastOnTime + confirmations + 1
  yield* TestClock.setTime(end * 1000)
  yield* tick({ head: end })
  yield* untilExpired
  expect(yield* received(payment)).toBe("failed 5000")
  yield* TestClock.setTime((end + 1) * 1000)
  yield* tick({ head: end + 1, transfers: [...dust(111, 50, 500n), token(112, 900_000n)] })
  yield* tick({ head: end + 2, transfers: dust(113, 50, 500n) })
  expect([...(yield* exceptions(payment))].sort()).toEqual([
    "open found_late 50000 undefined",
    "open found_late 900000 0xt112",
    "open underpaid 5000 undefined"
  ])
  expect(alarms).toHaveLength(2)
})

test("dust: a confirmed payment that loses dust to a reorg is undone once the new branch is final", function* () {
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
  expect(yield* exceptions(payment)).toEqual(["open reorged 500 0xd112:0", "open underpaid 999500 0xt105"])
})

testOfTwo("dust: on another chain and at a lost address it is summed up from the hundredth on", function* () {
  const payment = yield* begin
  yield* losePayment()
  yield* startScans(100, elsewhere)
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
})

test("dust: a payment is settled by reading its own rows alone, however much dust there is", function* () {
  const payment = yield* begin
  yield* tick({ head: 110, transfers: [token(110, 500_000n), ...dust(110, 300)] })
  const reader = yield* Reader
  const steps: Array<string> = []
  const db = explained(reader, reader, steps)
  expect(yield* Receipts.unsettledOfOwner(db, { payment: payment.id }, 10)).toHaveLength(0)
  expect(yield* Receipts.ofPayment(db, payment.id)).toHaveLength(2)
  expect(yield* CorroborationRepo.uncorroborated(db, network, "listed", 1_000_000, 10)).toHaveLength(0)
  expect(yield* CorroborationRepo.uncorroborated(db, network, "dust", 1_000_000, 10)).toHaveLength(0)
  expect(steps.filter((step) => step.includes("SCAN"))).toEqual([])
  expect(steps.filter((step) => step.includes(" receipts "))).toEqual([
    "SEARCH receipts USING INDEX receipts_unsettled (payment_id=?)",
    "SEARCH receipts USING INDEX receipts_payment (payment_id=? AND dust=?)",
    expect.stringContaining("SEARCH receipts USING INDEX receipts_uncorroborated "),
    expect.stringContaining("SEARCH receipts USING INDEX receipts_uncorroborated_dust ")
  ])
})

it.scoped("dust that one provider alone reported in time is late when it is mined later", () =>
  Effect.gen(function* () {
    yield* begin
    yield* TestClock.setTime(lastOnTime * 1000)
    yield* tick({ head: lastOnTime, transfers: dust(lastOnTime, 10, 500n), corroborated: false })
    expect(yield* sums).toEqual(["paying 10 5000 USDC not corroborated"])
    const again = dust(lastOnTime + 2, 10, 500n).map((one, i) => ({ ...one, txHash: `0xd${lastOnTime}:${i}` }))
    yield* tick({ head: lastOnTime + 2, ancestor: lastOnTime - 1, transfers: again })
    expect(yield* sums).toEqual(["late 10 5000 USDC"])
  }).pipe(Effect.provide(layer))
)

it.scoped.each([
  ["on time", "later", lastOnTime, lastOnTime + 2],
  ["late", "in time", lastOnTime + 2, lastOnTime]
] as const)("dust: what was %s counts as on time when a reorg mines it again %s", ([, , before, after]) =>
  Effect.gen(function* () {
    const payment = yield* begin
    yield* TestClock.setTime(lastOnTime * 1000)
    yield* tick({ head: before, transfers: dust(before, 10, 500n) })
    expect(yield* sums).toEqual([`${before === lastOnTime ? "paying" : "late"} 10 5000 USDC`])
    const again = dust(after, 10, 500n).map((one, i) => ({ ...one, txHash: `0xd${before}:${i}` }))
    yield* tick({ head: lastOnTime + 2, ancestor: lastOnTime - 1, transfers: again })
    expect(yield* sums).toEqual(["paying 10 5000 USDC"])
    expect(yield* received(payment)).toBe("detecting 5000")
  }).pipe(Effect.provide(layer))
)

it.scoped.each([
  ["late", lastOnTime + 2, lastOnTime, "paying"],
  ["on time", lastOnTime, lastOnTime + 2, "late"]
] as const)("dust: what one provider shows as %s is what two providers report", ([, said, time, kind]) =>
  Effect.gen(function* () {
    yield* begin
    yield* TestClock.setTime(lastOnTime * 1000)
    const all = dust(lastOnTime, 3, 500n).map((one) => ({ ...one, blockTime: said }))
    yield* tick({ head: lastOnTime + 2, transfers: all, corroborated: false })
    const before = said === lastOnTime ? "paying" : "late"
    expect(yield* sums).toEqual([`${before} 3 1500 USDC not corroborated`])
    const settlement = yield* Settlement
    const corroborate = (part: ReadonlyArray<DatedTransfer>) =>
      Effect.flatMap(Writer, (writer) =>
        writer.write(
          Effect.gen(function* () {
            const dated = part.map((one) => ({ ...one, blockTime: time }))
            const touched = yield* SecondEvidenceRepo.setPassCorroborated(network, dated)
            yield* settlement.settle({ network, head: block(lastOnTime + 2) }, new Set(touched))
          })
        )
      )
    yield* corroborate(all.slice(1))
    expect(new Set(yield* sums)).toEqual(new Set([`${before} 1 500 USDC not corroborated`, `${kind} 2 1000 USDC`]))
    yield* corroborate(all)
    expect(yield* sums).toEqual([`${kind} 3 1500 USDC`])
  }).pipe(Effect.provide(layer))
)

it.scoped("dust that two had on time stays so when one, and then two, have it in a later block", () =>
  Effect.gen(function* () {
    yield* begin
    yield* TestClock.setTime(lastOnTime * 1000)
    yield* tick({ head: lastOnTime, transfers: dust(lastOnTime, 10, 500n) })
    const again = dust(lastOnTime + 2, 10, 500n).map((one, i) => ({ ...one, txHash: `0xd${lastOnTime}:${i}` }))
    yield* tick({ head: lastOnTime + 2, ancestor: lastOnTime - 1, transfers: again, corroborated: false })
    expect(yield* sums).toEqual(["paying 10 5000 USDC not corroborated"])
    const settlement = yield* Settlement
    const both = Effect.gen(function* () {
      const touched = yield* SecondEvidenceRepo.setPassCorroborated(network, again)
      yield* settlement.settle({ network, head: block(lastOnTime + 2) }, new Set(touched))
    })
    yield* Effect.flatMap(Writer, (writer) => writer.write(both))
    expect(yield* sums).toEqual(["paying 10 5000 USDC"])
  }).pipe(Effect.provide(layer))
)
