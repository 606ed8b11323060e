import { describe, expect, it } from "@effect/vitest"
import type { Payment } from "../../src/Domain/Payment.ts"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import { type Horizon, undone } from "../../src/Payments/statusMachine.ts"
import { confirmations, created, lastOnTime, payment, receipt, rules, run, scanned } from "./machine.ts"

describe("a confirmed payment that a reorg undid", () => {
  const confirmed = payment({
    status: "confirmed",
    amountReceived: 1000n,
    txHash: "0xt101",
    confirmedAt: created,
    endedAt: created
  })
  const gone = receipt(confirmed, { canonical: false })
  const later = created + 99
  const undo = (of: Payment, receipts: ReadonlyArray<Receipt>, horizon: Horizon) =>
    undone(of, receipts, horizon, rules, later)

  it("fails once the new branch is final, and keeps when and by what it was confirmed", () => {
    expect(undo(confirmed, [gone], scanned(400, { finalized: 100 }))).toBeUndefined()
    expect(undo(confirmed, [gone], scanned(103, { finalized: 101 }))).toEqual({
      announced: true,
      payment: { ...confirmed, status: "failed", failureReason: "reorged", amountReceived: undefined, endedAt: later }
    })
  })

  it("without a finalized tag, when the block is deeper than four times the confirmations", () => {
    expect(undo(confirmed, [gone], scanned(101 + 4 * confirmations - 1))).toBeUndefined()
    expect(undo(confirmed, [gone], scanned(101 + 4 * confirmations))?.payment.failureReason).toBe("reorged")
  })

  it.each<[string, ReadonlyArray<Partial<Receipt>>]>([
    ["the transaction is in another block", [{ txHash: "0xt101", blockNumber: 102 }]],
    ["it came back", [{ txHash: "0xt101" }]],
    ["another transaction pays", [{ txHash: "0xother", blockNumber: 103 }]],
    [
      "nobody can tell which transaction brought it again",
      [{ txHash: undefined, position: "unattributed", blockNumber: 103 }]
    ]
  ])("stays confirmed: %s", (_, others) => {
    const all = [gone, ...others.map((other) => receipt(confirmed, other))]
    expect(undo(confirmed, all, scanned(400, { finalized: 300 }))).toBeUndefined()
  })

  it("an accepted one is measured by what it was accepted for", () => {
    const final = scanned(400, { finalized: 300 })
    const partial = { ...confirmed, amountReceived: 900n }
    const again = receipt(partial, { txHash: "0xt101", blockNumber: 102, amount: 900n })
    expect(undo(partial, [{ ...gone, amount: 900n }, again], final)).toBeUndefined()
    expect(undo(partial, [{ ...gone, amount: 900n }], final)?.payment.failureReason).toBe("reorged")
    const late = { ...confirmed, amountReceived: undefined, txHash: "0xlate" }
    const money = receipt(late, { txHash: "0xlate", blockNumber: lastOnTime + 9 })
    expect(undo(late, [money], final)).toBeUndefined()
    expect(undo(late, [{ ...money, canonical: false }], scanned(9999))?.payment.failureReason).toBe("reorged")
  })

  it("fails too where the transaction that crossed the line is still there, and one before it is gone", () => {
    const crossed = { ...confirmed, txHash: "0xt102" }
    const left = receipt(crossed, { blockNumber: 102, amount: 400n })
    expect(undo(crossed, [{ ...gone, amount: 600n }, left], scanned(400, { finalized: 300 }))?.payment).toMatchObject({
      failureReason: "reorged",
      amountReceived: 400n
    })
  })

  it("stays confirmed while what is left is within the tolerance", () => {
    const final = scanned(400, { finalized: 300 })
    const left = (amount: bigint) => [gone, receipt(confirmed, { txHash: "0xother", blockNumber: 103, amount })]
    const tolerant = { ...rules, toleranceBps: 100 }
    expect(undone(confirmed, left(990n), final, tolerant, later)).toBeUndefined()
    expect(undone(confirmed, left(989n), final, tolerant, later)?.payment.failureReason).toBe("reorged")
  })

  it("a deep reorg that mines it below the head of the payment's creation takes nothing", () => {
    const lower = receipt(confirmed, { txHash: "0xt101", blockNumber: 99 })
    expect(undo(confirmed, [gone, lower], scanned(400, { finalized: 300 }))).toBeUndefined()
  })

  it.each(["pending", "detecting", "expired", "failed"] as const)("no %s payment is undone", (status) => {
    expect(undo(payment({ status }), [gone], scanned(9999))).toBeUndefined()
  })
})

describe("reorgs", () => {
  it("orphaned before confirmation: pending again, no event, nothing shown of it", () => {
    const it = payment({ status: "detecting", amountReceived: 1000n, txHash: "0xt101" })
    const [step, ...more] = run(it, [receipt(it, { canonical: false })], scanned(101))
    expect(more).toEqual([])
    expect(step).toMatchObject({
      announced: false,
      payment: { status: "pending", amountReceived: undefined, txHash: undefined }
    })
  })

  it("the same transaction in another block counts once", () => {
    const it = payment({ status: "detecting", amountReceived: 1000n, txHash: "0xtx" })
    const receipts = [
      receipt(it, { txHash: "0xtx", canonical: false }),
      receipt(it, { txHash: "0xtx", blockNumber: 102, position: "log:4" })
    ]
    expect(run(it, receipts, scanned(102))).toEqual([])
    expect(run(it, receipts, scanned(104)).at(-1)?.payment).toMatchObject({
      status: "confirmed",
      amountReceived: 1000n
    })
  })
})
