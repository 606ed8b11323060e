import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { PaymentId } from "../../../src/Domain/Ids.ts"
import { cancelPayment } from "../../../src/Payments/cancellation.ts"
import { accept } from "../../../src/Payments/decisions/accept.ts"
import { noteRefund } from "../../../src/Payments/decisions/refund.ts"
import * as Exceptions from "../../../src/Payments/ExceptionsRepo.ts"
import * as Repo from "../../../src/Payments/PaymentsRepo.ts"
import { Reader, StoreUnavailable, Tx } from "../../../src/Sql.ts"
import { execute, inTransaction } from "../../lib/store.ts"
import {
  end,
  exceptionOf,
  expiredWith,
  look,
  owner,
  paidBy,
  refunded,
  refusal,
  stands,
  start,
  test,
  testOfPair,
  unattributed
} from "../deciding.ts"
import { losePayment, lost, network, scanTo, tick, transfer } from "../settling.ts"

/** Every way to decide on a late transfer, which is the payment's only exception. */
const ways = {
  "accept the exception": (_: PaymentId, exception: string) => accept(exception, owner, {}),
  "refund the exception": (_: PaymentId, exception: string) => noteRefund(exception, owner, {}),
  "refund a part": (_: PaymentId, exception: string) => noteRefund(exception, owner, { amount: 1n }),
  "accept the payment": (id: PaymentId) => accept(id, undefined, {}),
  "accept it for that transaction": (id: PaymentId) => accept(id, undefined, { txHash: `0xt${end + 9}` }),
  "refund the payment's only one": (id: PaymentId) => refunded(id)
}

for (const [way, decide] of Object.entries(ways)) {
  test(`money with one of three confirmations, of one provider: ${way}`, function* () {
    const { id } = yield* expiredWith(transfer(end + 9, 500n))
    const exception = yield* exceptionOf(id)
    const decision = Effect.gen(function* () {
      yield* decide(id, exception.id)
    })
    const before = yield* look(id)
    expect(yield* refusal(decision)).toContain("has 1 of the 3 confirmations that base.test asks for")
    yield* scanTo(end + 10)
    expect(yield* refusal(decision)).toContain("has 2 of the 3 confirmations")
    expect(yield* look(id)).toEqual(before)
    yield* scanTo(end + 11)
    yield* decision
    expect((yield* look(id)).exceptions).not.toEqual(before.exceptions)
  })
}

test("what a reorg took and mined again is not decided on before that is deep", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 500n))
  yield* tick({ head: end + 10, ancestor: end + 4 })
  yield* tick({ head: end + 11, transfers: [transfer(end + 11, 500n, { txHash: `0xt${end + 5}` })] })
  const one = yield* exceptionOf(id)
  expect(yield* refusal(noteRefund(one.id, owner, {}))).toContain("1 of the 3 confirmations")
})

test("money without a transaction, and money of a lost payment, needs the confirmations too", function* () {
  const { id } = yield* start
  yield* losePayment()
  yield* scanTo(end, transfer(120, 400n, unattributed))
  yield* scanTo(end + 1, transfer(end + 1, 7n, { address: lost.toLowerCase() }))
  const [unknown] = yield* Exceptions.unknownAt(yield* Reader, network, lost.toLowerCase())
  const decide = noteRefund(unknown?.id ?? "", undefined, {})
  expect(yield* refusal(decide)).toContain("1 of the 3 confirmations")
  yield* scanTo(end + 3)
  expect((yield* decide)?.exception?.status).toBe("refunded")
  yield* scanTo(end + 4, transfer(end + 4, 30n, unattributed))
  const late = yield* exceptionOf(id, { kind: "late" })
  expect(yield* refusal(noteRefund(late.id, owner, { amount: 30n }))).toContain("1 of the 3 confirmations")
})

test("an open payment: neither accepted for shallow money, nor is that sent back", function* () {
  const { id } = yield* paidBy(130, transfer(120, 400n), transfer(130, 300n))
  expect(yield* refusal(accept(id, undefined, {}))).toContain("1 of the 3 confirmations")
  expect(yield* refusal(refunded(id, { amount: 500n }))).toContain("1 of the 3 confirmations")
  yield* refunded(id, { amount: 100n })
  yield* scanTo(132)
  yield* refunded(id, { amount: 500n })
  yield* accept(id, undefined, {})
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", amountReceived: 100n })
})

test("an open payment is not confirmed by an exception while what else counts for it is shallow", function* () {
  const { id } = yield* paidBy(120, transfer(110, 7n, { currency: "DAI" }), transfer(119, 300n))
  const decide = accept((yield* exceptionOf(id)).id, owner, {})
  expect(yield* refusal(decide)).toContain(`what counts for ${id} has 2 of the 3 confirmations`)
  yield* scanTo(121)
  yield* decide
  yield* stands(id, "confirmed 300 0xt110", "accepted wrong_token 7")
})

testOfPair("what one of two providers has: a payment is accepted for it by the operator's flag alone", function* () {
  const { id } = yield* start
  yield* tick({ head: 111, transfers: [transfer(110, 300n)], corroborated: false })
  expect(yield* refusal(accept(id, undefined, { uncorroborated: true }))).toContain("2 of the 3 confirmations")
  yield* tick({ head: 112 })
  for (const decide of [accept(id, undefined, {}), accept(id, undefined, { txHash: "0xt110" })]) {
    expect(yield* refusal(decide)).toContain("No second provider of base.test has")
  }
  yield* accept(id, undefined, { uncorroborated: true })
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", amountReceived: 300n })
})

for (const outcome of ["accepted", "refunded"]) {
  testOfPair(`what one of two providers has is ${outcome} by the operator's flag alone`, function* () {
    yield* start
    yield* losePayment()
    const to = { address: lost.toLowerCase() }
    yield* tick({ head: 110, transfers: [transfer(110, 5n, to)], corroborated: false })
    yield* execute("UPDATE receipts SET unverifiable = 1")
    yield* tick({ head: 112, transfers: [transfer(111, 6n, to)], corroborated: false })
    const [unknown] = yield* Exceptions.unknownAt(yield* Reader, network, to.address)
    const id = unknown?.id ?? ""
    const decided = Effect.fnUntraced(function* (waiver: { readonly uncorroborated?: boolean }) {
      if (outcome === "accepted") return yield* accept(id, undefined, waiver)
      return yield* noteRefund(id, undefined, waiver)
    })
    expect(yield* refusal(decided({}))).toContain("No second provider of base.test has")
    const { exception } = (yield* decided({ uncorroborated: true })) ?? {}
    expect([exception?.amount, exception?.status]).toEqual([5n, outcome])
  })
}

testOfPair("money that two providers have is decided on, whatever one alone adds to its transaction", function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* tick({ head: end + 11, transfers: [transfer(end + 8, 500n)] })
  const alone = { transfers: [transfer(end + 8, 9n, { position: "call:0" })], corroborated: false }
  yield* tick({ head: end + 12, ...alone })
  expect((yield* look(id)).exceptions).toEqual(["open late 500"])
  yield* noteRefund((yield* exceptionOf(id)).id, owner, {})
  expect((yield* look(id)).exceptions).toEqual(["refunded late 500"])
})

const stored = Effect.flatMap(Tx, (tx) =>
  tx.all<{ id: string; kind: string }>("SELECT id, kind FROM events ORDER BY sequence")
)
const events = inTransaction(stored)
const idsOf = (all: ReadonlyArray<{ id: string; kind: string }>, kind: string) =>
  all.flatMap((one) => (one.kind === kind ? [one.id] : []))

/** The events with those of a decision, which is rolled back, as by a restore. */
const eventsOfLost = Effect.fnUntraced(function* <E, R>(
  decide: (alsoCommit: () => Effect.Effect<void, StoreUnavailable, Tx>) => Effect.Effect<unknown, E, R>
) {
  let seen: ReadonlyArray<{ id: string; kind: string }> = []
  const lose = Effect.flatMap(stored, (all) => {
    seen = all
    return new StoreUnavailable({ code: "LOST", message: "lost" })
  })
  yield* Effect.flip(decide(() => lose))
  return seen
})

test("an event's id goes with its content: another decision on a restored database has another id", function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 11, transfer(end + 8, 500n), transfer(end + 9, 500n))
  const [first, second] = yield* Exceptions.ofPayment(yield* Reader, id)
  const accepted = eventsOfLost((lose) => accept(first?.id ?? "", owner, {}, lose))
  const before = yield* accepted
  expect(yield* accepted).toEqual(before)
  yield* noteRefund(first?.id ?? "", owner, {})
  const [opened, closed] = idsOf(before, "payment.exception").slice(-2)
  const [reopened, refunded] = idsOf(yield* events, "payment.exception").slice(-2)
  expect([reopened, refunded]).toEqual([opened, expect.not.stringContaining(closed ?? "")])
  yield* accept(second?.id ?? "", owner, {})
  expect(idsOf(before, "payment.confirmed")).toHaveLength(1)
  expect(idsOf(yield* events, "payment.confirmed")).not.toEqual(idsOf(before, "payment.confirmed"))
})

test("a payment that was cancelled, and then ends by itself, has another event, as has one cancelled with less", function* () {
  const { id } = yield* paidBy(120, transfer(110, 300n))
  const cancelled = eventsOfLost((lose) => cancelPayment((db) => Repo.byId(db, id), lose))
  const before = idsOf(yield* cancelled, "payment.failed")
  expect(idsOf(yield* cancelled, "payment.failed")).toEqual(before)
  yield* refunded(id, { amount: 100n })
  const less = idsOf(yield* cancelled, "payment.failed")
  yield* scanTo(end)
  expect(new Set([...before, ...less, ...idsOf(yield* events, "payment.failed")]).size).toBe(3)
})
