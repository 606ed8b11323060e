import { describe, expect, it } from "vitest"
import type { PaymentException } from "../../src/Domain/Exception.ts"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import { withoutAccepted, withoutMovedSurplus, withoutSentBack } from "../../src/Payments/moneySentBack.ts"
import { payment, receipt } from "./machine.ts"

const it_ = payment({ currency: "ETH" })
const openedAt = it_.createdAt + 60_000
/** Unattributed money, up to block 120, that was sent back. */
const sentBack: PaymentException = {
  sequence: 1,
  id: "exc_1",
  account: it_.account,
  index: 7,
  walletAccount: undefined,
  closedAt: openedAt,
  decisionTx: undefined,
  note: undefined,
  revision: 2,
  mode: it_.mode,
  address: it_.address,
  payment: it_.id,
  status: "refunded",
  openedAt,
  sentBack: 700n,
  refunds: [{ amount: 700n, at: openedAt, txHash: undefined, note: undefined }],
  kind: "unattributed",
  chain: it_.chain,
  txHash: undefined,
  currency: "ETH",
  amount: 700n,
  block: 120,
  key: "unattributed"
}
const unattributed = (amount: bigint, over: Partial<Receipt> = {}) =>
  receipt(it_, { blockNumber: 120, position: "unattributed", txHash: undefined, amount, ...over })
/** Found out after it was sent back. */
const attributed = (amount: bigint, over: Partial<Receipt> = {}) =>
  receipt(it_, { blockNumber: 118, position: "call:0xa", txHash: "0xa", amount, seenAt: openedAt + 1, ...over })

const amounts = (receipts: ReadonlyArray<Receipt>, exceptions = [sentBack]) =>
  withoutSentBack(receipts, exceptions).map(({ amount }) => amount)

describe("refunded money without a transaction", () => {
  it("is left out: the unattributed receipt, and then its attributed replacements", () => {
    expect(amounts([unattributed(700n)])).toEqual([])
    expect(amounts([attributed(300n), unattributed(400n)])).toEqual([])
    expect(amounts([attributed(300n), attributed(900n, { txHash: "0xb" }), unattributed(400n)])).toEqual([900n])
    expect(amounts([attributed(300n), attributed(900n, { txHash: "0xb" })])).toEqual([500n])
  })

  it("is decided again where it has grown, for the difference", () => {
    expect(amounts([unattributed(701n), attributed(5n)])).toEqual([1n, 5n])
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
    expect(withoutSentBack([other], [sentBack])).toEqual([other])
    expect(withoutSentBack([other, attributed(700n)], [sentBack])).toEqual([other])
  })

  it("is of the newest blocks: money of an earlier interval that no one decided on stays", () => {
    const earlier = attributed(700n, { blockNumber: 105, position: "call:0xb", txHash: "0xb" })
    expect(withoutSentBack([earlier, attributed(700n)], [sentBack])).toEqual([earlier])
  })

  it.each(["open", "accepted", "gone"] as const)("is the refunded part of what is %s", (status) => {
    expect(amounts([unattributed(700n)], [{ ...sentBack, status, sentBack: 0n }])).toEqual([700n])
    expect(amounts([unattributed(700n)], [{ ...sentBack, status, sentBack: 300n }])).toEqual([400n])
  })

  it("is separate from accepted money", () => {
    expect(withoutAccepted([unattributed(700n)], [sentBack])).toEqual([unattributed(700n)])
    expect(withoutAccepted([unattributed(700n)], [{ ...sentBack, status: "accepted", sentBack: 0n }])).toEqual([])
  })

  it("is counted separately where it happened more than once", () => {
    const later: PaymentException = { ...sentBack, id: "exc_2", amount: 200n, sentBack: 200n, block: 130 }
    expect(
      amounts([unattributed(700n), unattributed(200n, { blockNumber: 130 }), attributed(50n)], [sentBack, later])
    ).toEqual([50n])
  })
})

describe("refunded money of a transaction", () => {
  const repaid: PaymentException = { ...sentBack, kind: "overpaid", txHash: "0xa", block: undefined }
  const rest = (receipts: ReadonlyArray<Receipt>, exception = repaid) =>
    withoutSentBack(receipts, [exception]).map(({ amount }) => amount)

  it("is left out of what its transaction brought, in whatever block", () => {
    expect(rest([attributed(700n, { blockNumber: 500 })])).toEqual([])
    expect(rest([attributed(300n), attributed(900n, { position: "call:0xb" })])).toEqual([500n])
  })

  it.each<[string, Receipt]>([
    ["a reorg took", attributed(5n, { canonical: false })],
    ["came on another chain", attributed(5n, { chain: "optimism" })],
    ["is another currency", attributed(5n, { currency: "USDC" })],
    ["came in another transaction", attributed(5n, { txHash: "0xb" })]
  ])("does not take with it what %s", (_, other) => {
    expect(withoutSentBack([other, attributed(700n)], [repaid])).toEqual([other])
  })

  it("stays while nothing has been sent back, and is not reduced by a reorged exception", () => {
    expect(rest([attributed(700n)], { ...repaid, sentBack: 0n })).toEqual([700n])
    expect(rest([attributed(700n)], { ...repaid, kind: "late" })).toEqual([])
    expect(rest([attributed(700n)], { ...repaid, kind: "reorged" })).toEqual([700n])
  })
})

describe("accepted surplus of one transaction", () => {
  const surplus = (txHash: string, amount: bigint, over: Partial<PaymentException> = {}): PaymentException => {
    return { ...sentBack, kind: "overpaid", status: "open", txHash, block: undefined, key: txHash, amount, ...over }
  }
  const accepted = surplus("0xa", 5n, { status: "accepted" })
  const left = (found: ReadonlyArray<PaymentException>, canonical = true) =>
    withoutMovedSurplus(found, [accepted], [attributed(9n, { canonical }), attributed(9n, { txHash: "0xb" })]).map(
      ({ amount, key }) => `${key} ${amount}`
    )

  it("is not asked about again where a reorg puts another transaction behind it", () => {
    expect(left([surplus("0xb", 5n)])).toEqual([])
    expect(left([surplus("0xa", 2n), surplus("0xb", 3n)])).toEqual(["0xa 2"])
  })

  it("leaves what is beyond it, and other kinds", () => {
    expect(left([surplus("0xb", 7n)])).toEqual(["0xb 2"])
    expect(left([surplus("0xa", 5n), surplus("0xb", 7n)])).toEqual(["0xa 5", "0xb 7"])
    expect(left([surplus("0xb", 5n, { kind: "late" })])).toEqual(["0xb 5"])
  })

  it("stands for nothing where its own transaction is gone, or where it was not accepted", () => {
    expect(left([surplus("0xb", 5n)], false)).toEqual(["0xb 5"])
    expect(withoutMovedSurplus([surplus("0xb", 5n)], [surplus("0xa", 5n)], [attributed(9n)])).toHaveLength(1)
  })
})
