import { describe, expect, it } from "@effect/vitest"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import { advance } from "../../src/Payments/statusMachine.ts"
import { block, confirmations, created, lastOnTime, payment, receipt, run, scanned, second, states } from "./machine.ts"

describe("time is over", () => {
  it("only in the first scan in which a block past the deadline has the chain's confirmations", () => {
    const it = payment()
    const firstPast = lastOnTime + 1
    expect(run(it, [], scanned(firstPast + confirmations - 2))).toEqual([])
    expect(states(run(it, [], scanned(firstPast + confirmations - 1)))).toEqual(["expired!"])
  })

  it("never while the scan is behind, whatever the clock says", () => {
    const it = payment()
    expect(advance(it, [], scanned(150), created + 10 * 86_400 * second)).toEqual([])
    const young = scanned(2, { settled: undefined, checked: undefined })
    expect(advance(it, [], young, created + 86_400 * second)).toEqual([])
  })

  const over = scanned(lastOnTime + confirmations)
  it.each<[string, ReadonlyArray<Partial<Receipt>>, string]>([
    ["too little", [{ amount: 999n }], "insufficient_amount"],
    [
      "too little, and a wrong token",
      [{ amount: 999n }, { currency: "USDT", position: "log:1" }],
      "insufficient_amount"
    ],
    ["another token", [{ currency: "USDT" }], "wrong_token"],
    ["the gas coin for a token", [{ currency: "ETH", position: "tx:0" }], "wrong_token"],
    ["a token of another chain's contract", [{ currency: "USDC", chain: "optimism" }], "wrong_chain"],
    ["wrong token before wrong chain", [{ currency: "USDC.e" }, { chain: "optimism" }], "wrong_token"]
  ])("%s fails", (_, receipts, reason) => {
    const it = payment()
    const last = run(
      it,
      receipts.map((each) => receipt(it, each)),
      over
    ).at(-1)
    expect(last).toMatchObject({ announced: true, payment: { status: "failed", failureReason: reason } })
  })

  it.each<[string, Partial<Receipt>]>([
    ["only orphaned money", { canonical: false }],
    ["only a wrong token that a reorg took", { canonical: false, currency: "USDT" }],
    ["only a wrong token of the block at which it was made", { blockNumber: 100, currency: "USDT" }],
    ["only money older than the payment", { blockNumber: 90, currency: "USDT" }],
    [
      "only what one provider reports of many small transfers on another chain",
      { chain: "optimism", corroborated: false, dust: "stray" }
    ],
    [
      "only what one provider reports of many small transfers of another token",
      { currency: "USDT", corroborated: false, dust: "stray" }
    ],
    [
      "only coins without a transaction that one provider alone shows",
      { amount: 999n, position: "unattributed", txHash: undefined, corroborated: false }
    ],
    [
      "only coins in the place of a token that one provider alone shows",
      { currency: "ETH", position: "unattributed", txHash: undefined, corroborated: false }
    ],
    ["only late money", { blockNumber: lastOnTime + 1 }]
  ])("%s expires", (_, each) => {
    const it = payment()
    expect(states(run(it, [receipt(it, each)], over)).at(-1)).toBe("expired!")
  })

  it("enough, but not yet deep, stays detecting and confirms later", () => {
    const it = payment({ status: "detecting", amountReceived: 1000n, txHash: `0xt${lastOnTime}` })
    const receipts = [receipt(it, { blockNumber: lastOnTime })]
    const slow = scanned(lastOnTime + 1, { settled: block(lastOnTime + 1) })
    expect(run(it, receipts, slow)).toEqual([])
    expect(states(run(it, receipts, scanned(lastOnTime + 2)))).toEqual(["confirmed!"])
  })
})

describe("what has to be checked before a payment ends", () => {
  const end = lastOnTime + confirmations

  it("its own chain's balances, past the deadline", () => {
    const it = payment()
    expect(run(it, [], scanned(end, { checked: undefined }))).toEqual([])
    expect(run(it, [], scanned(end, { checked: block(lastOnTime) }))).toEqual([])
    expect(states(run(it, [], scanned(end, { checked: block(lastOnTime + 1) })))).toEqual(["expired!"])
  })

  it("the other chains, before a payment ends without money", () => {
    const it = payment()
    expect(run(it, [], scanned(end, { elsewhereChecked: false }))).toEqual([])
  })

  it.each<[string, Partial<Receipt>, string]>([
    ["too little", { amount: 1n }, "insufficient_amount"],
    ["a wrong token", { currency: "USDT" }, "wrong_token"],
    ["what is known of another chain", { chain: "optimism" }, "wrong_chain"]
  ])("no other chain for %s", (_, over, failureReason) => {
    const it = payment()
    const steps = run(it, [receipt(it, over)], scanned(end, { elsewhereChecked: false }))
    expect(steps.at(-1)).toMatchObject({ payment: { status: "failed", failureReason, endedAt: created } })
  })
})
