import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { WatchedAddresses } from "../../src/Chains/ledger/WatchedAddresses.ts"
import type { PaymentId } from "../../src/Domain/Ids.ts"
import { acceptException, refundException } from "../../src/Payments/decisions/resolve.ts"
import * as ExceptionLists from "../../src/Payments/ExceptionListRepo.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import { Reader, Writer } from "../../src/Sql.ts"
import { attributedBy, end, layer, look, refunded, start, test, unattributed } from "./deciding.ts"
import { address, block, losePayment, lost, network, scanTo, startWith, tick, transfer } from "./settling.ts"

/** The id of the exception of so much. */
const idOf = (id: PaymentId, amount: bigint) =>
  Effect.gen(function* () {
    const all = yield* Exceptions.ofPayment(yield* Reader, id)
    return all.find((one) => one.amount === amount)?.id ?? expect.unreachable()
  })

/** An expired payment with 7 and 8 that came late. */
const withTwo = Effect.gen(function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 7n), transfer(end + 6, 8n))
  return id
})

test("refunded: where several are open it needs names, closes those, and leaves the others open", function* () {
  const id = yield* withTwo
  const before = yield* look(id)
  expect(yield* Effect.flip(refunded(id))).toMatchObject({
    _tag: "RefundUnclear",
    message: expect.stringMatching(/2 open exceptions: exc_.* \(late, 7 base units of ETH, 0xt.*\), exc_.*--exception/)
  })
  expect(yield* look(id)).toEqual(before)
  const seven = yield* idOf(id, 7n)
  const result = yield* refunded(id, { exceptions: [seven] })
  expect(result?.closed).toMatchObject([
    { id: seven, kind: "late", amount: 7n, currency: "ETH", txHash: `0xt${end + 5}` }
  ])
  expect((yield* look(id)).exceptions).toEqual(["refunded late 7", "open late 8"])
  // Money that has come since the operator's look is not what was named.
  yield* scanTo(end + 19, transfer(end + 15, 9n))
  yield* refunded(id, { exceptions: [yield* idOf(id, 8n)] })
  expect((yield* look(id)).exceptions).toEqual(["refunded late 7", "refunded late 8", "open late 9"])
})

test("refunded: names that are not its open exceptions close nothing, nor those beside them", function* () {
  const id = yield* withTwo
  const [seven, eight] = [yield* idOf(id, 7n), yield* idOf(id, 8n)]
  yield* refunded(id, { exceptions: [seven] })
  const before = yield* look(id)
  const reason = (exceptions: ReadonlyArray<string>, amount?: bigint) =>
    Effect.map(Effect.flip(refunded(id, { exceptions, amount })), ({ message }) => message)
  expect(yield* reason([eight, "exc_none"])).toContain("has no exception exc_none")
  expect(yield* reason([eight, seven])).toContain("is refunded, not open")
  expect(yield* reason([eight], 9n)).toContain("less than 9")
  expect(yield* look(id)).toEqual(before)
  yield* scanTo(end + 19, transfer(end + 15, 9n))
  expect(yield* reason([eight, yield* idOf(id, 9n)], 8n)).toContain("of one exception")
})

test("refunded: beyond the given amount the rest stays open, and refunded money no longer counts", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 1000n, unattributed))
  const result = yield* refunded(id, { amount: 400n })
  expect(result?.closed).toMatchObject([{ kind: "unattributed", amount: 400n }])
  yield* scanTo(131, transfer(125, 1n))
  const after = yield* look(id)
  expect(after.exceptions).toEqual(["open unattributed 600"])
  expect(after.payment?.amountReceived).toBe(601n)
  // There is money that counts by now: the exception is named.
  yield* refunded(id, { amount: 600n, exceptions: [yield* idOf(id, 600n)] })
  yield* scanTo(132, transfer(126, 1n))
  expect((yield* look(id)).exceptions).toEqual(["refunded unattributed 1000"])
  expect((yield* look(id)).payment?.amountReceived).toBe(2n)
})

test("refunded: money of a lost payment, in part", function* () {
  yield* start
  const reader = yield* Reader
  yield* losePayment()
  const to = { address: lost.toLowerCase() }
  yield* scanTo(130, transfer(120, 5n, to))
  const [open = expect.unreachable()] = yield* ExceptionLists.open(reader, { limit: 10 })
  expect(yield* refundException(open.id, undefined, 2n, {})).toMatchObject({
    exception: { id: open.id, amount: 3n, sentBack: 2n },
    payment: undefined,
    amount: 2n
  })
  yield* scanTo(131, transfer(125, 6n, to))
  expect((yield* ExceptionLists.open(reader, { limit: 10 })).map(({ amount }) => amount)).toEqual([3n, 6n])
  const all = yield* refundException(open.id, undefined, 3n, {})
  expect(all).toMatchObject({ exception: { status: "refunded", amount: 5n }, amount: 3n })
  expect(yield* refundException(open.id, undefined, 3n, {})).toEqual(all)
  expect(yield* Effect.flip(acceptException(open.id, undefined, {}))).toMatchObject({
    _tag: "AlreadyDecided",
    message: expect.stringContaining(`${open.id} was refunded at`)
  })
})

test("accept: a payment cannot be accepted for refunded money", function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 1000n))
  yield* refunded(id)
  const before = yield* look(id)
  for (const tx of [undefined, `0xt${end + 5}`]) {
    expect(yield* Effect.flip(accept(id, tx))).toMatchObject({
      _tag: "NothingToDecide",
      message: `What came for ${id} was sent back: there is nothing to accept`
    })
  }
  expect(yield* look(id)).toEqual(before)
})

test("accept: a transaction whose money was sent back is refused beside other money", function* () {
  const { id } = yield* start
  yield* scanTo(end)
  const returned = transfer(end + 5, 700n)
  yield* scanTo(end + 9, returned)
  yield* refunded(id)
  yield* scanTo(end + 19, transfer(end + 15, 1000n))
  const { message } = yield* Effect.flip(accept(id, returned.txHash))
  expect(message).toBe(`What ${returned.txHash} brought was sent back: ${id} cannot be accepted for it`)
  expect((yield* accept(id, undefined))?.payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 15}` })
})

test("accept: what was found late and sent back keeps no payment confirmed that was accepted for other money", function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(200, 1000n))
  yield* refunded(id)
  yield* scanTo(end + 19, transfer(end + 15, 1000n))
  expect((yield* accept(id, undefined))?.payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 15}` })
  yield* tick({ head: end + 20, ancestor: end + 14, finalized: end + 10 })
  yield* tick({ head: end + 40, finalized: end + 30 })
  expect((yield* look(id)).payment).toMatchObject({ status: "failed", failureReason: "reorged" })
})

test("accept: the address is watched again at once when its late window was over", function* () {
  const matchSet = yield* WatchedAddresses
  const { id } = yield* startWith()
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 1000n))
  yield* TestClock.adjust("31 days")
  matchSet.remove("test", address)
  yield* accept(id, undefined)
  expect(matchSet.has("test", address)).toBe(true)
})

test("refunded: closes what is open, and fails where nothing is open", function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 7n))
  expect((yield* refunded(id))?.exceptions).toHaveLength(1)
  const after = yield* look(id)
  expect(after.exceptions).toEqual(["refunded late 7"])
  expect(after.payment?.status).toBe("expired")
  expect(yield* Effect.flip(refunded(id))).toMatchObject({ _tag: "NothingToDecide" })
  expect(yield* look(id)).toEqual(after)
  expect(yield* refunded("pay_none")).toBeUndefined()
})

test("refunded: money that was sent back confirms nothing when its transaction turns up; the payment expires", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 1000n, unattributed))
  expect((yield* look(id)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
  yield* refunded(id)
  // Of that block or one before, and of several transactions as well.
  yield* attributedBy(131, transfer(120, 300n, { position: "call:0xa" }), transfer(117, 700n, { position: "call:0xb" }))
  const after = yield* look(id)
  expect([after.payment?.status, after.payment?.amountReceived]).toEqual(["pending", undefined])
  expect([after.events, after.exceptions]).toEqual([["payment.detecting"], ["refunded unattributed 1000"]])
  yield* scanTo(end)
  const ended = yield* look(id)
  expect(ended.payment?.status).toBe("expired")
  expect(ended.exceptions).toEqual(["refunded unattributed 1000"])
})

test("refunded: other money than what was sent back counts", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(110, 400n), transfer(120, 1000n, unattributed))
  yield* refunded(id, { exceptions: [yield* idOf(id, 1000n)] })
  yield* attributedBy(131, transfer(120, 1100n, { position: "call:0xa" }))
  expect((yield* look(id)).payment).toMatchObject({
    status: "detecting",
    amountReceived: 500n,
    txHash: "0xt110"
  })
  yield* scanTo(140, transfer(131, 500n))
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt131" })
})

test("refunded: refunded money that was paid again does not replace orphaned money", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(110, 1000n), transfer(120, 1000n))
  expect((yield* look(id)).exceptions).toEqual(["open overpaid 1000"])
  yield* refunded(id)
  // A branch on which the second one came first opens nothing again.
  const again = [transfer(120, 1000n), { ...transfer(125, 1000n), txHash: "0xt110" }]
  yield* tick({ head: 131, ancestor: 105, finalized: 104, transfers: again })
  expect((yield* look(id)).exceptions).toEqual(["refunded overpaid 1000"])
  yield* tick({ head: 132, ancestor: 121, finalized: 104 })
  expect((yield* look(id)).payment?.status).toBe("confirmed")
  yield* tick({ head: 137, finalized: 125 })
  const after = yield* look(id)
  expect(after.payment).toMatchObject({ status: "failed", failureReason: "reorged", amountReceived: undefined })
  expect(after.exceptions.toSorted()).toEqual(["open reorged 1000", "refunded overpaid 1000"])
  expect(yield* Effect.flip(accept(id, undefined))).toMatchObject({ _tag: "TransactionNotProven" })
  // Nor is it what the payment can be accepted for.
  expect((yield* Effect.flip(accept(id, "0xt120"))).message).toContain("was sent back")
  expect(yield* look(id)).toEqual(after)
})

it.scoped.each(["after", "before"])(
  "refunded: without the money that replaced orphaned money a payment is undone (a scan in the same commit: %s)",
  (scanIs) =>
    Effect.gen(function* () {
      const { id } = yield* start
      yield* scanTo(130, transfer(110, 1000n, unattributed), transfer(120, 1000n))
      yield* tick({ head: 131, ancestor: 115, finalized: 104 })
      yield* tick({ head: 150, finalized: 140 })
      const writer = yield* Writer
      const settlement = yield* Settlement
      const scan = writer.write(Effect.asVoid(settlement.settle({ network, head: block(150) }, [])))
      const both = scanIs === "after" ? [refunded(id), scan] : [scan, refunded(id)]
      yield* Effect.all(both, { concurrency: "unbounded", discard: true })
      yield* tick({ head: 151 })
      const after = yield* look(id)
      expect(after.payment).toMatchObject({ status: "failed", failureReason: "reorged", amountReceived: undefined })
      expect(after.exceptions.toSorted()).toEqual(["open reorged 1000", "refunded unattributed 1000"])
    }).pipe(Effect.provide(layer))
)

it.scoped.each([
  ["refunded", (id: string) => Effect.asVoid(refundException(id, undefined, undefined, {}))],
  ["accepted", (id: string) => Effect.asVoid(acceptException(id, undefined, {}))]
] as const)(
  "money of a lost payment that was %s is not a new matter when its transaction turns up",
  ([outcome, decide]) =>
    Effect.gen(function* () {
      yield* start
      const address = lost.toLowerCase()
      const reader = yield* Reader
      yield* losePayment()
      yield* scanTo(130, transfer(120, 5n, { ...unattributed, address }))
      const [open] = yield* ExceptionLists.open(reader, { limit: 10 })
      yield* decide(open?.id ?? "")
      yield* attributedBy(131, transfer(118, 5n, { address, position: "call:0xa" }))
      expect(yield* Exceptions.unknownAt(reader, network, address)).toMatchObject([{ status: outcome, amount: 5n }])
      yield* scanTo(140, transfer(135, 6n, { address }))
      expect(yield* ExceptionLists.open(reader, { limit: 10 })).toMatchObject([{ kind: "unknown_payment", amount: 6n }])
    }).pipe(Effect.provide(layer))
)
