import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { end, hash, layer, look, mined, refunded, start, untold } from "./deciding.ts"
import { block, network, scanTo, tick, transfer } from "./settling.ts"

it.scoped("refunded: closes what is open, and fails where nothing is open", () =>
  Effect.gen(function* () {
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
  }).pipe(Effect.provide(layer))
)

/** The money without a transaction turns out to have been brought by these. */
const found = (...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.gen(function* () {
    yield* TestClock.adjust("1 second")
    const writer = yield* Writer
    const settlement = yield* Settlement
    yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run("DELETE FROM receipts WHERE position = 'unattributed'")
        const touched = yield* LedgerRepo.keepReceipts(network, transfers, true)
        yield* settlement.settle({ network, head: block(130) }, touched)
      })
    )
  })

it.scoped(
  "refunded: money that was sent back confirms nothing when its transaction turns up; the payment expires",
  () =>
    Effect.gen(function* () {
      const { id } = yield* start
      yield* scanTo(130, transfer(120, 1000n, untold))
      expect((yield* look(id)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
      yield* refunded(id)
      // Of that block or one before, and of several transactions as well.
      yield* found(transfer(120, 300n, { position: "call:0xa" }), transfer(117, 700n, { position: "call:0xb" }))
      const after = yield* look(id)
      expect([after.payment?.status, after.payment?.amountReceived]).toEqual(["pending", undefined])
      expect([after.events, after.exceptions]).toEqual([["payment.detecting"], ["refunded unattributed 1000"]])
      yield* scanTo(end)
      const ended = yield* look(id)
      expect(ended.payment?.status).toBe("expired")
      expect(ended.exceptions).toEqual(["refunded unattributed 1000"])
    }).pipe(Effect.provide(layer))
)

it.scoped("refunded: without a known transaction the payment expires at its deadline all the same", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(120, 1000n, untold))
    yield* refunded(id)
    yield* scanTo(end)
    expect((yield* look(id)).payment?.status).toBe("expired")
  }).pipe(Effect.provide(layer))
)

it.scoped("refunded: other money than what was sent back counts", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(110, 400n), transfer(120, 1000n, untold))
    yield* refunded(id)
    yield* found(transfer(120, 1100n, { position: "call:0xa" }))
    expect((yield* look(id)).payment).toMatchObject({
      status: "detecting",
      amountReceived: 500n,
      txHash: "0xt110"
    })
    yield* scanTo(140, transfer(131, 500n))
    expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt131" })
  }).pipe(Effect.provide(layer))
)

it.scoped("a refunded exception opens again for further money, with that amount", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(120, 300n, untold))
    yield* refunded(id)
    yield* scanTo(131)
    expect((yield* look(id)).exceptions).toEqual(["refunded unattributed 300"])
    const writer = yield* Writer
    yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts")))
    yield* scanTo(132, transfer(120, 450n, untold))
    const after = yield* look(id)
    expect(after.exceptions).toEqual(["open unattributed 150"])
    expect(after.payment).toMatchObject({ status: "detecting", amountReceived: 150n })
    yield* refunded(id)
    yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE receipts SET amount = '200'")))
    yield* scanTo(133, transfer(120, 200n, untold))
    expect((yield* look(id)).exceptions).toEqual(["refunded unattributed 450"])
  }).pipe(Effect.provide(layer))
)

it.scoped("accept: a payment is not accepted with refunded money", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(120, 400n, untold))
    yield* refunded(id)
    yield* scanTo(end)
    yield* scanTo(end + 9, transfer(end + 5, 1000n))
    yield* accept(id, undefined)
    const after = yield* look(id)
    expect(after.payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 5}` })
    expect(after.payment?.amountReceived).toBeUndefined()
    expect(after.exceptions).toEqual(["refunded unattributed 400", "accepted late 1000"])
  }).pipe(Effect.provide(layer))
)

it.scoped("accept: what is left of the money counts, and where nothing is left there is nothing to accept", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(120, 1000n, untold))
    yield* refunded(id)
    mined.set(hash("1"), { blockNumber: 190, status: "0x1" })
    expect(yield* Effect.flip(accept(id, hash("1")))).toMatchObject({ _tag: "NothingToDecide" })
    expect((yield* look(id)).payment?.status).toBe("detecting")
    yield* scanTo(131, transfer(121, 1n))
    yield* accept(id, undefined)
    expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: "0xt121", amountReceived: 1n })
  }).pipe(Effect.provide(layer))
)

it.scoped("refunded: refunded money that was paid again does not replace orphaned money", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(110, 1000n), transfer(120, 1000n))
    expect((yield* look(id)).exceptions).toEqual(["open paid_again 1000"])
    yield* refunded(id)
    // A branch on which the second one came first opens nothing anew.
    const again = [transfer(120, 1000n), { ...transfer(125, 1000n), txHash: "0xt110" }]
    yield* tick({ head: 131, ancestor: 105, finalized: 104, transfers: again })
    expect((yield* look(id)).exceptions).toEqual(["refunded paid_again 1000"])
    yield* tick({ head: 132, ancestor: 121, finalized: 104 })
    expect((yield* look(id)).payment?.status).toBe("confirmed")
    yield* tick({ head: 137, finalized: 125 })
    const after = yield* look(id)
    expect(after.payment).toMatchObject({ status: "failed", failureReason: "reorged", amountReceived: undefined })
    expect(after.exceptions.toSorted()).toEqual(["open reorged 1000", "refunded paid_again 1000"])
    expect(yield* Effect.flip(accept(id, undefined))).toMatchObject({ _tag: "TransactionNotProven" })
    // Nor is it what the payment can be accepted for.
    expect((yield* Effect.flip(accept(id, "0xt120"))).message).toContain("was sent back")
    expect(yield* look(id)).toEqual(after)
  }).pipe(Effect.provide(layer))
)

it.scoped("refunded: a refunded overpayment does not replace orphaned money", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(110, 400n), transfer(120, 1000n))
    yield* refunded(id)
    // A branch on which the greater one came first opens nothing anew.
    const again = [transfer(120, 1000n), { ...transfer(125, 400n), txHash: "0xt110" }]
    yield* tick({ head: 131, ancestor: 105, finalized: 104, transfers: again })
    expect((yield* look(id)).exceptions).toEqual(["refunded overpaid 400"])
    yield* tick({ head: 132, ancestor: 121, finalized: 104 })
    yield* tick({ head: 137, finalized: 125 })
    const after = yield* look(id)
    expect(after.payment).toMatchObject({ status: "failed", failureReason: "reorged", amountReceived: 600n })
    expect(after.exceptions.toSorted()).toEqual(["open reorged 400", "refunded overpaid 400"])
  }).pipe(Effect.provide(layer))
)

it.scoped("refunded: refunding unattributed money that replaced orphaned money undoes the payment", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(110, 1000n, untold), transfer(120, 1000n))
    yield* tick({ head: 131, ancestor: 115, finalized: 104 })
    yield* tick({ head: 150, finalized: 140 })
    expect((yield* look(id)).payment?.status).toBe("confirmed")
    yield* refunded(id)
    yield* tick({ head: 151 })
    const after = yield* look(id)
    expect(after.payment).toMatchObject({ status: "failed", failureReason: "reorged", amountReceived: undefined })
    expect(after.exceptions.toSorted()).toEqual(["open reorged 1000", "refunded unattributed 1000"])
  }).pipe(Effect.provide(layer))
)

it.scoped.each([true, false])(
  "refunded: it undoes the payment in one commit with a scan too (before it: %s)",
  (isFirst) =>
    Effect.gen(function* () {
      const { id } = yield* start
      yield* scanTo(130, transfer(110, 1000n, untold), transfer(120, 1000n))
      yield* tick({ head: 131, ancestor: 115, finalized: 104 })
      yield* tick({ head: 150, finalized: 140 })
      const writer = yield* Writer
      const settlement = yield* Settlement
      const scan = writer.write(Effect.asVoid(settlement.settle({ network, head: block(150) }, [])))
      const both = isFirst ? [refunded(id), scan] : [scan, refunded(id)]
      yield* Effect.all(both, { concurrency: "unbounded", discard: true })
      yield* tick({ head: 151 })
      expect((yield* look(id)).payment).toMatchObject({ status: "failed", failureReason: "reorged" })
    }).pipe(Effect.provide(layer))
)

it.scoped.each([
  ["refunded", refunded],
  ["accepted", (id: string) => accept(id, undefined)]
] as const)("money of a lost payment that was %s is no new matter when its transaction turns up", ([outcome, decide]) =>
  Effect.gen(function* () {
    yield* start
    const lost = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    const address = lost.toLowerCase()
    const writer = yield* Writer
    const reader = yield* Reader
    yield* writer.write(
      Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 7, 0)", [lost]))
    )
    yield* scanTo(130, transfer(120, 5n, { ...untold, address }))
    const [open] = yield* Exceptions.open(reader, { limit: 10 })
    yield* decide(open?.id ?? "")
    yield* found(transfer(118, 5n, { address, position: "call:0xa" }))
    expect(yield* Exceptions.unknownAt(reader, network, address)).toMatchObject([{ status: outcome, amount: 5n }])
    yield* scanTo(140, transfer(135, 6n, { address }))
    expect(yield* Exceptions.open(reader, { limit: 10 })).toMatchObject([{ kind: "unknown_payment", amount: 6n }])
  }).pipe(Effect.provide(layer))
)
