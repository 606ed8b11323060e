import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { startAt } from "../../src/Chains/ledger/WatchedAddressesRepo.ts"
import type { PaymentId } from "../../src/Domain/Ids.ts"
import type { NewPayment } from "../../src/Domain/Payment.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import { abandon, accept } from "../../src/Payments/operatorDecisions.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { someNewPayment } from "../lib/payments.ts"
import { asked, end, hash, layer, look, mined, ofTwoChains, refunded, start, untold } from "./deciding.ts"
import { block, elsewhere, network, scanTo, startWith, tick, transfer, usdcElsewhere } from "./settling.ts"

it.scoped("accept: an expired payment whose money came late becomes confirmed by it, with its event, once", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(end)
    yield* scanTo(end + 9, transfer(end + 5, 1000n))
    const first = yield* accept(id, undefined)
    expect(first).toMatchObject({ payment: { status: "confirmed" }, exceptions: [{ status: "accepted" }] })
    expect(yield* accept(id, undefined)).toEqual(first)
    const after = yield* look(id)
    expect(after.payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 5}`, confirmedAt: (end + 9) * 1000 })
    expect(after.events).toEqual(["payment.expired", "payment.confirmed"])
    // What is settled later leaves the decision alone.
    yield* scanTo(end + 30, transfer(end + 5, 1000n))
    expect((yield* look(id)).exceptions).toEqual(["accepted late 1000"])
  }).pipe(Effect.provide(layer))
)

it.scoped("accept: a failed payment that got too little, by its first transaction", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(end, transfer(120, 400n), transfer(121, 300n))
    expect((yield* look(id)).payment?.status).toBe("failed")
    yield* accept(id, undefined)
    const after = yield* look(id)
    expect(after.payment).toMatchObject({ status: "confirmed", txHash: "0xt120", amountReceived: 700n })
    expect(after.payment?.failureReason).toBeUndefined()
    expect(after.events).toEqual(["payment.detecting", "payment.failed", "payment.confirmed"])
  }).pipe(Effect.provide(layer))
)

it.scoped("accept: with what was found late, by the transaction that crosses; its surplus is accepted with it", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(end, transfer(120, 400n))
    yield* scanTo(end + 9, transfer(121, 900n))
    yield* accept(id, undefined)
    const after = yield* look(id)
    expect(after.payment).toMatchObject({ status: "confirmed", txHash: "0xt121", amountReceived: 1300n })
    expect(after.exceptions.toSorted()).toEqual(["accepted found_late 900", "accepted overpaid 300"])
  }).pipe(Effect.provide(layer))
)

it.scoped("accept: closes what is open of a confirmed payment and changes nothing else", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(120, 1500n))
    const before = yield* look(id)
    expect(before.exceptions).toEqual(["open overpaid 500"])
    yield* accept(id, undefined)
    expect(yield* look(id)).toEqual({ ...before, exceptions: ["accepted overpaid 500"] })
  }).pipe(Effect.provide(layer))
)

it.scoped("accept: unattributed money needs a named transaction that the chain has, deep enough and not failed", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(end, transfer(120, 1000n, untold))
    const refusal = (tx: string | undefined) => Effect.map(Effect.flip(accept(id, tx)), ({ message }) => message)
    expect(yield* refusal(undefined)).toContain("--tx")
    expect(yield* refusal(hash("1"))).toContain("no transaction")
    mined.set(hash("1"), { blockNumber: 199, status: "0x1" })
    expect(yield* refusal(hash("1"))).toContain("2 of the 3 confirmations")
    mined.set(hash("1"), { blockNumber: 198, status: "0x0" })
    expect(yield* refusal(hash("1"))).toContain("failed in block 198")
    mined.set(hash("1"), { blockNumber: 0, status: "0x1" })
    expect(yield* refusal(hash("1"))).toContain("could not be asked")
    expect((yield* look(id)).payment?.status).toBe("detecting")
    mined.set(hash("1"), { blockNumber: 198, status: "0x1" })
    yield* accept(id, hash("1"))
    const after = yield* look(id)
    expect(after.payment).toMatchObject({ status: "confirmed", txHash: hash("1"), amountReceived: 1000n })
    expect(after.exceptions).toEqual(["accepted unattributed 1000"])
  }).pipe(Effect.provide(layer))
)

it.scoped("accept: the transaction named for unattributed money is proven on the chain of that money", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    const writer = yield* Writer
    yield* writer.write(LedgerRepo.startScan(elsewhere, block(7), undefined))
    yield* tick({ head: 300, on: elsewhere, transfers: [transfer(250, 7n, { ...untold, currency: "ETH" })] })
    expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 7"])
    mined.set(hash("1"), { blockNumber: 198, status: "0x1" })
    yield* accept(id, hash("1"))
    expect(asked).toEqual(["optimism.test"])
    expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: hash("1") })
  }).pipe(Effect.provide(ofTwoChains))
)

it.scoped("accept: no provider is asked about a transaction that the ledger has", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(120, 1n), transfer(121, 2n))
    yield* accept(id, "0xt121")
    expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt121", amountReceived: 3n })
  }).pipe(Effect.provide(layer))
)

it.scoped("accept: fails where no money came, and gives nothing for an unknown payment", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130)
    expect(yield* Effect.flip(accept(id, undefined))).toMatchObject({ _tag: "NothingToDecide" })
    expect((yield* look(id)).payment?.status).toBe("pending")
    expect(yield* accept("pay_none", undefined)).toBeUndefined()
  }).pipe(Effect.provide(layer))
)

it.scoped("money of a lost payment is decided on by its own id", () =>
  Effect.gen(function* () {
    yield* start
    const lost = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    const writer = yield* Writer
    yield* writer.write(
      Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 7, 0)", [lost]))
    )
    yield* scanTo(130, transfer(120, 5n, { address: lost.toLowerCase() }))
    const [open] = yield* Exceptions.open(yield* Reader, { limit: 10 })
    const id = open?.id ?? ""
    const closed = yield* refunded(id)
    expect(closed).toMatchObject({ payment: undefined, exceptions: [{ id, status: "refunded" }] })
    expect(yield* Effect.flip(accept(id, undefined))).toMatchObject({
      _tag: "NothingToDecide",
      message: `The money of ${id} was sent back: there is nothing to accept`
    })
    expect(yield* Exceptions.open(yield* Reader, { limit: 10 })).toEqual([])
  }).pipe(Effect.provide(layer))
)

it.scoped("abandon: every open payment of the chain fails, with its event; others and ended ones stay", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    const writer = yield* Writer
    const insert = (n: number, over: Partial<NewPayment>) =>
      writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          const payment = someNewPayment({ merchantRef: `m${n}`, address: `0x${n}`, ...over })
          const stored = yield* Repo.insert(tx, payment, { wallet: "w", index: n })
          return stored ?? expect.unreachable()
        })
      )
    yield* Effect.forEach(
      Array.from({ length: 230 }, (_, n) => n + 1),
      (n) => insert(n, {}),
      {
        concurrency: "unbounded"
      }
    )
    const other = yield* insert(999, { chain: "polygon", currency: "USDC" })
    const live = yield* insert(1000, { mode: "live" })
    yield* scanTo(130, transfer(120, 1000n))
    expect(yield* abandon(network)).toBe(230)
    expect(yield* abandon(network)).toBe(0)
    expect((yield* look(id)).payment?.status).toBe("confirmed")
    expect((yield* look(other.id)).payment?.status).toBe("pending")
    expect((yield* look(live.id)).payment?.status).toBe("pending")
    const reader = yield* Reader
    const failed = yield* reader.all<{ id: PaymentId }>(
      "SELECT id FROM payments WHERE status = 'failed' AND failure_reason = 'abandoned'"
    )
    expect(failed).toHaveLength(230)
    const { events } = yield* look(failed[0]?.id ?? id)
    expect(events).toEqual(["payment.failed"])
  }).pipe(Effect.provide(layer))
)

it.scoped("abandon: a payment that has got some of its money fails too, and keeps what it has got", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(120, 400n))
    expect(yield* abandon(network)).toBe(1)
    const after = yield* look(id)
    expect(after.payment).toMatchObject({
      status: "failed",
      failureReason: "abandoned",
      amountReceived: 400n,
      endedAt: 130_000
    })
    expect([after.events, after.exceptions]).toEqual([["payment.detecting", "payment.failed"], []])
    yield* scanTo(140, transfer(131, 600n))
    expect((yield* look(id)).exceptions).toEqual(["open found_late 600"])
  }).pipe(Effect.provide(layer))
)

it.scoped(
  "abandon: works before a chain's first head; money on another chain, and later on this one, is an exception",
  () =>
    Effect.gen(function* () {
      const { id } = yield* startWith({ currency: "USDC" })
      const writer = yield* Writer
      const run = (sql: string) => writer.write(Effect.flatMap(Tx, (tx) => tx.run(sql)))
      yield* run("UPDATE payments SET created_head = NULL")
      yield* run("DELETE FROM scans")
      yield* writer.write(LedgerRepo.startScan(elsewhere, block(7), undefined))
      yield* tick({ head: 300, on: elsewhere, transfers: [usdcElsewhere(250, 1000n)] })
      expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 1000"])
      yield* abandon(network)
      expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 1000"])
      yield* writer.write(Effect.zipRight(LedgerRepo.startScan(network, block(290), undefined), startAt(network, 290)))
      yield* scanTo(310, usdcElsewhere(305, 5n))
      expect((yield* look(id)).exceptions).toEqual(["open wrong_chain 1000", "open found_late 5"])
      yield* accept(id, undefined)
      expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt305", amountReceived: 5n })
    }).pipe(Effect.provide(ofTwoChains))
)
