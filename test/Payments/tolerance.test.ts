import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import { testSettings } from "../lib/settings.ts"
import { besideNode, end, layer, start } from "./deciding.ts"
import { exceptions, lastOnTime, look, scanTo, tick, transfer, withSettings } from "./settling.ts"

/** One per cent less is enough. */
const tolerant = besideNode(withSettings({ payments: { ...testSettings("").payments, toleranceBps: 100 } }))

it.scoped("the accepted underpayment is the configuration's, and one unit less is too little", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(130, transfer(120, 989n))
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* scanTo(140, transfer(131, 1n))
    expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: "0xt131" })
  }).pipe(Effect.provide(tolerant))
)

it.scoped("accept: by the transaction that reaches the tolerated amount", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(end)
    yield* scanTo(end + 9, transfer(120, 400n), transfer(121, 595n), transfer(122, 1n))
    yield* accept(payment.id, undefined)
    expect((yield* look(payment)).payment).toMatchObject({
      status: "confirmed",
      txHash: "0xt121",
      amountReceived: 996n
    })
  }).pipe(Effect.provide(tolerant))
)

it.scoped("where the payment's transaction is orphaned, another that brings enough completes it", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(130, transfer(120, 1000n))
    yield* tick({ head: 131, ancestor: 119, transfers: [transfer(121, 995n), transfer(125, 300n)] })
    expect(yield* exceptions(payment)).toEqual(["open paid_again 295 0xt125"])
  }).pipe(Effect.provide(tolerant))
)

it.scoped("accept: money within the minute of grace was on time", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(end)
    yield* scanTo(end + 9, transfer(lastOnTime, 700n), transfer(lastOnTime + 1, 300n))
    yield* accept(payment.id, undefined)
    expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", amountReceived: 700n })
  }).pipe(Effect.provide(layer))
)
