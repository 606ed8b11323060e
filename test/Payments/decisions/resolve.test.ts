import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { WatchedAddresses } from "../../../src/Chains/ledger/WatchedAddresses.ts"
import type { PaymentId } from "../../../src/Domain/Ids.ts"
import { accept } from "../../../src/Payments/decisions/accept.ts"
import { noteRefund } from "../../../src/Payments/decisions/refund.ts"
import * as Exceptions from "../../../src/Payments/ExceptionsRepo.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { rows } from "../../lib/store.ts"
import {
  end,
  exceptionOf,
  expiredWith,
  hash,
  look,
  mined,
  owner,
  paidBy,
  refusal,
  stands,
  start,
  test,
  testOfTwo,
  unattributed,
  undone
} from "../deciding.ts"
import {
  address,
  alarms,
  elsewhere,
  lastOnTime,
  losePayment,
  lost,
  network,
  scanTo,
  startScans,
  tick,
  transfer,
  usdcElsewhere
} from "../settling.ts"

/** Decisions on the exception of so much money of a payment. */
const acceptOf = (id: PaymentId, amount: bigint, txHash?: string) =>
  Effect.flatMap(exceptionOf(id, { amount }), (one) => accept(one.id, owner, { txHash }))
const refundOf = (id: PaymentId, amount: bigint, sent?: bigint, txHash?: string) =>
  Effect.flatMap(exceptionOf(id, { amount }), (one) => noteRefund(one.id, owner, { amount: sent, txHash }))

test("accept: the same decision again, while more money opens the exception again, is refused and changes nothing", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 1000n))
  const { exception } = (yield* acceptOf(id, 1000n)) ?? expect.unreachable("no exception")
  const writer = yield* Writer
  const openAgain = Effect.flatMap(Tx, (tx) =>
    tx.run("UPDATE exceptions SET outcome = NULL, closed_at = NULL WHERE id = ?", [exception?.id ?? ""])
  )
  const meanwhile: typeof writer = { ...writer, write: (command) => writer.write(Effect.zipRight(openAgain, command)) }
  const before = yield* look(id)
  const again = accept(exception?.id ?? "", owner, {}).pipe(Effect.provideService(Writer, meanwhile))
  expect(yield* refusal(again)).toContain("more money has opened it again at this moment: decide again")
  expect(yield* look(id)).toEqual(before)
})

test("accept: one of two late ones confirms the payment, the other stays open and can be refunded", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 700n), transfer(end + 6, 800n))
  expect(yield* acceptOf(id, 800n)).toMatchObject({
    payment: { status: "confirmed", txHash: `0xt${end + 6}`, confirmedAt: (end + 9) * 1000 },
    exception: { status: "accepted", closedAt: (end + 9) * 1000 }
  })
  expect((yield* look(id)).events).toEqual(["payment.expired", "payment.confirmed"])
  yield* refundOf(id, 700n, undefined, hash("f"))
  expect(yield* exceptionOf(id, { amount: 700n })).toMatchObject({ decisionTx: hash("f") })
  // What is settled later leaves both alone.
  yield* scanTo(end + 30)
  yield* stands(id, `confirmed 0xt${end + 6}`, "refunded late 700", "accepted late 800")
})

test("accept: one of two underpaid ones confirms the payment with that money, and leaves the other to be decided", function* () {
  const { id } = yield* paidBy(end, transfer(120, 400n), transfer(121, 300n))
  yield* acceptOf(id, 400n)
  yield* scanTo(end + 20, transfer(120, 400n))
  yield* stands(id, "confirmed 400 0xt120", "accepted underpaid 400", "open underpaid 300")
  yield* refundOf(id, 300n)
  yield* scanTo(end + 30)
  yield* stands(id, "confirmed 400 0xt120", "accepted underpaid 400", "refunded underpaid 300")
})

test("accept: what else was found late stays open, and its own acceptance opens no surplus", function* () {
  const { id } = yield* expiredWith(transfer(120, 1300n), transfer(121, 1000n))
  yield* acceptOf(id, 1300n)
  const surplus = ["accepted found_late 1300", "accepted overpaid 300"]
  yield* stands(id, "confirmed 1300 0xt120", ...surplus, "open found_late 1000")
  yield* acceptOf(id, 1000n)
  yield* scanTo(end + 20)
  expect((yield* look(id)).exceptions.filter((one) => one.startsWith("open"))).toEqual([])
})

test("accept: other accepted money, alone or with all, adds to what the payment has received", function* () {
  const { id } = yield* paidBy(end, transfer(120, 400n), transfer(121, 300n), transfer(122, 200n))
  yield* scanTo(end + 9, transfer(end + 5, 50n))
  yield* acceptOf(id, 400n)
  yield* acceptOf(id, 300n)
  const confirmed = yield* look(id)
  expect(confirmed.payment).toMatchObject({ txHash: "0xt120", amountReceived: 700n })
  expect(confirmed.events).toEqual(["payment.detecting", "payment.failed", "payment.confirmed"])
  // Of a part that was sent back, the rest; and nothing of what came too late.
  yield* refundOf(id, 200n, 150n)
  yield* accept(id, undefined, {})
  const all = yield* look(id)
  expect(all.payment).toEqual({ ...confirmed.payment, amountReceived: 750n, refunded: 150n, updates: 1 })
  expect(all.exceptions.filter((one) => one.startsWith("open"))).toEqual([])
})

test("accept: an exception of a confirmed payment is closed alone, and nothing else changes", function* () {
  const { id } = yield* paidBy(130, transfer(120, 1500n), transfer(121, 20n))
  const before = yield* look(id)
  yield* acceptOf(id, 500n)
  expect(yield* look(id)).toEqual({ ...before, exceptions: ["open overpaid 20", "accepted overpaid 500"] })
  // The payment as a whole takes what is left.
  yield* accept(id, undefined, { note: "all of it" })
  expect((yield* look(id)).exceptions.toSorted()).toEqual(["accepted overpaid 20", "accepted overpaid 500"])
  expect(yield* exceptionOf(id, { amount: 20n })).toMatchObject({ note: "all of it" })
})

test("the same decision again gives the same result; another one on a closed exception is refused", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 700n), transfer(end + 6, 800n))
  const [seven, eight] = [yield* exceptionOf(id, { amount: 700n }), yield* exceptionOf(id, { amount: 800n })]
  const accepted = yield* accept(seven.id, owner, { note: "fine" })
  expect(yield* accept(seven.id, owner, {})).toEqual(accepted)
  expect(yield* accept(seven.id, owner, { txHash: seven.txHash, note: "again" })).toEqual(accepted)
  const refund = (txHash?: string) => noteRefund(eight.id, owner, { txHash })
  const refunded = yield* refund(hash("f"))
  for (const same of [undefined, hash("f")]) expect(yield* refund(same)).toEqual(refunded)
  const before = yield* look(id)
  expect(yield* refusal(noteRefund(seven.id, owner, {}))).toContain(`${seven.id} was accepted at`)
  expect(yield* refusal(accept(eight.id, owner, {}))).toContain(`with the transaction ${hash("f")}`)
  expect(yield* refusal(refund(hash("e")))).toContain("was refunded")
  expect(yield* refusal(accept(seven.id, owner, { txHash: hash("e") }))).toContain("was accepted")
  expect(yield* look(id)).toEqual(before)
})

test("an exception whose money a reorg removed cannot be decided", function* () {
  const { id } = yield* paidBy(130, transfer(120, 1000n), transfer(125, 40n))
  yield* tick({ head: 131, ancestor: 124 })
  yield* stands(id, "confirmed 1040 0xt120", "gone overpaid 40")
  expect(yield* refusal(acceptOf(id, 40n))).toContain("is gone at")
  expect(yield* refusal(refundOf(id, 40n))).toContain("is gone at")
})

test("accept: the transaction is the exception's own; another one is refused without asking the chain", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 700n))
  expect(yield* Effect.flip(acceptOf(id, 700n, hash("1")))).toMatchObject({
    _tag: "DecisionInvalid",
    field: "txHash",
    message: expect.stringContaining(`must be 0xt${end + 5}`)
  })
  expect((yield* acceptOf(id, 700n, `0xt${end + 5}`))?.payment?.status).toBe("confirmed")
})

test("accept: money without a transaction needs one that is proven", function* () {
  const { id } = yield* paidBy(end, transfer(120, 1000n, unattributed))
  expect(yield* Effect.flip(acceptOf(id, 1000n))).toMatchObject({ _tag: "DecisionInvalid", field: "txHash" })
  expect(yield* refusal(acceptOf(id, 1000n, hash("1")))).toContain("no transaction")
  yield* stands(id, "detecting 1000", "open unattributed 1000")
  mined.set(hash("1"), { blockNumber: 198, status: "0x1" })
  expect(yield* acceptOf(id, 1000n, hash("1"))).toMatchObject({
    payment: { status: "confirmed", txHash: hash("1"), amountReceived: 1000n },
    exception: { status: "accepted", decisionTx: hash("1") }
  })
})

testOfTwo("accept: money on another chain confirms by its transaction, and counts in no amount", function* () {
  const { id } = yield* start
  yield* startScans(7, elsewhere)
  yield* scanTo(130, transfer(120, 400n))
  yield* tick({ head: 300, on: elsewhere, transfers: [usdcElsewhere(250, 7n)] })
  yield* acceptOf(id, 7n)
  yield* stands(id, "confirmed 400 0xt250", "accepted wrong_chain 7")
})

testOfTwo("accept: a transaction on another chain brought no money without one on this chain", function* () {
  const { id } = yield* start
  yield* startScans(7, elsewhere)
  yield* scanTo(end, transfer(120, 1000n, unattributed))
  yield* tick({ head: 300, on: elsewhere, transfers: [{ ...usdcElsewhere(250, 7n), txHash: hash("1") }] })
  expect(yield* refusal(acceptOf(id, 1000n, hash("1")))).toContain("base.test has no transaction")
  yield* stands(id, "detecting 1000", "open unattributed 1000", "open wrong_chain 7")
})

for (const [what, decide] of [
  ["an exception", (id: PaymentId) => Effect.asVoid(acceptOf(id, 1000n))],
  ["the payment", (id: PaymentId) => Effect.asVoid(accept(id, undefined, {}))]
] as const) {
  test(`accept: the address is watched again at once when its late window was over: ${what}`, function* () {
    const matchSet = yield* WatchedAddresses
    const { id } = yield* expiredWith(transfer(end + 5, 1000n))
    yield* TestClock.adjust("31 days")
    matchSet.remove("test", address)
    yield* decide(id)
    expect(matchSet.has("test", address)).toBe(true)
  })
}

/** Fails with its event and an alarm. */
const isReorged = (id: PaymentId) =>
  Effect.gen(function* () {
    const { events, payment } = yield* look(id)
    expect(payment).toMatchObject({ status: "failed", failureReason: "reorged" })
    expect(events.at(-1)).toBe("payment.failed")
    expect(alarms.at(-1)).toContain("undone by a reorg")
  })

test("accept: accepted money that a reorg removes fails the payment once that is final, whatever else is undecided", function* () {
  const { id } = yield* paidBy(end)
  yield* scanTo(end + 11, transfer(120, 1000n), transfer(end + 9, 800n))
  yield* acceptOf(id, 800n)
  yield* tick({ head: end + 12, ancestor: end + 8, finalized: end + 8 })
  expect((yield* look(id)).payment?.status).toBe("confirmed")
  yield* tick({ head: end + 30, finalized: end + 9 })
  yield* isReorged(id)
  expect((yield* look(id)).exceptions).toContain("open found_late 1000")
  // Which can still be accepted.
  yield* acceptOf(id, 1000n)
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt120" })
})

test("accept: a second accepted part that a reorg removes fails the payment too", function* () {
  const { id } = yield* paidBy(end, transfer(120, 400n))
  yield* scanTo(end + 9, transfer(lastOnTime, 300n))
  yield* acceptOf(id, 400n)
  yield* acceptOf(id, 300n)
  yield* tick({ head: end + 10, ancestor: lastOnTime - 1, finalized: lastOnTime - 1 })
  yield* tick({ head: end + 30, finalized: end + 9 })
  yield* isReorged(id)
  expect((yield* look(id)).payment?.amountReceived).toBe(400n)
})

test("accept: a further part whose money a reorg removed and restored adds to what the payment has received", function* () {
  const part = { txHash: "0xb", blockTime: 121 }
  const { id } = yield* expiredWith(transfer(120, 1000n), transfer(end - 2, 300n, part))
  yield* acceptOf(id, 1000n)
  yield* tick({ head: end + 10, ancestor: end - 3 })
  expect((yield* look(id)).exceptions).toContain("gone found_late 300")
  yield* tick({ head: end + 12, transfers: [transfer(end + 1, 300n, part)] })
  yield* accept((yield* exceptionOf(id, { status: "open" })).id, owner, {})
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt120", amountReceived: 1300n })
})

test("reorged: there is no money to send back; accepting it does without the money, and the payment stays failed", function* () {
  const { id } = yield* undone
  expect(yield* Effect.flip(refundOf(id, 1000n))).toMatchObject({
    _tag: "NothingToDecide",
    message: expect.stringContaining("accept it, to do without that money")
  })
  const before = yield* look(id)
  expect(before.exceptions).toEqual(["open reorged 1000"])
  yield* acceptOf(id, 1000n)
  yield* tick({ head: 150, finalized: 140 })
  expect(yield* look(id)).toEqual({ ...before, exceptions: ["accepted reorged 1000"] })
})

test("reorged: accepted with another transaction, which the chain has, it confirms the payment by that", function* () {
  const { id } = yield* undone
  expect(yield* refusal(acceptOf(id, 1000n, hash("1")))).toContain("no transaction")
  mined.set(hash("1"), { blockNumber: 190, status: "0x1" })
  expect(yield* acceptOf(id, 1000n, hash("1"))).toMatchObject({
    payment: { status: "confirmed", txHash: hash("1") },
    exception: { status: "accepted", decisionTx: hash("1") }
  })
})

/** Refunds of an underpayment of 700. */
const shortBy = Effect.gen(function* () {
  const { id } = yield* paidBy(end, transfer(120, 700n))
  const one = yield* exceptionOf(id)
  const refund = (amount?: bigint, txHash?: string) => noteRefund(one.id, owner, { amount: amount, txHash, note: "n" })
  return { id, one, refund }
})

test("refund: a part leaves the rest open; the same transaction is recorded once", function* () {
  const { id, refund } = yield* shortBy
  const part = yield* refund(200n, hash("a"))
  expect(part).toMatchObject({ exception: { status: "open", amount: 500n, sentBack: 200n }, refund: { amount: 200n } })
  expect(yield* refund(200n, hash("a"))).toEqual(part)
  expect(yield* refusal(refund(500n, hash("a")))).toContain("noted already")
  expect(yield* Effect.flip(refund(501n))).toMatchObject({
    field: "amount",
    message: expect.stringContaining("(500 in base units)")
  })
  yield* refund(undefined, hash("b"))
  expect(yield* exceptionOf(id)).toMatchObject({ status: "refunded", sentBack: 700n, decisionTx: hash("b") })
  for (const amount of [undefined, 200n]) expect(yield* refusal(refund(amount, hash("e")))).toContain("was refunded")
})

test("refund: equal parts without transactions are several, and a transaction is never taken for that of another", function* () {
  const { refund } = yield* shortBy
  yield* refund(200n)
  yield* refund(200n)
  expect((yield* refund(200n, hash("a")))?.exception).toMatchObject({
    ...{ status: "open", amount: 100n },
    refunds: [undefined, undefined, hash("a")].map((txHash) => ({ amount: 200n, txHash, status: "noted" }))
  })
})

test("accept: of an exception that was sent back in part, the rest is what the payment has received", function* () {
  const { id, one, refund } = yield* shortBy
  yield* refund(200n)
  yield* accept(one.id, owner, {})
  yield* scanTo(end + 9)
  yield* stands(id, "confirmed 500 0xt120", "accepted underpaid 500")
})

test("only the operator decides on money of a lost payment, of which a part may be sent back", function* () {
  yield* start
  yield* losePayment()
  const to = { address: lost.toLowerCase() }
  yield* scanTo(130, transfer(120, 5n, to))
  const unknown = Effect.flatMap(Reader, (reader) => Exceptions.unknownAt(reader, network, to.address))
  const [open = expect.unreachable()] = yield* unknown
  expect(open).toMatchObject({ index: 7, account: undefined })
  expect(yield* accept(open.id, owner, {})).toBeUndefined()
  expect(yield* noteRefund(open.id, undefined, { amount: 2n })).toMatchObject({
    exception: { id: open.id, amount: 3n, sentBack: 2n },
    payment: undefined,
    refund: { amount: 2n, payment: undefined, parts: [{ exception: open.id, amount: 2n }] }
  })
  yield* scanTo(131, transfer(125, 6n, to))
  expect((yield* unknown).map(({ amount, status }) => `${status} ${amount}`)).toEqual(["open 3", "open 6"])
  expect(yield* accept(open.id, undefined, {})).toMatchObject({
    payment: undefined,
    exception: { status: "accepted" }
  })
})

test("what is committed with a decision undoes all of it when it fails", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 700n))
  const before = yield* look(id)
  const one = yield* exceptionOf(id)
  const fails = () => Effect.fail("full" as const)
  expect(yield* Effect.flip(accept(one.id, owner, {}, fails))).toBe("full")
  expect(yield* Effect.flip(noteRefund(one.id, owner, {}, fails))).toBe("full")
  expect(yield* look(id)).toEqual(before)
  expect(yield* rows("SELECT 1 FROM events WHERE kind = 'payment.exception'")).toHaveLength(1)
})
