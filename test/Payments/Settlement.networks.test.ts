import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { type Network, networkKey } from "../../src/Domain/Chain.ts"
import type { NewPayment } from "../../src/Domain/Payment.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { someNewPayment } from "../lib/payments.ts"
import {
  block,
  confirmations,
  confirmedOnce,
  elsewhere,
  exceptions,
  lastOnTime,
  look,
  scanTo,
  start,
  tick,
  transfer,
  usdcElsewhere,
  wallet,
  withChains
} from "./settling.ts"

const live: Network = { chain: "base", mode: "live" }
const liveAddress = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
const others = [elsewhere, live] as const

/** A chain in both modes, which ask for different confirmations, and another chain. */
const layer = withChains({}, elsewhere, { ...live, confirmations: 6 })

/** These are read from that block on. */
const startScans = (at: number, ...networks: ReadonlyArray<Network>) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(Effect.forEach(networks, (one) => LedgerRepo.startScan(one, block(at), undefined), { concurrency: 1 }))
  )

/** A payment beside the first. */
const payAgain = (index: number, over: Partial<NewPayment>) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.gen(function* () {
        const payment = someNewPayment({ merchantRef: `order ${index}`, ...over })
        const stored = yield* Repo.insert(yield* Tx, payment, { wallet, index })
        return stored ?? (yield* Effect.dieMessage("not inserted"))
      })
    )
  )

it.scoped("each mode of a chain has its own confirmations, and its own head when a payment is made", () =>
  Effect.gen(function* () {
    yield* start
    yield* startScans(110, ...others)
    const payment = yield* payAgain(1, { mode: "live", address: liveAddress })
    expect([payment.createdHead, (yield* payAgain(2, {})).createdHead]).toEqual([110, 100])
    const money = transfer(120, 1000n, { address: liveAddress.toLowerCase() })
    yield* tick({ head: 124, on: live, transfers: [money] })
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* tick({ head: 125, on: live })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
  }).pipe(Effect.provide(layer))
)

it.scoped.each(others.map((other) => [networkKey(other), other] as const))(
  "the head of %s confirms and ends nothing of another network",
  ([, other]) =>
    Effect.gen(function* () {
      const payment = yield* start
      yield* startScans(100, ...others)
      yield* tick({ head: 121, transfers: [transfer(120, 999n)] })
      yield* TestClock.setTime((lastOnTime + 500) * 1000)
      // The second time a block before it is known that has the confirmations.
      for (const head of [lastOnTime + 490, lastOnTime + 500]) yield* tick({ head, on: other })
      expect((yield* look(payment)).payment?.status).toBe("detecting")
      yield* tick({ head: 121, transfers: [transfer(121, 1n)] })
      yield* tick({ head: lastOnTime + 501, on: other })
      expect((yield* look(payment)).payment?.status).toBe("detecting")
      yield* tick({ head: 123 })
      expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: "0xt121" })
    }).pipe(Effect.provide(layer))
)

it.scoped.each(others.map((other) => [networkKey(other), other] as const))(
  "what is final on %s says nothing of a reorg on another network",
  ([, other]) =>
    Effect.gen(function* () {
      const payment = yield* confirmedOnce
      yield* startScans(100, ...others)
      yield* tick({ head: 131, ancestor: 119, finalized: 118 })
      yield* tick({ head: 400, on: other, finalized: 300 })
      expect((yield* look(payment)).payment?.status).toBe("confirmed")
      yield* tick({ head: 132, finalized: 120 })
      expect((yield* look(payment)).payment).toMatchObject({ status: "failed", failureReason: "reorged" })
    }).pipe(Effect.provide(layer))
)

it.scoped(
  "a reorg of stray money on another chain, that is final there, does not end what a reorg took on its own",
  () =>
    Effect.gen(function* () {
      const payment = yield* confirmedOnce
      yield* startScans(100, elsewhere)
      yield* tick({ head: 200, on: elsewhere, finalized: 140, transfers: [usdcElsewhere(150, 5n)] })
      yield* tick({ head: 131, ancestor: 119, finalized: 118 })
      yield* tick({ head: 201, on: elsewhere, finalized: 140, ancestor: 149 })
      yield* tick({ head: 400, on: elsewhere, finalized: 300 })
      expect((yield* look(payment)).payment?.status).toBe("confirmed")
      yield* tick({ head: 132, finalized: 120 })
      expect((yield* look(payment)).payment).toMatchObject({ status: "failed", failureReason: "reorged" })
    }).pipe(Effect.provide(layer))
)

it.scoped.each(others.map((other) => [networkKey(other), other] as const))(
  "a reorg of %s takes nothing back of another network",
  ([, other]) =>
    Effect.gen(function* () {
      const payment = yield* confirmedOnce
      yield* startScans(100, ...others)
      yield* tick({ head: 131, on: other })
      yield* tick({ head: 132, on: other, ancestor: 101, finalized: 131 })
      yield* tick({ head: 160, finalized: 150 })
      expect((yield* look(payment)).payment?.status).toBe("confirmed")
    }).pipe(Effect.provide(layer))
)

it.scoped("no payment waits for the scan of another mode", () => {
  const elsewhereLive: Network = { chain: "optimism", mode: "live" }
  return Effect.gen(function* () {
    const payment = yield* start
    yield* startScans(100, elsewhereLive)
    const end = lastOnTime + confirmations
    yield* TestClock.setTime(end * 1000)
    yield* tick({ head: end, on: elsewhereLive, checked: 300 })
    yield* tick({ head: end })
    expect((yield* look(payment)).payment?.status).toBe("expired")
  }).pipe(Effect.provide(withChains({}, elsewhereLive)))
})

it.scoped("a chain whose newest block is two minutes old counts as reachable, and payments wait for it", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* startScans(100, elsewhere)
    const end = lastOnTime + confirmations
    yield* tick({ head: end - 120, on: elsewhere })
    yield* scanTo(end)
    expect((yield* look(payment)).payment?.status).toBe("pending")
    yield* scanTo(end + 1)
    expect((yield* look(payment)).payment?.status).toBe("expired")
  }).pipe(Effect.provide(withChains({}, elsewhere)))
)

it.scoped("money on another chain, and its reorg, do not change what a payment got on its own chain", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* startScans(100, elsewhere)
    yield* tick({ head: 121, transfers: [transfer(120, 1000n)] })
    yield* tick({ head: 200, on: elsewhere, finalized: 190, transfers: [usdcElsewhere(120, 5n)] })
    expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
    yield* tick({ head: 201, on: elsewhere, ancestor: 119 })
    expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
    expect(yield* exceptions(payment)).toEqual(["gone wrong_chain 5 0xt120"])
    yield* tick({ head: 122 })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
  }).pipe(Effect.provide(layer))
)
