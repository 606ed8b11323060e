import { expect, it } from "@effect/vitest"
import { BigDecimal, Effect, TestClock } from "effect"
import * as CorroborationRepo from "../../src/Chains/corroboration/CorroborationRepo.ts"
import * as SecondEvidenceRepo from "../../src/Chains/corroboration/SecondEvidenceRepo.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { acceptException, refundException } from "../../src/Payments/decisions/resolve.ts"
import { type DustSum, dustReceipts, floorOf } from "../../src/Payments/dust.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import * as Receipts from "../../src/Payments/ReceiptsRepo.ts"
import { Reader } from "../../src/Sql.ts"
import { somePayment } from "../lib/payments.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"
import { end, exceptionOf, hash, mined, refunded, test, testOfTwo } from "./deciding.ts"
import {
  alarms,
  block,
  confirmations,
  elsewhere,
  exceptions,
  lastOnTime,
  look,
  losePayment,
  lost,
  network,
  scanTo,
  startScans,
  startWith,
  tick,
  transfer
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

const sums = Effect.map(
  rows<{ sum: string }>(
    `SELECT kind || ' ' || transfers || ' ' || amount || ' ' || currency || iif(corroborated, '', ' not corroborated') AS sum
     FROM dust_sums WHERE transfers > 0 ORDER BY kind, currency, corroborated, transfers`
  ),
  (all) => all.map(({ sum }) => sum)
)

const received = (payment: Payment) =>
  Effect.map(look(payment), (found) => `${found.payment?.status} ${found.payment?.amountReceived ?? 0n}`)

/** What there is to be settled of it. */
const settled = (payment: Payment) =>
  Effect.map(
    Effect.flatMap(Reader, (reader) => Receipts.ofPayment(reader, payment.id)),
    (all) => all.length
  )

/** A second provider reports these. */
const corroborate = (head: number, transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.flatMap(Settlement, (settlement) =>
    inTransaction(
      Effect.gen(function* () {
        const touched = new Set(yield* SecondEvidenceRepo.setPassCorroborated(network, transfers))
        yield* settlement.settle({ network, head: block(head) }, touched)
        return touched
      })
    )
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
  expect((yield* look(payment)).payment).toMatchObject({
    status: "confirmed",
    amountReceived: amount,
    txHash: "0xd110:0"
  })
})

test("dust: it confirms only once its newest is deep, and all is corroborated", function* () {
  const payment = yield* beginSmall
  const [keys, newest] = [dust(110, 124, 8_000n), dust(119, 1, 8_000n)]
  yield* tick({ head: 120, transfers: [...keys, ...newest], corroborated: false })
  expect(yield* sums).toEqual(["paying 125 1000000 USDC not corroborated"])
  expect(yield* corroborate(120, keys)).toEqual(new Set([payment.id]))
  expect(yield* sums).toEqual(["paying 1 8000 USDC not corroborated", "paying 124 992000 USDC"])
  expect(yield* corroborate(120, newest)).toEqual(new Set([payment.id]))
  expect(yield* sums).toEqual(["paying 125 1000000 USDC"])
  expect(yield* received(payment)).toBe("detecting 1000000")
  yield* tick({ head: 121 })
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

/** The id of the open exception of many small transfers of a kind. */
const sumOf = (payment: Payment, kind: "overpaid" | "found_late" | "underpaid") =>
  Effect.map(exceptionOf(payment.id, { kind, status: "open", txHash: undefined }), ({ id }) => id)

/** The amounts of the events of exceptions. */
const reported = Effect.map(
  rows<{ amount: string }>(
    "SELECT body ->> '$.exception.amount' AS amount FROM events WHERE kind = 'payment.exception' ORDER BY sequence"
  ),
  (events) => events.map(({ amount }) => amount)
)

test("dust: a refund has to say how much, decided dust stays decided, and only its growth since is open", function* () {
  const payment = yield* begin
  yield* scanTo(130, token(120, amount))
  yield* scanTo(140, ...dust(140, 20, 5n))
  // The growth of what is open is not an event.
  yield* scanTo(141, ...dust(141, 5, 5n))
  yield* scanTo(143)
  expect([yield* exceptions(payment), yield* reported]).toEqual([["open overpaid 125 undefined"], ["100"]])
  const id = yield* sumOf(payment, "overpaid")
  expect(yield* Effect.flip(refunded(payment.id))).toMatchObject({ _tag: "RefundUnclear" })
  expect(yield* Effect.flip(refundException(id, undefined, undefined, {}))).toMatchObject({
    _tag: "DecisionInvalid",
    field: "amount",
    message: expect.stringContaining("may grow at any time")
  })
  yield* refundException(id, undefined, 100n, { txHash: hash("a") })
  expect(yield* exceptions(payment)).toEqual(["open overpaid 25 undefined"])
  yield* acceptException(id, undefined, {})
  yield* scanTo(144, ...dust(144, 2, 5n))
  const accepted = "accepted overpaid 25 undefined"
  expect((yield* exceptions(payment)).toSorted()).toEqual([accepted, "open overpaid 10 undefined"])
  // Dust that opens a refunded one again is an event too.
  yield* scanTo(146)
  yield* refunded(payment.id, { amount: 10n })
  expect((yield* exceptions(payment)).toSorted()).toEqual([accepted, "refunded overpaid 10 undefined"])
  yield* scanTo(147, ...dust(147, 1, 5n))
  expect(yield* reported).toEqual(["100", "25", "25", "10", "10", "5"])
  yield* scanTo(149)
  yield* accept(payment.id, undefined)
  expect((yield* exceptions(payment)).filter((one) => one.startsWith("open"))).toEqual([])
  yield* scanTo(150, ...dust(150, 2, 3n))
  yield* scanTo(151, ...dust(151, 1, 3n))
  expect((yield* exceptions(payment)).filter((one) => one.startsWith("open"))).toEqual(["open overpaid 9 undefined"])
  // A reorg that takes what is open leaves what was decided on.
  yield* tick({ head: 152, ancestor: 149 })
  expect((yield* exceptions(payment)).filter((one) => one.startsWith("open"))).toEqual([])
})

test("dust: what a payment had, and what was found late, are decided separately", function* () {
  const payment = yield* begin
  yield* scanTo(end, ...dust(110, 10, 500n))
  yield* scanTo(end + 1, ...dust(111, 50, 400n), token(112, 900_000n))
  const open = ["open found_late 20000 undefined", "open underpaid 5000 undefined"]
  expect((yield* exceptions(payment)).toSorted()).toEqual([
    "open found_late 20000 undefined",
    "open found_late 900000 0xt112",
    open[1]
  ])
  yield* acceptException((yield* exceptionOf(payment.id, { amount: 900_000n })).id, undefined, {})
  expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", amountReceived: 900_000n })
  yield* scanTo(end + 2)
  expect((yield* exceptions(payment)).toSorted()).toEqual(["accepted found_late 900000 0xt112", ...open])
  yield* acceptException(yield* sumOf(payment, "found_late"), undefined, {})
  yield* scanTo(end + 3, ...dust(113, 1, 7n))
  const after = yield* exceptions(payment)
  expect(after.filter((one) => one.startsWith("open"))).toEqual([open[1]])
})

test("dust: it confirms a payment with the transaction that is named for it", function* () {
  const payment = yield* begin
  yield* scanTo(end, ...dust(110, 10, 500n))
  const id = yield* sumOf(payment, "underpaid")
  expect(yield* Effect.flip(acceptException(id, undefined, {}))).toMatchObject({ field: "txHash" })
  // The ledger has it: no provider is asked.
  mined.clear()
  const named = { txHash: "0xd110:0" }
  expect(yield* acceptException(id, undefined, named)).toMatchObject({
    payment: { status: "confirmed", txHash: "0xd110:0", amountReceived: 5_000n }
  })
})

test("dust: on-time dust that is found after the end is one alarm, and never hides a found payment", function* () {
  const payment = yield* begin
  yield* tick({ head: 110, transfers: dust(110, 10, 500n) })
  yield* scanTo(end + 1)
  expect(yield* received(payment)).toBe("failed 5000")
  yield* scanTo(end + 2, ...dust(111, 50, 500n), token(112, 900_000n))
  yield* scanTo(end + 3, ...dust(113, 50, 500n))
  expect((yield* exceptions(payment)).toSorted()).toEqual([
    "open found_late 50000 undefined",
    "open found_late 900000 0xt112",
    "open underpaid 5000 undefined"
  ])
  expect(alarms).toHaveLength(2)
})

test("dust: what a second provider has only after the end is found late, and not what the payment had", function* () {
  const payment = yield* begin
  const [had, later] = [dust(110, 10, 500n), dust(111, 4, 500n)]
  yield* tick({ head: 111, transfers: had })
  yield* tick({ head: 112, transfers: later, corroborated: false })
  yield* scanTo(end + 200)
  expect(yield* received(payment)).toBe("failed 5000")
  yield* corroborate(end + 200, later)
  expect((yield* exceptions(payment)).toSorted()).toEqual([
    "open found_late 2000 undefined",
    "open underpaid 5000 undefined"
  ])
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
  const unknown = "payment_id IS NULL AND tx_hash IS NULL AND closed_at IS NULL"
  expect(yield* rows(`SELECT kind, amount FROM exceptions WHERE ${unknown}`)).toEqual([
    { kind: "unknown_payment", amount: "175" }
  ])
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

const [paying, late] = ["paying 10 5000 USDC", "late 10 5000 USDC"]

for (const [title, [before, isOfTwo, was], [after, isOfTwoAgain, is]] of [
  ["is late when it is mined later, and one provider alone reported it in time", [0, false, paying], [2, true, late]],
  ["counts as on time when a reorg mines it again later", [0, true, paying], [2, true, paying]],
  ["counts as on time when a reorg mines it again in time", [2, true, late], [0, true, paying]],
  ["stays on time where two had it so, when one, and then two, have it later", [0, true, paying], [2, false, paying]]
] as const) {
  test(`dust: it ${title}`, function* () {
    const payment = yield* begin
    const alone = (sum: string, isCorroborated: boolean) => [isCorroborated ? sum : `${sum} not corroborated`]
    yield* TestClock.setTime(lastOnTime * 1000)
    const first = dust(lastOnTime + before, 10, 500n)
    yield* tick({ head: lastOnTime + before, transfers: first, corroborated: isOfTwo })
    expect(yield* sums).toEqual(alone(was, isOfTwo))
    const again = dust(lastOnTime + after, 10, 500n).map((one, i) => ({ ...one, txHash: first[i]?.txHash }))
    const head = lastOnTime + 2
    yield* tick({ head, ancestor: lastOnTime - 1, transfers: again, corroborated: isOfTwoAgain })
    expect(yield* sums).toEqual(alone(is, isOfTwoAgain))
    yield* corroborate(head, again)
    expect(yield* sums).toEqual([is])
    if (is === paying) expect(yield* received(payment)).toBe("detecting 5000")
  })
}

for (const [what, said, time, was, is] of [
  ["late", lastOnTime + 2, lastOnTime, "late", "paying"],
  ["on time", lastOnTime, lastOnTime + 2, "paying", "late"]
] as const) {
  test(`dust: what one provider shows as ${what} is what two providers report`, function* () {
    yield* begin
    yield* TestClock.setTime(lastOnTime * 1000)
    const all = dust(lastOnTime, 3, 500n).map((one) => ({ ...one, blockTime: said }))
    yield* tick({ head: lastOnTime + 2, transfers: all, corroborated: false })
    expect(yield* sums).toEqual([`${was} 3 1500 USDC not corroborated`])
    const dated = all.map((one) => ({ ...one, blockTime: time }))
    yield* corroborate(lastOnTime + 2, dated.slice(1))
    expect(new Set(yield* sums)).toEqual(new Set([`${was} 1 500 USDC not corroborated`, `${is} 2 1000 USDC`]))
    yield* corroborate(lastOnTime + 2, dated)
    expect(yield* sums).toEqual([`${is} 3 1500 USDC`])
  })
}

const floor = (over: Partial<Payment>, usd = "0.10"): bigint =>
  floorOf(somePayment({ amount: 1_000_000n, ...over }), BigDecimal.unsafeFromString(usd))

it("dust: the floor is a thousandth of the amount, or what the configured one is worth where that is more", () => {
  expect(floor({})).toBe(1_000n)
  expect(floor({ amount: 1_000_001n })).toBe(1_001n)
  expect(floor({ usdValue: "1000" })).toBe(1_000n)
  expect(floor({ usdValue: "20" })).toBe(5_000n)
  expect(floor({ usdValue: "30" })).toBe(3_334n)
  expect(floor({ usdValue: "20" }, "0")).toBe(1_000n)
  expect(floor({ usdValue: "0.00" })).toBe(1_000n)
})

it("dust: the floor is never more than a hundredth of the amount, or of what is missing while the payment is open", () => {
  expect(floor({ usdValue: "1" })).toBe(10_000n)
  expect(floor({ amount: 50n, usdValue: "0.01" })).toBe(1n)
  expect(floor({ status: "detecting", amountReceived: 999_500n })).toBe(5n)
  expect(floor({ status: "detecting", amountReceived: 1_000_001n })).toBe(1_000n)
  expect(floor({ status: "failed", amountReceived: 999_500n, endedAt: 1 })).toBe(1_000n)
})

it("dust: what a payment had at its end counts once, however much uncorroborated dust came since", () => {
  const { address, chain, currency, id, mode } = somePayment({})
  const sum = (over: Partial<DustSum>): DustSum => ({
    ...{
      address,
      chain,
      currency,
      mode,
      payment: id,
      kind: "paying",
      corroborated: true,
      transfers: 10,
      amount: 5_000n
    },
    ...{ newest: { number: 7, time: 7 }, orphaned: undefined, txHash: "0xd", decided: 0n },
    ...over
  })
  const parts = (...sums: ReadonlyArray<DustSum>) =>
    dustReceipts(sums).map(
      ({ corroborated, amount, position }) => `${position.split(":")[3]} ${amount} ${corroborated}`
    )
  // All that was there then is corroborated: none of the rest was there.
  expect(parts(sum({ decided: 5_000n }), sum({ corroborated: false }))).toEqual(["since 5000 false", "known 5000 true"])
  // A part of it was corroborated after the end: it is still what was there then.
  expect(parts(sum({ amount: 2_000n }), sum({ corroborated: false, amount: 3_500n, decided: 5_000n }))).toEqual([
    "since 500 false",
    "known 2000 true",
    "known 3000 false"
  ])
})
