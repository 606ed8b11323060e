import { describe, expect, it } from "@effect/vitest"
import type { Payment } from "../../src/Domain/Payment.ts"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import { type Horizon, undone } from "../../src/Payments/statusMachine.ts"
import { block, confirmations, created, lastOnTime, payment, receipt, run, scanned } from "./machine.ts"

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
  const undo = (of: Payment, receipts: ReadonlyArray<Receipt>, horizon: Horizon) => undone(of, receipts, horizon, later)

  it("fails once the new branch is final, and keeps when and by what it was confirmed", () => {
    expect(undo(confirmed, [gone], scanned(400, { finalized: 100 }))).toBeUndefined()
    // One provider's tag makes nothing final that is not deep.
    expect(undo(confirmed, [gone], scanned(103, { finalized: 101 }))).toBeUndefined()
    expect(undo(confirmed, [gone], scanned(400, { finalized: 101 }))).toEqual({
      announced: true,
      isDecision: true,
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
      "it cannot be determined which transaction brought it again",
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

  it("fails too where the completing transaction is still there, and one before it is orphaned", () => {
    const crossed = { ...confirmed, txHash: "0xt102" }
    const left = receipt(crossed, { blockNumber: 102, amount: 400n })
    expect(undo(crossed, [{ ...gone, amount: 600n }, left], scanned(400, { finalized: 300 }))?.payment).toMatchObject({
      failureReason: "reorged",
      amountReceived: 400n
    })
  })

  it("waits until every block that lost its money is final, and for no other", () => {
    const horizon = scanned(400, { finalized: 200 })
    const others = [
      receipt(confirmed, { canonical: false, chain: "optimism", blockNumber: 300 }),
      receipt(confirmed, { txHash: "0xsmall", blockNumber: 300, amount: 1n })
    ]
    expect(undo(confirmed, [gone, ...others], horizon)?.payment.failureReason).toBe("reorged")
    const newer = receipt(confirmed, { canonical: false, txHash: "0xagain", blockNumber: 201 })
    expect(undo(confirmed, [gone, newer], horizon)).toBeUndefined()
    expect(undo(confirmed, [newer, gone], horizon)).toBeUndefined()
  })

  it("is a payment whose money was orphaned, not one that has less for another reason", () => {
    const final = scanned(400, { finalized: 300 })
    const less = receipt(confirmed, { amount: 900n })
    expect(undo(confirmed, [less], final)).toBeUndefined()
    expect(undo(confirmed, [less, { ...gone, chain: "optimism" }], final)).toBeUndefined()
    // Proven by the chain, and nowhere in the ledger.
    const given = { ...confirmed, txHash: "0xgiven", amountReceived: undefined }
    expect(undo(given, [gone], final)).toBeUndefined()
    // Accepted for late money that is gone; what is left on time is what there was.
    const late = { ...confirmed, txHash: "0xlate", amountReceived: 10n }
    const small = receipt(late, { txHash: "0xsmall", amount: 10n })
    const lost = receipt(late, { txHash: "0xlate", blockNumber: lastOnTime + 9, canonical: false })
    expect(undo(late, [small, lost], scanned(9999))?.payment.failureReason).toBe("reorged")
  })

  it("stays confirmed while what is left is within the tolerance", () => {
    const final = scanned(400, { finalized: 300 })
    const left = (amount: bigint) => [gone, receipt(confirmed, { txHash: "0xother", blockNumber: 103, amount })]
    const tolerant = { ...confirmed, toleranceBps: 100 }
    expect(undone(tolerant, left(990n), final, later)).toBeUndefined()
    expect(undone(tolerant, left(989n), final, later)?.payment.failureReason).toBe("reorged")
  })

  it("a deep reorg that mines it below the head of the payment's creation takes nothing", () => {
    const lower = receipt(confirmed, { txHash: "0xt101", blockNumber: 99 })
    expect(undo(confirmed, [gone, lower], scanned(400, { finalized: 300 }))).toBeUndefined()
  })

  // Coins that were mined again inside a contract are unknown until balances are compared.
  it.each([
    ["ETH", undefined, undefined],
    ["ETH", 101 + 4 * confirmations - 1, undefined],
    ["ETH", 101 + 4 * confirmations, "reorged"],
    ["USDC", undefined, "reorged"],
    ["USDC", 100, "reorged"]
  ] as const)("in %s, with balances reconciled up to block %s: %s", (currency, checked, reason) => {
    const coins: Payment = { ...confirmed, currency }
    const horizon = scanned(400, { finalized: 300, checked: checked === undefined ? undefined : block(checked) })
    expect(undo(coins, [{ ...gone, currency }], horizon)?.payment.failureReason).toBe(reason)
  })

  it("waits until a second provider has been searched up to the orphaned blocks", () => {
    const final = { finalized: 300 }
    expect(undo(confirmed, [gone], scanned(400, { ...final, searched: undefined }))).toBeUndefined()
    expect(undo(confirmed, [gone], scanned(400, { ...final, searched: 100 }))).toBeUndefined()
    expect(undo(confirmed, [gone], scanned(400, { ...final, searched: 101 }))?.payment.failureReason).toBe("reorged")
  })

  it.each(["pending", "detecting", "expired", "failed"] as const)("no %s payment is undone", (status) => {
    const it = payment({ status, amountReceived: 1000n, txHash: "0xt101" })
    expect(undo(it, [gone], scanned(9999))).toBeUndefined()
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
