import { describe, expect, it } from "vitest"
import { confirmationsOf } from "../../src/Checkout/readPayment.ts"
import {
  type CheckoutView,
  extrasOf,
  type Facts,
  isFinal,
  misplaced,
  paidByOf,
  returnUrl,
  versionOf,
  viewOf
} from "../../src/Checkout/view.ts"
import type { PaymentException } from "../../src/Domain/Exception.ts"
import { InvoiceId, newRefundId } from "../../src/Domain/Ids.ts"
import { FailureReason, type Payment } from "../../src/Domain/Payment.ts"
import type { RefundedPart } from "../../src/Domain/Refund.ts"
import { paymentObject } from "../../src/Events/paymentObject.ts"
import { somePayment } from "../lib/payments.ts"
import { testChain, testSettings } from "../lib/settings.ts"
import { confirmations, payment, receipt } from "../Payments/machine.ts"

const token = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
const settings = testSettings("", { chains: [testChain()] })

const usdc = { currency: "USDC", token: { id: 1, contract: token, decimals: 6 }, amount: 25_000_000n } as const
const ended = { endedAt: 1 } as const

interface Given extends Partial<Pick<Facts, "extras" | "invoice" | "lags" | "now">> {
  readonly count?: number
}

const view = (over: Partial<Payment> = {}, { count, ...given }: Given = {}) => {
  const payment = somePayment({ ...usdc, ...over })
  return viewOf({
    payment,
    object: paymentObject(payment, settings),
    confirmations: count === undefined ? undefined : { count, needed: 3 },
    ...{ extras: [], paidBy: [], lags: false, now: payment.createdAt },
    ...given
  })
}

describe("a checkout page", () => {
  it("asks for everything while nothing has come, by the URI of the payment", () => {
    const { state } = view()
    const time = { startsAt: 100_000, endsAt: 3_700_000 }
    expect(state).toMatchObject({
      kind: "waiting",
      ask: { due: 25_000_000n, chainId: 31_337, contract: token, ...time }
    })
    expect(state.kind === "waiting" && state.ask.uri).toMatch(/\/transfer\?address=0x.*&uint256=25000000$/)
  })

  it("asks for what is missing once a part has come", () => {
    const { state } = view({ status: "detecting", amountReceived: 20_000_000n })
    expect(state).toMatchObject({ kind: "partPaid", received: 20_000_000n, ask: { due: 5_000_000n } })
    expect(state.kind === "partPaid" && state.ask.uri).toMatch(/uint256=5000000$/)
  })

  it("asks for nothing more once enough has come, and shows how deep it is", () => {
    expect(view({ status: "detecting", amountReceived: 25_000_000n }, { count: 2 }).state).toEqual({
      kind: "seen",
      confirmations: { count: 2, needed: 3 },
      receipt: { received: 25_000_000n, paidAt: undefined, transactions: [] }
    })
  })

  it.each([
    ["waiting", { status: "pending" }],
    ["partPaid", { status: "detecting", amountReceived: 1n }]
  ] as const)("that is %s asks until the last millisecond, and for nothing after it", (kind, over) => {
    const { expiresAt } = somePayment()
    expect(view(over, { now: expiresAt }).state.kind).toBe(kind)
    expect(view(over, { now: expiresAt + 1 }).state.kind).toBe("closing")
  })

  it("of money that was seen in time says so, however late it is", () => {
    const over = { status: "detecting", amountReceived: 25_000_000n } as const
    expect(view(over, { now: somePayment().expiresAt + 1 }).state.kind).toBe("seen")
    const more = view({ ...over, amountReceived: 30_000_000n })
    expect(more.extras).toMatchObject([{ kind: "overpaid", amount: 5_000_000n, currency: "USDC", status: "open" }])
    // Then it is an exception.
    expect(view({ ...ended, status: "confirmed", amountReceived: 30_000_000n }).extras).toEqual([])
  })

  it("asks for nothing on a chain that is not configured any more", () => {
    expect(view({ chain: "polygon" }).state).toEqual({ kind: "unavailable" })
  })

  it("has one end for each status, and every reason of a failure", () => {
    const kindOf = (over: Partial<Payment>) => view({ ...ended, ...over }).state.kind
    expect(kindOf({ status: "confirmed", confirmedAt: 1 })).toBe("paid")
    expect(kindOf({ status: "expired" })).toBe("expired")
    expect(kindOf({ status: "expired", failureReason: "cancelled" })).toBe("cancelled")
    for (const failureReason of FailureReason.literals.filter((reason) => reason !== "cancelled")) {
      expect(view({ ...ended, status: "failed", failureReason, amountReceived: 7n }).state).toEqual({
        kind: "failed",
        reason: failureReason,
        receipt: { received: 7n, paidAt: undefined, transactions: [] }
      })
    }
  })

  it("is final exactly when its payment has ended", () => {
    const open = [view(), view({ status: "detecting", amountReceived: 1n }), view({}, { now: 4_000_000 })]
    expect(open.map(isFinal)).toEqual([false, false, false])
    const over = [view({ ...ended, status: "expired" }), view({ ...ended, status: "confirmed", confirmedAt: 1 })]
    expect(over.map(isFinal)).toEqual([true, true])
  })

  it("says that its chain lags only while that matters", () => {
    expect(view({}, { lags: true }).lags).toBe(true)
    expect(view({ ...ended, status: "expired" }, { lags: true }).lags).toBe(false)
  })

  it("has another version whenever it shows something else, and the same one as time goes by", () => {
    const seen = { status: "detecting", amountReceived: 25_000_000n } as const
    const views: ReadonlyArray<CheckoutView> = [
      view(),
      view({}, { lags: true }),
      view({}, { now: 3_700_001 }),
      view({ status: "detecting", amountReceived: 1n }),
      view({ status: "detecting", amountReceived: 2n }),
      view(seen, { count: 1 }),
      view(seen, { count: 2 })
    ]
    expect(new Set(views.map(versionOf)).size).toBe(views.length)
    expect(versionOf(view({}, { now: 200_000 }))).toBe(versionOf(view()))
  })
})

it("the way back to the shop keeps the shop's own query and fragment, with the payment's id behind them", () => {
  expect(
    ["https://a.example/b", "https://a.example/?x=a%20b+c", "https://a.example/?", "https://a.example/?x#top#2"].map(
      (url) => returnUrl(url, { paymentId: "pay_1" })
    )
  ).toEqual([
    "https://a.example/b?paymentId=pay_1",
    "https://a.example/?x=a%20b+c&paymentId=pay_1",
    "https://a.example/?paymentId=pay_1",
    "https://a.example/?x&paymentId=pay_1#top#2"
  ])
})

const tokenNetworks = [testChain({ tokens: [{ symbol: "USDC", address: "0x1", decimals: 6 }] })]
const open = { status: "pending", failureReason: undefined, endedAt: undefined } as const
const short = { status: "failed", failureReason: "insufficient_amount", endedAt: 1 } as const
const confirmed = { status: "confirmed", failureReason: undefined, endedAt: 1 } as const

const exception = (over: Partial<PaymentException>): PaymentException => ({
  ...{ sequence: 1, id: "exc_1", key: "key", kind: "late", chain: "base", mode: "test", address: "0x1", block: 1 },
  ...{ txHash: "0xa", currency: "USDC", amount: 5n, sentBack: 0n, refunds: [], status: "open", openedAt: 1 },
  ...{ payment: somePayment().id, account: somePayment().account, index: 1, walletAccount: 0, revision: 1 },
  ...{ closedAt: undefined, decisionTx: undefined, note: "for the shop's eyes" },
  ...over
})

it.each([
  ["late", open, "open", "late"],
  ["overpaid", confirmed, "open", "overpaid"],
  ["wrong_token", open, "accepted", "wrong_token"],
  ["wrong_chain", short, "refunded", "wrong_chain"],
  ["found_late", short, "open", "found_late"],
  ["underpaid", short, "open", "other"],
  ["underpaid", short, "refunded", "other"],
  ["underpaid", confirmed, "open", "other"],
  // What counts for the payment now is not reported as extra.
  ["unattributed", open, "open", undefined],
  ["unattributed", confirmed, "open", "other"],
  // No money, or none any more.
  ["reorged", confirmed, "open", undefined],
  ["late", confirmed, "gone", undefined]
] as const)("a payer sees money that is %s", (kind, payment, status, expected) => {
  const found = extrasOf(somePayment(payment), [exception({ kind, status })], tokenNetworks)
  expect(found.map((one) => one.kind)).toEqual(expected === undefined ? [] : [expected])
})

it("money for a former choice is named as that, and is the page's news before it asks again", () => {
  const paid = [exception({ kind: "found_late", chain: "ethereum" }), exception({ kind: "late", status: "refunded" })]
  const extras = extrasOf(somePayment(short), paid, tokenNetworks, true)
  expect(extras.map(({ chain, kind, status }) => [chain, kind, status])).toEqual([
    ["ethereum", "former", "open"],
    ["base", "former", "refunded"]
  ])
  const shown = [extras, extras.slice(1)].map((some) => misplaced(view({}, { extras: some })))
  expect(shown).toEqual(["former", undefined])
  const id = InvoiceId.make(`inv_${"a".repeat(22)}`)
  const refs = ["order", undefined].map((merchantRef) => view({}, { invoice: { id, merchantRef } }).merchantRef)
  expect(refs).toEqual(["order", id])
})

it("the amount is all that came, including what was refunded, and the note stays with the shop", () => {
  const refunds: ReadonlyArray<RefundedPart> = [
    { id: newRefundId(), status: "final", amount: 2n, at: 1, txHash: "0xb", note: "private" },
    { id: newRefundId(), status: "noted", amount: 1n, at: 2, txHash: undefined, note: undefined }
  ]
  const found = extrasOf(
    somePayment(),
    [
      exception({ amount: 2n, sentBack: 3n, refunds }),
      exception({ amount: 5n, sentBack: 5n, status: "refunded" }),
      exception({ currency: "USDC.e" })
    ],
    tokenNetworks
  )
  expect(found).toEqual([
    {
      ...{ kind: "late", currency: "USDC", decimals: 6, chain: "base", status: "open" },
      ...{ amount: 5n, sentBack: 3n, refunds: ["0xb"] }
    },
    expect.objectContaining({ amount: 5n, sentBack: 5n }),
    expect.objectContaining({ currency: "USDC.e", decimals: undefined })
  ])
})

const order = payment()

const countOf = (receipts: Parameters<typeof confirmationsOf>[1], head: number, toleranceBps = 0) =>
  confirmationsOf({ ...order, toleranceBps }, receipts, head, confirmations)

it("the confirmations are those of the receipt that completes the payment, its own block included", () => {
  const half = (blockNumber: number) => receipt(order, { blockNumber, amount: order.amount / 2n })
  expect(countOf([half(101), half(103)], 103)).toEqual({ count: 1, needed: confirmations })
  expect(countOf([half(103), half(101)], 104)).toEqual({ count: 2, needed: confirmations })
})

it("further money does not reset them, and they never exceed what is needed", () => {
  const enough = receipt(order, { blockNumber: 101, amount: order.amount })
  const more = receipt(order, { blockNumber: 109, amount: 1n })
  expect(countOf([enough, more], 102)?.count).toBe(2)
  expect(countOf([enough, more], 200)?.count).toBe(confirmations)
})

it("money above the head that was read has none, and less than the tolerance is not counted", () => {
  expect(countOf([receipt(order, { blockNumber: 105, amount: order.amount })], 101)?.count).toBe(0)
  const short = receipt(order, { blockNumber: 101, amount: order.amount - 1n })
  expect(countOf([short], 105)).toBeUndefined()
  expect(countOf([short], 102, 100)?.count).toBe(2)
})

const chainIds: Readonly<Record<string, number>> = { base: 8453, polygon: 137 }
const paidBy = (receipts: Parameters<typeof paidByOf>[1], over: object = {}) =>
  paidByOf({ ...order, ...over }, receipts, (chain) => chainIds[chain])

const half = (txHash: string, blockNumber: number) =>
  receipt(order, { txHash, blockNumber, amount: order.amount / 2n, position: `tx:${blockNumber}` })

it("a receipt has the transactions that completed the payment, and none that came after", () => {
  const found = paidBy([half("0xb", 102), half("0xa", 101), half("0xc", 103)], {
    amountReceived: order.amount,
    txHash: "0xb"
  })
  expect(found).toEqual(
    ["0xa", "0xb"].map((txHash) => ({ txHash, chainId: chainIds[order.chain], amount: order.amount / 2n }))
  )
})

it("a receipt of other money that was accepted names its transaction, on its chain, without an amount", () => {
  const elsewhere = receipt(order, { txHash: "0xa", chain: "polygon", amount: 7n })
  expect(paidBy([elsewhere], { txHash: "0xa" })).toEqual([{ txHash: "0xa", chainId: 137, amount: undefined }])
  expect(paidBy([], { txHash: "0xd" })).toEqual([{ txHash: "0xd", chainId: chainIds[order.chain], amount: undefined }])
  expect(paidBy([])).toEqual([])
})
