import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { AccountId, type PaymentId } from "../../../src/Domain/Ids.ts"
import { acceptException, refundException } from "../../../src/Payments/decisions/resolve.ts"
import * as Exceptions from "../../../src/Payments/ExceptionsRepo.ts"
import { accept } from "../../../src/Payments/operatorDecisions.ts"
import { Reader } from "../../../src/Sql.ts"
import { end, hash, look, refunded, start, test, unattributed } from "../deciding.ts"
import { address, losePayment, lost, network, scanTo, tick, transfer } from "../settling.ts"

const owner = { account: AccountId.make("default"), mode: "test" } as const

const refusal = <A, E extends { readonly message: string }, R>(decision: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(decision), ({ message }) => message)

const only = (id: PaymentId) =>
  Effect.map(
    Effect.flatMap(Reader, (reader) => Exceptions.ofPayment(reader, id)),
    ([one]) => one ?? expect.unreachable("no exception")
  )

/** Every way to decide on a late transfer, which is the payment's only exception. */
const ways = (id: PaymentId) =>
  Effect.map(only(id), ({ id: exception }) => ({
    "accept the exception": acceptException(exception, owner, {}),
    "refund the exception": refundException(exception, owner, undefined, { txHash: hash("f") }),
    "refund a part": refundException(exception, owner, 1n, {}),
    "accept the payment": accept(id, undefined),
    "accept it for that transaction": accept(id, `0xt${end + 9}`),
    "refund the payment's only one": refunded(id),
    "refund the named one": refunded(id, { exceptions: [exception] })
  }))

const wayNames = [
  "accept the exception",
  "refund the exception",
  "refund a part",
  "accept the payment",
  "accept it for that transaction",
  "refund the payment's only one",
  "refund the named one"
] as const

for (const way of wayNames) {
  const decide = Effect.fnUntraced(function* (id: PaymentId) {
    yield* (yield* ways(id))[way]
  })
  test(`money with one of three confirmations, of one provider: ${way}`, function* () {
    const { id } = yield* start
    yield* scanTo(end)
    yield* scanTo(end + 9, transfer(end + 9, 500n))
    const before = yield* look(id)
    expect(yield* refusal(decide(id))).toContain("has 1 of the 3 confirmations that base.test asks for")
    yield* scanTo(end + 10)
    expect(yield* refusal(decide(id))).toContain("has 2 of the 3 confirmations")
    expect(yield* look(id)).toEqual(before)
    yield* scanTo(end + 11)
    yield* decide(id)
    expect((yield* look(id)).exceptions).not.toEqual(before.exceptions)
  })
}

test("what a reorg took is not decided on, nor what it mined again before that is deep", function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 500n))
  const { id: exception } = yield* only(id)
  yield* tick({ head: end + 10, ancestor: end + 4 })
  expect(yield* refusal(refundException(exception, owner, undefined, {}))).toContain("is gone")
  yield* tick({ head: end + 11, transfers: [transfer(end + 11, 500n, { txHash: `0xt${end + 5}` })] })
  expect(yield* refusal(refundException(exception, owner, undefined, {}))).toContain("1 of the 3 confirmations")
})

test("money without a transaction, and money of a lost payment, needs the confirmations too", function* () {
  const { id } = yield* start
  yield* losePayment()
  yield* scanTo(end, transfer(120, 400n, unattributed))
  yield* scanTo(end + 1, transfer(end + 1, 7n, { address: lost.toLowerCase() }))
  const [unknown] = yield* Exceptions.unknownAt(yield* Reader, network, lost.toLowerCase())
  const decide = refundException(unknown?.id ?? "", undefined, undefined, {})
  expect(yield* refusal(decide)).toContain("1 of the 3 confirmations")
  yield* scanTo(end + 3)
  expect((yield* decide)?.exception.status).toBe("refunded")
  yield* scanTo(end + 4, transfer(end + 4, 30n, unattributed))
  const late = (yield* Exceptions.ofPayment(yield* Reader, id)).find(({ kind }) => kind === "late")
  expect(yield* refusal(refundException(late?.id ?? "", owner, 30n, {}))).toContain("1 of the 3 confirmations")
  expect(address).not.toBe(lost)
})

test("an open payment: neither accepted for shallow money, nor is that sent back", function* () {
  const { id } = yield* start
  yield* scanTo(130, transfer(120, 400n), transfer(130, 300n))
  expect(yield* refusal(accept(id, undefined))).toContain("1 of the 3 confirmations")
  expect(yield* refusal(refunded(id, { amount: 500n }))).toContain("1 of the 3 confirmations")
  yield* refunded(id, { amount: 100n })
  yield* scanTo(132)
  yield* refunded(id, { amount: 500n })
  yield* accept(id, undefined)
  expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", amountReceived: 100n })
})
