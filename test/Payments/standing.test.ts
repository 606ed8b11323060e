import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { PaymentException } from "../../src/Domain/Exception.ts"
import { plannedRefundId } from "../../src/Domain/Ids.ts"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import type { Refund, RefundPart } from "../../src/Domain/Refund.ts"
import { standing } from "../../src/Payments/standing.ts"
import { payment, receipt } from "./machine.ts"

const it_ = payment({ currency: "ETH", amount: 1000n })
const openedAt = it_.createdAt + 60_000

const part = (amount: bigint, over: Partial<RefundPart> = {}): RefundPart => ({
  ...{ exception: undefined, openedAt, block: 120, txHash: undefined, ofTwo: true, ofConfirmed: false },
  amount,
  ...over
})
/** A refund of unattributed money, seen at block 120, unless its part says otherwise. */
const refund = (amount: bigint, over: Partial<RefundPart> = {}, of: Partial<Refund> = {}): Refund => ({
  ...{ sequence: 1, id: plannedRefundId("exc_1", 0), payment: it_.id, account: it_.account, mode: it_.mode },
  ...{ address: it_.address, chain: it_.chain, currency: "ETH", amount, to: undefined, status: "noted" },
  ...{ txHash: undefined, from: undefined, note: undefined, problem: undefined, plan: undefined },
  ...{ createdAt: openedAt, changedAt: openedAt, parts: [part(amount, over)] },
  ...of
})
const exception = (over: Partial<PaymentException>): PaymentException => ({
  ...{ sequence: 1, id: "exc_1", account: it_.account, index: 7, walletAccount: undefined, closedAt: undefined },
  ...{ decisionTx: undefined, note: undefined, revision: 2, mode: it_.mode, address: it_.address, payment: it_.id },
  ...{ status: "open", openedAt, sentBack: 0n, refunds: [], kind: "overpaid", chain: it_.chain, txHash: undefined },
  ...{ currency: "ETH", amount: 5n, block: undefined, key: "overpaid" },
  ...over
})

const unattributed = (amount: bigint, over: Partial<Receipt> = {}) =>
  receipt(it_, { blockNumber: 120, position: "unattributed", txHash: undefined, amount, ...over })
/** Found out after it was sent back. */
const attributed = (amount: bigint, over: Partial<Receipt> = {}) =>
  receipt(it_, { blockNumber: 118, position: "call:0xa", txHash: "0xa", amount, seenAt: openedAt + 1, ...over })

const left = (receipts: ReadonlyArray<Receipt>, ...refunds: ReadonlyArray<Refund>) =>
  standing(it_, receipts, { exceptions: [], refunds }, undefined).receipts
const amounts = (receipts: ReadonlyArray<Receipt>, ...refunds: ReadonlyArray<Refund>) =>
  left(receipts, ...refunds).map(({ amount }) => amount)

describe("refunded money without a transaction", () => {
  const sent = refund(700n)

  it("is left out: the unattributed receipt, and then its attributed replacements", () => {
    const other = attributed(900n, { txHash: "0xb" })
    expect(amounts([unattributed(700n)], sent)).toEqual([])
    expect(amounts([attributed(300n), unattributed(400n)], sent)).toEqual([])
    expect(amounts([attributed(300n), other, unattributed(400n)], sent)).toEqual([900n])
    expect(amounts([attributed(300n), other], sent)).toEqual([500n])
    expect(amounts([unattributed(701n), attributed(5n)], sent)).toEqual([1n, 5n])
  })

  it.each<[string, Receipt]>([
    ["a reorg took", attributed(5n, { canonical: false })],
    ["came on another chain", attributed(5n, { chain: "optimism" })],
    ["is another currency", attributed(5n, { currency: "USDC" })],
    ["came after it", attributed(5n, { blockNumber: 121 })],
    ["was known before", attributed(5n, { seenAt: openedAt })],
    ["stands without a transaction for another block", unattributed(5n, { blockNumber: 119, seenAt: openedAt + 1 })],
    ["a reorg took before its transaction was known", unattributed(5n, { canonical: false })],
    ["stands without a transaction on another chain", unattributed(5n, { chain: "optimism" })]
  ])("does not take with it what %s", (_, other) => {
    expect(left([other], sent)).toEqual([other])
    expect(left([other, attributed(700n)], sent)).toEqual([other])
  })

  it("is of the newest blocks, and counted separately where it happened more than once", () => {
    const earlier = attributed(700n, { blockNumber: 105, position: "call:0xb", txHash: "0xb" })
    expect(left([earlier, attributed(700n)], sent)).toEqual([earlier])
    const later = unattributed(200n, { blockNumber: 130 })
    expect(amounts([unattributed(700n), later, attributed(50n)], sent, refund(200n, { block: 130 }))).toEqual([50n])
  })
})

describe("refunded money of a transaction", () => {
  const repaid = refund(700n, { txHash: "0xa", block: undefined })

  it("is left out of what its transaction brought, in whatever block", () => {
    expect(amounts([attributed(700n, { blockNumber: 500 })], repaid)).toEqual([])
    expect(amounts([attributed(300n), attributed(900n, { position: "call:0xb" })], repaid)).toEqual([500n])
  })

  it.each<[string, Receipt]>([
    ["a reorg took", attributed(5n, { canonical: false })],
    ["came on another chain", attributed(5n, { chain: "optimism" })],
    ["is another currency", attributed(5n, { currency: "USDC" })],
    ["came in another transaction", attributed(5n, { txHash: "0xb" })]
  ])("does not take with it what %s", (_, other) => {
    expect(left([other, attributed(700n)], repaid)).toEqual([other])
  })

  it("is there in every state of its refund but a failed one", () => {
    const of = (status: Refund["status"]) => amounts([attributed(700n)], { ...repaid, status })
    expect(of("failed")).toEqual([700n])
    for (const status of ["noted", "begun", "seen", "final", "not_found"] as const) expect(of(status)).toEqual([])
  })

  it("leaves a confirmed payment what it was confirmed by", () => {
    const confirmed = payment({ ...it_, status: "confirmed", endedAt: openedAt, txHash: "0xa" })
    const refunds = [refund(700n, { txHash: "0xa", block: undefined, ofConfirmed: true })]
    const of = (payment: typeof confirmed) =>
      standing(payment, [attributed(1000n)], { exceptions: [], refunds }, undefined).receipts
    expect(of(confirmed)).toMatchObject([{ amount: 1000n }])
    expect(of({ ...confirmed, status: "failed" })).toMatchObject([{ amount: 300n }])
  })
})

describe("accepted surplus of one transaction", () => {
  const confirmed = payment({
    ...it_,
    status: "confirmed",
    endedAt: openedAt + 9,
    txHash: "0xa",
    amountReceived: 2009n
  })
  const found = (...exceptions: ReadonlyArray<PaymentException>) => {
    const receipts = [
      attributed(1004n, { txHash: "0xb", blockNumber: 110 }),
      attributed(1005n, { txHash: "0xa", blockNumber: 118 })
    ]
    return standing({ ...confirmed, txHash: "0xb" }, receipts, { exceptions, refunds: [] }, undefined)
      .exceptions()
      .map(({ amount, txHash }) => `${txHash} ${amount}`)
  }
  const accepted = (amount: bigint, key = "overpaid:base:0xa:ETH") =>
    exception({ status: "accepted", txHash: key.split(":")[2], key, amount })

  it("is not asked about again where a reorg puts another transaction behind it", () => {
    expect(found()).toEqual(["0xb 4", "0xa 1005"])
    expect(found(accepted(1009n))).toEqual(["0xa 1005"])
    expect(found(accepted(1007n))).toEqual(["0xb 2", "0xa 1005"])
    expect(found({ ...accepted(1009n), status: "open" })).toEqual(["0xb 4", "0xa 1005"])
  })
})

describe("what can go back", () => {
  const refundable = (
    of: Parameters<typeof standing>[0],
    exceptions: ReadonlyArray<PaymentException>,
    refunds: ReadonlyArray<Refund>
  ) =>
    standing(
      of,
      [attributed(600n), attributed(700n, { txHash: "0xb", blockNumber: 119 })],
      { exceptions, refunds },
      undefined
    )
      .refundable(it_.chain, "ETH")
      .map(({ amount, exception, txHash }) => `${txHash} ${amount} ${exception ?? "counts"}`)
  const confirmed = payment({ ...it_, status: "confirmed", endedAt: openedAt + 9, txHash: "0xb" })
  const open = exception({ txHash: "0xb", amount: 300n, key: "overpaid:base:0xb:ETH" })

  it("is what is open, then what counts, less what refunds speak for", () => {
    expect(refundable(confirmed, [open], [])).toEqual(["0xb 300 exc_1", "0xa 600 counts", "0xb 400 counts"])
    const begun = refund(450n, { txHash: "0xa", block: undefined, ofConfirmed: true }, { status: "begun" })
    expect(refundable(confirmed, [open], [begun])).toEqual(["0xb 300 exc_1", "0xa 150 counts", "0xb 400 counts"])
    expect(refundable(confirmed, [open], [{ ...begun, status: "failed" }])).toHaveLength(3)
  })

  it("of an ended payment is only what is open, or was accepted", () => {
    const failed = payment({ ...it_, status: "failed", failureReason: "insufficient_amount", endedAt: openedAt })
    const underpaid = { ...open, kind: "underpaid", key: "underpaid:base:0xb:ETH" } as const
    expect(refundable(failed, [underpaid], [])).toEqual(["0xb 300 exc_1"])
    expect(refundable(failed, [{ ...underpaid, status: "accepted" }], [])).toEqual(["0xb 700 counts"])
  })
})

const hashes = ["0xa", "0xb", "0xc"]
const receiptsOf = fc.array(
  fc.record({
    hash: fc.constantFrom(...hashes),
    amount: fc.bigInt({ min: 1n, max: 1500n }),
    canonical: fc.boolean(),
    blockNumber: fc.integer({ min: 101, max: 140 })
  }),
  { maxLength: 6 }
)
const refundsOf = fc.array(
  fc.record({
    hash: fc.constantFrom(...hashes),
    amount: fc.bigInt({ min: 1n, max: 2000n }),
    status: fc.constantFrom<Refund["status"]>("noted", "begun", "seen", "final", "not_found", "failed")
  }),
  { maxLength: 5 }
)

it("for any receipts and refunds, in any order: nothing is negative, and nothing is left or goes back twice", () => {
  void fc.assert(
    fc.property(receiptsOf, refundsOf, (came, back) => {
      const receipts = came.map(({ amount, blockNumber, canonical, hash }, place) =>
        receipt(it_, { txHash: hash, amount, blockNumber, canonical, position: `log:${place}`, place })
      )
      const refunds = back.map(({ amount, hash, status }) =>
        refund(amount, { txHash: hash, block: undefined }, { status })
      )
      const of = (decisions: ReadonlyArray<Refund>) =>
        standing(it_, receipts, { exceptions: [], refunds: decisions }, undefined)
      const { receipts: rest, refundable } = of(refunds)
      const sumOf = (all: ReadonlyArray<{ readonly amount: bigint }>) =>
        all.reduce((sum, { amount }) => sum + amount, 0n)
      for (const hash of hashes) {
        const its = ({ canonical, txHash }: Receipt) => canonical && txHash === hash
        const spoken = sumOf(
          refunds.filter(({ parts: [part], status }) => status !== "failed" && part?.txHash === hash)
        )
        const all = sumOf(receipts.filter(its))
        const expected = all > spoken ? all - spoken : 0n
        expect(sumOf(rest.filter(its))).toBe(expected)
        expect(sumOf(refundable(it_.chain, "ETH").filter(({ txHash }) => txHash === hash))).toBe(expected)
      }
      expect(rest.every(({ amount }) => amount > 0n)).toBe(true)
      expect(sumOf(of(refunds.toReversed()).receipts)).toBe(sumOf(rest))
    }),
    { numRuns: 300 }
  )
})
