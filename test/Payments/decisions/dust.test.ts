import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { DatedTransfer } from "../../../src/Chains/ledger/LedgerRepo.ts"
import type { Payment } from "../../../src/Domain/Payment.ts"
import { acceptException, refundException } from "../../../src/Payments/decisions/resolve.ts"
import * as Exceptions from "../../../src/Payments/ExceptionsRepo.ts"
import { Reader } from "../../../src/Sql.ts"
import { end, hash, mined, test } from "../deciding.ts"
import { exceptions, look, scanTo, startWith, transfer } from "../settling.ts"

const token = (number: number, units: bigint, over: Partial<DatedTransfer> = {}): DatedTransfer => ({
  ...transfer(number, units),
  currency: "USDC",
  position: "log:0",
  ...over
})

/** So many transfers of a block, each with a transaction of its own. */
const dust = (number: number, count: number, units: bigint) =>
  Array.from({ length: count }, (_, i) =>
    token(number, units, { position: `log:${i + 1}`, txHash: `0xd${number}:${i}` })
  )

/** A thousandth of it is the floor of dust. */
const begin = startWith({ currency: "USDC", amount: 1_000_000n })

const of = (payment: Payment, kind: string) =>
  Effect.gen(function* () {
    const all = yield* Exceptions.ofPayment(yield* Reader, payment.id)
    const open = all.find((one) => one.kind === kind && one.status === "open" && one.txHash === undefined)
    return open?.id ?? expect.unreachable(`no open ${kind}`)
  })

const reported = Effect.flatMap(Reader, (reader) =>
  reader.all<{ amount: string }>(
    "SELECT body ->> '$.exception.amount' AS amount FROM events WHERE kind = 'payment.exception' ORDER BY sequence"
  )
).pipe(Effect.map((events) => events.map(({ amount }) => amount)))

test("the growth of open dust is not an event; a refund has to say how much, and what came since stays open", function* () {
  const payment = yield* begin
  yield* scanTo(130, token(120, 1_000_000n))
  yield* scanTo(140, ...dust(140, 20, 5n))
  yield* scanTo(141, ...dust(141, 5, 5n))
  yield* scanTo(143)
  expect(yield* exceptions(payment)).toEqual(["open overpaid 125 undefined"])
  expect(yield* reported).toEqual(["100"])
  const id = yield* of(payment, "overpaid")
  expect(yield* Effect.flip(refundException(id, undefined, undefined, {}))).toMatchObject({
    _tag: "DecisionInvalid",
    field: "amount",
    message: expect.stringContaining("may grow at any time")
  })
  yield* refundException(id, undefined, 100n, { txHash: hash("a") })
  expect(yield* exceptions(payment)).toEqual(["open overpaid 25 undefined"])
  yield* acceptException(id, undefined, {})
  yield* scanTo(144, ...dust(144, 2, 5n))
  expect((yield* exceptions(payment)).toSorted()).toEqual([
    "accepted overpaid 25 undefined",
    "open overpaid 10 undefined"
  ])
  // Dust that opens a refunded one again is an event too.
  yield* scanTo(146)
  yield* refundException(yield* of(payment, "overpaid"), undefined, 10n, {})
  yield* scanTo(147, ...dust(147, 1, 5n))
  expect(yield* reported).toEqual(["100", "25", "25", "10", "10", "5"])
})

test("dust that a payment had, and dust that was found late, are decided separately", function* () {
  const payment = yield* begin
  yield* scanTo(end, ...dust(110, 10, 500n))
  yield* scanTo(end + 1, ...dust(111, 50, 400n), token(112, 900_000n))
  const open = ["open found_late 20000 undefined", "open underpaid 5000 undefined"]
  expect((yield* exceptions(payment)).toSorted()).toEqual([
    "open found_late 20000 undefined",
    "open found_late 900000 0xt112",
    open[1]
  ])
  const large = (yield* Exceptions.ofPayment(yield* Reader, payment.id)).find(({ amount }) => amount === 900_000n)
  yield* acceptException(large?.id ?? "", undefined, {})
  expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", amountReceived: 900_000n })
  yield* scanTo(end + 2)
  expect((yield* exceptions(payment)).toSorted()).toEqual(["accepted found_late 900000 0xt112", ...open])
  yield* acceptException(yield* of(payment, "found_late"), undefined, {})
  yield* scanTo(end + 3, ...dust(113, 1, 7n))
  const after = yield* exceptions(payment)
  expect(after.filter((one) => one.startsWith("open"))).toEqual([open[1]])
})

test("dust confirms a payment with the transaction that is named for it", function* () {
  const payment = yield* begin
  yield* scanTo(end, ...dust(110, 10, 500n))
  const id = yield* of(payment, "underpaid")
  expect(yield* Effect.flip(acceptException(id, undefined, {}))).toMatchObject({ field: "txHash" })
  // The ledger has it: no provider is asked.
  mined.clear()
  const named = { txHash: "0xd110:0" }
  expect(yield* acceptException(id, undefined, named)).toMatchObject({
    payment: { status: "confirmed", txHash: "0xd110:0", amountReceived: 5_000n }
  })
})
